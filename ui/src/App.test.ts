// The whole page as a person meets it, with a program that answers as the test says.
import { cleanup, render, screen, waitFor, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import axe from 'axe-core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import App from './App.svelte';
import type { ContextUse, ModelState, Start } from './lib/bindings';
import { api, emit, resetApi } from './test/api';
import { chatOf, inspection, readyModel, settings, summary, turn } from './test/values';

vi.mock('./lib/api', async () => (await import('./test/api')).api);

const chats = [
  summary({ id: 1, title: 'Garden', updatedMs: 3 }),
  summary({ id: 2, title: 'Letter', updatedMs: 2 }),
  summary({ id: 3, title: 'Soup', updatedMs: 1 }),
];
const turns = [
  turn({ id: 11, role: 'user', text: 'What grows in shade?' }),
  turn({ id: 12, parent: 11, text: 'Ferns and **hostas**.' }),
];
const use: ContextUse = {
  window: 1000,
  system: 20,
  skills: 0,
  passages: 0,
  history: 500,
  draft: 0,
  typed: 0,
  reservedOutput: 200,
  free: 280,
  hiddenTurns: 0,
};

async function open(start: Partial<Start> = {}) {
  resetApi({ list: { chats, folders: [{ id: 5, name: 'Home' }] }, ...start });
  api.openChat.mockImplementation(async (id) =>
    chatOf(
      id === 1 ? turns : [],
      chats.find((c) => c.id === id),
    ),
  );
  api.contextUse.mockResolvedValue(use);
  render(App);
  const user = userEvent.setup();
  await screen.findByRole('textbox', { name: 'Message' });
  return user;
}

/** What axe finds, as "rule: element"; colours need a browser and are measured elsewhere. */
async function faults(): Promise<string[]> {
  const { violations } = await axe.run(document.body, {
    rules: { 'color-contrast': { enabled: false } },
    resultTypes: ['violations'],
  });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

const chatButton = (title: string) =>
  within(screen.getByRole('navigation')).getByRole('button', { name: title });
const focused = () => document.activeElement;

// jsdom lays nothing out, and a menu beside a button that is nowhere is not shown.
vi.spyOn(Element.prototype, 'getClientRects').mockImplementation(
  () => [new DOMRect(0, 0, 80, 30)] as unknown as DOMRectList,
);

beforeEach(() => {
  history.replaceState(null, '', '/');
  localStorage.clear();
});
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

describe('nothing stands in the way of assistive technology', () => {
  it('in a new chat', async () => {
    await open();
    expect(await faults()).toEqual([]);
  });

  it('in a chat with turns', async () => {
    const user = await open();
    await user.click(chatButton('Garden'));
    await waitFor(() => expect(chatButton('Garden')).toHaveAttribute('aria-current', 'page'));
    expect(await faults()).toEqual([]);
  });

  it('when the model could not be loaded', async () => {
    await open({ model: { status: 'failed', name: 'Test Model', error: 'The file is cut short.' } });
    expect(await faults()).toEqual([]);
  });

  it('in the settings, section by section', async () => {
    const user = await open();
    await user.keyboard('{Control>},{/Control}');
    const dialog = await screen.findByRole('dialog', { name: 'Settings' });
    for (const name of ['General', 'Model', 'Answers', 'Shortcuts', 'About']) {
      await user.click(within(dialog).getByRole('tab', { name }));
      expect(await faults(), name).toEqual([]);
    }
  });

  it('in the search', async () => {
    const user = await open();
    await user.keyboard('{Control>}k{/Control}');
    await screen.findByRole('combobox');
    expect(await faults()).toEqual([]);
  });

  it('in the menu of a chat', async () => {
    const user = await open();
    await user.click(screen.getByRole('button', { name: 'Options of “Letter”' }));
    await screen.findByRole('menu');
    expect(await faults()).toEqual([]);
  });
});

describe('the start', () => {
  it('that fails says why and can be tried again', async () => {
    resetApi();
    api.start.mockRejectedValueOnce({ message: 'The database is of a newer version.' });
    render(App);
    const user = userEvent.setup();
    expect(await screen.findByRole('alert')).toHaveTextContent('The database is of a newer version.');
    await user.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('textbox', { name: 'Message' })).toBeVisible();
  });

  it('shows a failed model with its reason, and loads it again on request', async () => {
    const user = await open({
      model: { status: 'failed', name: 'Test Model', error: 'The file is cut short.' },
    });
    expect(screen.getByRole('alert')).toHaveTextContent('The file is cut short.');
    await user.click(within(screen.getByRole('alert')).getByRole('button', { name: 'Try again' }));
    expect(api.reloadModel).toHaveBeenCalledOnce();
    emit({ kind: 'model', model: { status: 'loading', name: 'Test Model' } });
    await waitFor(() => expect(screen.queryByRole('alert')).toBeNull());
  });
});

describe('the list of chats', () => {
  it('opens a chat, marks it and names the window after it', async () => {
    const user = await open();
    await user.click(chatButton('Garden'));
    await waitFor(() => expect(chatButton('Garden')).toHaveAttribute('aria-current', 'page'));
    expect(document.title).toBe('Garden');
  });

  it('is gone through by arrow keys', async () => {
    const user = await open();
    chatButton('Garden').focus();
    await user.keyboard('{ArrowDown}');
    expect(focused()).toBe(chatButton('Letter'));
    await user.keyboard('{End}');
    expect(focused()).toBe(chatButton('Soup'));
    await user.keyboard('{Home}{Enter}');
    expect(api.openChat).toHaveBeenCalledExactlyOnceWith(1);
  });

  it('renames in place; Escape changes nothing', async () => {
    const user = await open();
    chatButton('Letter').focus();
    await user.keyboard('{F2}Note{Enter}');
    expect(api.renameChat).toHaveBeenCalledExactlyOnceWith(2, 'Note');
    await waitFor(() => expect(focused()).toBe(chatButton('Note')));
    await user.keyboard('{F2}Other{Escape}');
    expect(api.renameChat).toHaveBeenCalledTimes(1);
    await waitFor(() => expect(focused()).toBe(chatButton('Note')));
  });

  it('says which chats are being answered', async () => {
    await open();
    emit({ kind: 'phase', chat: 3, turn: 30, phase: { at: 'writing' } });
    expect(await screen.findByRole('button', { name: 'Soup Being answered' })).toBeVisible();
  });

  it('moves a chat to a new folder by its menu', async () => {
    const user = await open();
    await user.click(screen.getByRole('button', { name: 'Options of “Letter”' }));
    const menu = await screen.findByRole('menu');
    within(menu).getByRole('menuitem', { name: 'Move to folder' }).focus();
    await user.keyboard('{ArrowRight}');
    await user.click(await screen.findByRole('menuitem', { name: 'New folder…' }));
    const dialog = await screen.findByRole('dialog', { name: 'New folder' });
    await user.type(within(dialog).getByRole('textbox', { name: 'Name' }), 'Work{Enter}');
    expect(api.addFolder).toHaveBeenCalledExactlyOnceWith('Work');
    await waitFor(() => expect(api.moveChat).toHaveBeenCalledExactlyOnceWith(2, 100));
    expect(await screen.findByRole('button', { name: 'Work' })).toHaveAttribute('aria-expanded', 'true');
  });
});

describe('deleting a chat', () => {
  it('gives the focus to its neighbour and can be undone by keyboard', async () => {
    const user = await open();
    chatButton('Letter').focus();
    await user.keyboard('{Delete}');
    await waitFor(() => expect(focused()).toBe(chatButton('Soup')));
    expect(screen.queryByRole('button', { name: 'Letter' })).toBeNull();
    expect(screen.getByText('“Letter” was deleted.')).toBeVisible();
    await user.keyboard('{F6}');
    expect(focused()).toBe(screen.getByRole('button', { name: 'Undo' }));
    await user.keyboard('{Enter}');
    await waitFor(() => expect(focused()).toBe(chatButton('Letter')));
    expect(api.restoreChat).toHaveBeenCalledExactlyOnceWith(2);
    expect(screen.queryByText('“Letter” was deleted.')).toBeNull();
  });

  it('works from the menu', async () => {
    const user = await open();
    await user.click(screen.getByRole('button', { name: 'Options of “Soup”' }));
    await user.click(await screen.findByRole('menuitem', { name: 'Delete' }));
    await waitFor(() => expect(focused()).toBe(chatButton('Letter')));
    expect(api.deleteChat).toHaveBeenCalledExactlyOnceWith(3);
  });
});

describe('shortcuts', () => {
  it('show and hide the columns and remember it', async () => {
    const user = await open();
    await user.keyboard('{Control>}b{/Control}');
    expect(screen.queryByRole('navigation')).toBeNull();
    expect(api.saveSettings).toHaveBeenLastCalledWith(expect.objectContaining({ sidebarOpen: false }));
    await user.keyboard('{Control>}j{/Control}');
    expect(screen.queryByRole('complementary')).toBeNull();
    await waitFor(() =>
      expect(api.saveSettings).toHaveBeenLastCalledWith(
        expect.objectContaining({ sidebarOpen: false, panelOpen: false }),
      ),
    );
    await user.keyboard('{Control>}b{/Control}');
    expect(screen.getByRole('navigation')).toBeVisible();
  });

  it('begin a new chat with the cursor in the message', async () => {
    const user = await open();
    await user.click(chatButton('Garden'));
    await waitFor(() => expect(document.title).toBe('Garden'));
    await user.keyboard('{Control>}n{/Control}');
    await waitFor(() => expect(focused()).toBe(screen.getByRole('textbox', { name: 'Message' })));
    expect(document.title).toBe('Reprise');
  });

  it('do nothing while an input method composes', async () => {
    await open();
    const press = (init: KeyboardEventInit) =>
      document.body.dispatchEvent(
        new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ctrlKey: true, ...init }),
      );
    press({ key: 'k', code: 'KeyK', isComposing: true });
    press({ key: 'Process', code: 'KeyK', keyCode: 229 });
    await Promise.resolve();
    expect(screen.queryByRole('combobox')).toBeNull();
  });

  it('Escape closes what is on top, and only then stops the answer', async () => {
    const user = await open();
    api.openChat.mockResolvedValue(chatOf([turn({ id: 12, state: 'writing' })], chats[0]));
    await user.click(chatButton('Garden'));
    await waitFor(() => expect(document.title).toBe('Garden'));
    await user.keyboard('{Control>}k{/Control}');
    await screen.findByRole('combobox');
    await user.keyboard('{Escape}');
    await waitFor(() => expect(screen.queryByRole('combobox')).toBeNull());
    expect(api.stop).not.toHaveBeenCalled();
    await user.keyboard('{Escape}');
    expect(api.stop).toHaveBeenCalledExactlyOnceWith(12);
  });
});

