import { cleanup, render, screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { tick } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import App from '../../App.svelte';
import { api, resetApi } from '../../test/api';
import { chatOf, summary, turn } from '../../test/values';
import type { SearchHit } from '../bindings';

vi.mock('../api', async () => (await import('../../test/api')).api);

const chats = [
  summary({ id: 1, title: 'Garden', updatedMs: 2 }),
  summary({ id: 2, title: 'Letter', updatedMs: 1 }),
];
const hit = (chat: number, of: number | null, words: string): SearchHit => ({
  chat,
  title: chats.find(({ id }) => id === chat)?.title ?? '',
  turn: of,
  snippet: [
    { text: 'all ', hit: false },
    { text: words, hit: true },
  ],
  updatedMs: 0,
});

async function open() {
  resetApi({ list: { chats, folders: [] } });
  render(App);
  await screen.findByRole('textbox', { name: 'Message' });
  const user = userEvent.setup();
  await user.keyboard('{Control>}k{/Control}');
  return { user, field: await screen.findByRole('combobox') };
}

const active = () => {
  const id = screen.getByRole('combobox').getAttribute('aria-activedescendant');
  return id === null ? null : document.getElementById(id)?.textContent?.trim();
};

beforeEach(() => history.replaceState(null, '', '/'));
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

describe('the search', () => {
  it('begins with the newest chats and the cursor in the field', async () => {
    const { field } = await open();
    await waitFor(() => expect(field).toHaveFocus());
    expect(screen.getAllByRole('option').map(({ textContent }) => textContent?.trim())).toEqual([
      'Garden',
      'Letter',
    ]);
  });

  it('goes through results with the arrow keys, round and round', async () => {
    const { user } = await open();
    expect(active()).toBe('Garden');
    await user.keyboard('{ArrowDown}');
    expect(active()).toBe('Letter');
    await user.keyboard('{ArrowDown}');
    expect(active()).toBe('Garden');
    await user.keyboard('{ArrowUp}');
    expect(active()).toBe('Letter');
    expect(screen.getByRole('option', { selected: true })).toHaveTextContent('Letter');
  });

  it('asks once for what was typed in one go, and marks what it found', async () => {
    const { user, field } = await open();
    api.search.mockResolvedValue([hit(2, 21, 'heating')]);
    await user.type(field, 'heating');
    await waitFor(() => expect(screen.getByText('heating', { selector: 'mark' })).toBeVisible());
    expect(api.search.mock.calls.at(-1)).toEqual(['heating']);
    expect(api.search.mock.calls.length).toBeLessThan('heating'.length);
  });

  it('opens a result with Enter, at its turn, and closes', async () => {
    const { user, field } = await open();
    api.search.mockResolvedValue([hit(1, null, 'x'), hit(2, 21, 'x')]);
    api.openChat.mockResolvedValue(chatOf([turn({ id: 21, chat: 2, text: 'all x' })], chats[1]));
    await user.type(field, 'x');
    await waitFor(() => expect(document.querySelectorAll('mark')).toHaveLength(2));
    await user.keyboard('{ArrowDown}{Enter}');
    expect(api.openChat).toHaveBeenCalledExactlyOnceWith(2);
    await waitFor(() => expect(screen.queryByRole('combobox')).toBeNull());
    await waitFor(() => expect(document.title).toBe('Letter'));
  });

  it('does not open anything with an Enter that ends a composition', async () => {
    const { field } = await open();
    field.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }),
    );
    expect(api.openChat).not.toHaveBeenCalled();
  });

  it('stays open at an Escape that ends a composition', async () => {
    const { user, field } = await open();
    field.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Escape', isComposing: true, bubbles: true, cancelable: true }),
    );
    await tick();
    expect(field).toBeInTheDocument();
    await user.keyboard('{Escape}');
    await waitFor(() => expect(field).not.toBeInTheDocument());
  });

  it('shows the answer to the last question, in whatever order answers come', async () => {
    const { user, field } = await open();
    let answerFirst: (hits: SearchHit[]) => void = () => {};
    api.search
      .mockReturnValueOnce(new Promise((done) => (answerFirst = done)))
      .mockResolvedValueOnce([hit(2, 21, 'second')]);
    await user.type(field, 'a');
    await waitFor(() => expect(api.search).toHaveBeenCalledTimes(1));
    await user.type(field, 'b');
    await screen.findByText('second');
    answerFirst([hit(1, 11, 'first')]);
    await Promise.resolve();
    expect(screen.queryByText('first')).toBeNull();
  });

  it('says when there is nothing, and why it failed', async () => {
    const { user, field } = await open();
    await user.type(field, 'zebra');
    expect(await screen.findByText('Nothing found for “zebra”.')).toBeVisible();
    api.search.mockRejectedValue({ message: 'The index is damaged.' });
    await user.type(field, '!');
    expect(await screen.findByText('The search failed: The index is damaged.')).toBeVisible();
  });
});