describe('the context panel', () => {
  const panel = () => screen.getByRole('complementary', { name: 'Context' });

  it('names every owner’s tokens', async () => {
    await open();
    expect(await within(panel()).findByText('720 of 1,000 tokens')).toBeVisible();
    const numbers = within(panel())
      .getAllByRole('definition')
      .map(({ textContent }) => textContent);
    expect(numbers.slice(0, 5)).toEqual(['20', '500', '0', '200', '280']);
  });

  it('warns before the window is full, and says what the model no longer sees', async () => {
    await open();
    api.contextUse.mockResolvedValue({ ...use, history: 640, free: 140, hiddenTurns: 1 });
    emit({ kind: 'model', model: { status: 'loading', name: 'Test Model' } });
    expect(await within(panel()).findByText('The window is 86% full.')).toBeVisible();
    expect(screen.getAllByText('The model no longer sees the first turn.')).toHaveLength(2);
  });
});

describe('settings', () => {
  async function answers(start: Partial<Start> = {}) {
    const user = await open(start);
    await user.keyboard('{Control>},{/Control}');
    const dialog = await screen.findByRole('dialog', { name: 'Settings' });
    await user.click(within(dialog).getByRole('tab', { name: 'Answers' }));
    return { user, dialog, temperature: within(dialog).getByRole('textbox', { name: 'Temperature' }) };
  }

  it('say what is wrong before anything is saved', async () => {
    const { user, dialog, temperature } = await answers();
    await user.clear(temperature);
    await user.type(temperature, '11');
    expect(within(dialog).getByRole('alert')).toHaveTextContent('From 0 to 10.');
    expect(temperature).toBeInvalid();
    await user.tab();
    expect(api.saveSettings).not.toHaveBeenCalled();
  });

  it('are saved when a field is left', async () => {
    const { user, temperature } = await answers();
    await user.clear(temperature);
    await user.type(temperature, '0,2');
    await user.tab();
    expect(api.saveSettings).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ temperature: 0.2 }));
  });

  it('are saved when the dialog is closed from within a field', async () => {
    const { user, dialog, temperature } = await answers();
    await user.clear(temperature);
    await user.type(temperature, '1.5{Escape}');
    await waitFor(() => expect(dialog).not.toBeInTheDocument());
    expect(api.saveSettings).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ temperature: 1.5 }));
  });

  it('say why the program refused them', async () => {
    const { user, dialog, temperature } = await answers();
    api.saveSettings.mockRejectedValue({ message: 'The disk is full.' });
    await user.clear(temperature);
    await user.type(temperature, '1{Tab}');
    expect(await within(dialog).findByRole('alert')).toHaveTextContent('Not saved: The disk is full.');
    expect(temperature).toHaveValue('0.7');
  });

  it('go back to the program’s defaults', async () => {
    const { user, dialog } = await answers({ settings: settings({ temperature: 2 }) });
    await user.click(within(dialog).getByRole('button', { name: 'Reset to defaults' }));
    expect(api.saveSettings).toHaveBeenCalledExactlyOnceWith(settings());
    expect(within(dialog).getByRole('textbox', { name: 'Temperature' })).toHaveValue('0.7');
  });

  it('say how the context is kept in memory, and how much of it', async () => {
    const user = await open();
    await user.keyboard('{Control>},{/Control}');
    const dialog = within(await screen.findByRole('dialog', { name: 'Settings' }));
    await user.click(dialog.getByRole('tab', { name: 'Model' }));
    const format = within(dialog.getByRole('radiogroup', { name: 'Format of the context' }));
    expect(format.getByRole('radio', { name: 'Automatic' })).toBeChecked();
    await user.click(format.getByRole('radio', { name: '8 bits' }));
    expect(api.saveSettings).toHaveBeenLastCalledWith(settings({ kvStorage: 'q8' }));
    const budget = dialog.getByRole('textbox', { name: 'Memory for context' });
    expect(budget).toHaveAttribute('placeholder', 'Automatic');
    await user.type(budget, '512{Tab}');
    await waitFor(() =>
      expect(api.saveSettings).toHaveBeenLastCalledWith(
        settings({ kvStorage: 'q8', kvBudgetMegabytes: 512 }),
      ),
    );
    const guessing = within(dialog.getByRole('radiogroup', { name: 'Guess ahead' }));
    await user.click(guessing.getByRole('radio', { name: 'Off' }));
    await waitFor(() =>
      expect(api.saveSettings).toHaveBeenLastCalledWith(expect.objectContaining({ speculation: false })),
    );
  });

  it('set the language, which is remembered for the next time the page is loaded', async () => {
    const user = await open();
    await user.keyboard('{Control>},{/Control}');
    const language = within(await screen.findByRole('radiogroup', { name: 'Language' }));
    expect(language.getByRole('radio', { name: 'System' })).toBeChecked();
    await user.click(language.getByRole('radio', { name: 'English' }));
    expect(api.saveSettings).toHaveBeenLastCalledWith(settings({ language: 'english' }));
    await waitFor(() => expect(localStorage.getItem('reprise.language')).toBe('english'));
  });

  it('set the theme of the page', async () => {
    const user = await open();
    await user.keyboard('{Control>},{/Control}');
    const theme = within(await screen.findByRole('radiogroup', { name: 'Theme' }));
    await user.click(theme.getByRole('radio', { name: 'Dark' }));
    await waitFor(() => expect(document.documentElement.dataset.theme).toBe('dark'));
    await user.click(theme.getByRole('radio', { name: 'System' }));
    await waitFor(() => expect(document.documentElement.dataset.theme).toBeUndefined());
  });
});

describe('what was reused', () => {
  it('is kept on disk, to be seen, pinned and erased', async () => {
    const user = await open();
    const owner = { owner: 'chat:1', kind: 'chat', name: 'Garden', chunks: 1, bytes: 2_000_000 };
    const chunk = inspection().chunks[0]!.kept!;
    api.listKept.mockResolvedValue({ owners: [owner], chunks: 1, bytes: 2_000_000, folder: '~/kv' });
    api.listChunks.mockResolvedValue([chunk]);
    await user.keyboard('{Control>},{/Control}');
    const dialog = within(await screen.findByRole('dialog', { name: 'Settings' }));
    await user.click(dialog.getByRole('tab', { name: 'Reuse' }));
    await user.click(await dialog.findByRole('button', { name: 'Chat Garden' }));
    await user.click(await dialog.findByRole('button', { name: /^Pin: chunk/ }));
    expect(api.pinChunk).toHaveBeenCalledExactlyOnceWith(chunk.id, true);
    await user.click(dialog.getByRole('button', { name: /^Let go of chunk/ }));
    expect(api.evictChunk).toHaveBeenCalledExactlyOnceWith(chunk.id);
    expect(await faults()).toEqual([]);
    await user.click(dialog.getByRole('button', { name: 'Erase what is kept for Garden' }));
    expect(api.eraseKept).not.toHaveBeenCalled();
    api.listKept.mockResolvedValue({ owners: [], chunks: 0, bytes: 0, folder: '~/kv' });
    await user.click(dialog.getByRole('button', { name: 'Erase' }));
    expect(api.eraseKept).toHaveBeenCalledExactlyOnceWith('chat:1');
    expect(await dialog.findByText('Nothing is kept yet.')).toBeVisible();
  });

  it('is a choice, and so is the disk it takes', async () => {
    const user = await open({ model: { ...readyModel, storeFault: 'it is in use' } as ModelState });
    await user.keyboard('{Control>},{/Control}');
    const dialog = within(await screen.findByRole('dialog', { name: 'Settings' }));
    await user.click(dialog.getByRole('tab', { name: 'Reuse' }));
    expect(dialog.getByText(/kept on disk: it is in use/)).toBeVisible();
    await user.click(dialog.getByRole('radio', { name: 'Same beginning' }));
    await waitFor(() =>
      expect(api.saveSettings).toHaveBeenLastCalledWith(expect.objectContaining({ reuse: 'prefix' })),
    );
    expect(dialog.queryByRole('textbox', { name: 'Share computed again' })).toBeNull();
    const off = (name: string) =>
      within(dialog.getByRole('radiogroup', { name })).getByRole('radio', { name: 'Off' });
    await user.click(off('Read ahead'));
    await waitFor(() =>
      expect(api.saveSettings).toHaveBeenLastCalledWith(expect.objectContaining({ readAhead: false })),
    );
    await user.click(off('Keep on disk'));
    await waitFor(() =>
      expect(api.saveSettings).toHaveBeenLastCalledWith(expect.objectContaining({ diskBudgetMegabytes: 0 })),
    );
  });
});

it('a failure that nobody handled is shown and the page goes on', async () => {
  await open();
  window.dispatchEvent(new ErrorEvent('error', { error: new Error('broken'), message: 'broken' }));
  expect(await screen.findByText('Something went wrong: broken')).toBeVisible();
});
