import { createEvent, fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api, resetApi } from '../../test/api';
import { aDocument, aSkill, skillList } from '../../test/values';
import { Attached } from '../state/attached.svelte';
import Composer from './Composer.svelte';
import { directionOf } from './long-draft';

vi.mock('../api', async () => (await import('../../test/api')).api);

function setUp(
  over: {
    draft?: string;
    busy?: boolean;
    tokenCount?: number | null;
    disabledReason?: string | null;
    attached?: Attached;
  } = {},
) {
  const calls = { onSend: vi.fn(), onStop: vi.fn(), onDraft: vi.fn() };
  const attached = over.attached ?? new Attached();
  const view = render(Composer, { draft: '', busy: false, tokenCount: null, ...over, attached, ...calls });
  const field = screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'Message' });
  return { ...calls, ...view, attached, field, user: userEvent.setup() };
}

/** A drop or paste that carries files, or text. */
const transfer = (types: string[], files: File[] = []) =>
  ({ types, files, getData: () => '' }) as unknown as DataTransfer;
const aFile = new File(['x'], 'notes.txt', { type: 'text/plain' });

// jsdom lays nothing out, and a menu beside a button that is nowhere is not shown.
const rects = () =>
  vi
    .spyOn(Element.prototype, 'getClientRects')
    .mockImplementation(() => [new DOMRect(0, 0, 80, 30)] as unknown as DOMRectList);

beforeEach(() => {
  resetApi();
  rects();
});
afterEach(() => vi.restoreAllMocks());

describe('sending', () => {
  it('is by Enter: the text as typed, then the field is empty and has the focus', async () => {
    const { field, user, onSend, onDraft } = setUp();
    await user.type(field, ' Hello{Enter}');
    expect(onSend).toHaveBeenCalledExactlyOnceWith(' Hello');
    expect(field).toHaveValue('');
    expect(field).toHaveFocus();
    expect(onDraft).toHaveBeenLastCalledWith('');
  });

  it('is by the button too, and the focus returns', async () => {
    const { field, user, onSend } = setUp({ draft: 'Hello' });
    await user.click(screen.getByRole('button', { name: 'Send' }));
    expect(onSend).toHaveBeenCalledExactlyOnceWith('Hello');
    expect(field).toHaveFocus();
  });

  it.each(['{Control>}{Enter}{/Control}', '{Meta>}{Enter}{/Meta}'])('is by %s', async (keys) => {
    const { field, user, onSend } = setUp({ draft: 'Hello' });
    await user.click(field);
    await user.keyboard(keys);
    expect(onSend).toHaveBeenCalledOnce();
  });

  it('is not by Shift+Enter, which breaks the line', async () => {
    const { field, user, onSend } = setUp();
    await user.type(field, 'a{Shift>}{Enter}{/Shift}b');
    expect(onSend).not.toHaveBeenCalled();
    expect(field).toHaveValue('a\nb');
  });

  it.each([{ isComposing: true }, { keyCode: 229 }])(
    'is not by an Enter of the input method: %j',
    async (how) => {
      const { field, onSend } = setUp({ draft: 'にほん' });
      const event = createEvent.keyDown(field, { key: 'Enter', ...how });
      await fireEvent(field, event);
      expect(onSend).not.toHaveBeenCalled();
      // The input method needs its key.
      expect(event.defaultPrevented).toBe(false);
    },
  );

  it('does nothing with only white space', async () => {
    const { field, user, onSend } = setUp();
    await user.type(field, '  {Shift>}{Enter}{/Shift} {Enter}');
    expect(onSend).not.toHaveBeenCalled();
    expect(screen.getByRole('button', { name: 'Send' })).toHaveAttribute('aria-disabled', 'true');
  });

  it('does nothing while there is a reason not to, and says it', async () => {
    const { field, user, onSend } = setUp({ draft: 'a', disabledReason: 'The model could not be loaded.' });
    await user.type(field, '{Enter}');
    expect(onSend).not.toHaveBeenCalled();
    expect(field).toHaveValue('a');
    expect(screen.getByRole('status')).toHaveTextContent('The model could not be loaded.');
  });
});

describe('while an answer is written', () => {
  it('Enter sends nothing, keeps the text, and it is said why', async () => {
    const { field, user, onSend, onDraft } = setUp({ busy: true });
    await user.type(field, 'next{Enter}');
    expect(onSend).not.toHaveBeenCalled();
    expect(field).toHaveValue('next');
    expect(onDraft).toHaveBeenLastCalledWith('next');
    expect(screen.getByRole('status')).toHaveTextContent('once the answer is finished');
  });

  it('the button stops it', async () => {
    const { user, onStop } = setUp({ busy: true });
    expect(screen.queryByRole('button', { name: 'Send' })).toBeNull();
    await user.click(screen.getByRole('button', { name: 'Stop the answer' }));
    expect(onStop).toHaveBeenCalledOnce();
  });

  it('Escape stops it once, and does nothing else', async () => {
    const { field, user, onStop } = setUp({ busy: true, draft: 'kept' });
    const outside = vi.fn();
    window.addEventListener('keydown', outside);
    await user.type(field, '{Escape}');
    window.removeEventListener('keydown', outside);
    expect(onStop).toHaveBeenCalledOnce();
    expect(outside.mock.calls.map(([event]) => (event as KeyboardEvent).key)).not.toContain('Escape');
    expect(field).toHaveValue('kept');
  });

  it('Escape of the input method stops nothing', async () => {
    const { field, onStop } = setUp({ busy: true });
    await fireEvent.keyDown(field, { key: 'Escape', isComposing: true });
    expect(onStop).not.toHaveBeenCalled();
  });
});

it('leaves Escape alone when there is nothing to stop', async () => {
  const { field, onStop } = setUp();
  const event = createEvent.keyDown(field, { key: 'Escape' });
  await fireEvent(field, event);
  expect(onStop).not.toHaveBeenCalled();
  expect(event.defaultPrevented).toBe(false);
});

describe('the field', () => {
  it('grows with its text to ten lines, then scrolls', async () => {
    const lines = (field: HTMLTextAreaElement) => field.value.split('\n').length;
    vi.spyOn(HTMLTextAreaElement.prototype, 'scrollHeight', 'get').mockImplementation(function (
      this: HTMLTextAreaElement,
    ) {
      return lines(this) * 24;
    });
    const { field, rerender } = setUp({ draft: 'a' });
    expect(field.style).toMatchObject({ height: '24px', overflowY: 'hidden' });
    await rerender({ draft: 'a\n'.repeat(6) + 'a' });
    expect(field.style).toMatchObject({ height: '168px', overflowY: 'hidden' });
    await rerender({ draft: 'a\n'.repeat(60) });
    expect(field.style).toMatchObject({ height: '240px', overflowY: 'auto' });
    await rerender({ draft: '' });
    expect(field.style).toMatchObject({ height: '24px', overflowY: 'hidden' });
  });

  it('does not measure a text that is surely too long', async () => {
    const measure = vi.spyOn(HTMLTextAreaElement.prototype, 'scrollHeight', 'get').mockReturnValue(24);
    const { field, rerender } = setUp();
    measure.mockClear();
    await rerender({ draft: 'a'.repeat(30_000) });
    expect(measure).not.toHaveBeenCalled();
    expect(field.style.height).toBe('240px');
  });

  it('finds its direction by what is typed, and says how it is used', () => {
    const { field } = setUp();
    expect(field).toHaveAttribute('dir', 'auto');
    expect(field).toHaveAccessibleDescription(/^Enter sends, Shift\+Enter breaks the line\./);
  });

  it('tells how many tokens are typed', async () => {
    const { rerender } = setUp({ draft: 'Hello', tokenCount: 1234 });
    expect(screen.getByText('1,234 tokens')).toBeInTheDocument();
    await rerender({ tokenCount: 1 });
    expect(screen.getByText('1 token')).toBeInTheDocument();
    await rerender({ tokenCount: null });
    expect(screen.queryByText(/token/)).toBeNull();
  });
});

describe('a very long text', () => {
  const long = 'word '.repeat(200_000);
  const paste = (field: HTMLElement, text: string) => {
    const clipboardData = {
      types: ['text/plain'],
      files: [],
      getData: () => text,
    } as unknown as DataTransfer;
    return fireEvent.paste(field, { clipboardData });
  };

  it('that is pasted stays out of the field, and is sent with what is typed', async () => {
    const { field, user, onSend, onDraft } = setUp();
    await user.type(field, 'Sum this up:');
    expect(await paste(field, long)).toBe(false);
    expect(field).toHaveValue('Sum this up:');
    expect(screen.getByText('Long text, 1,000,000 characters')).toBeInTheDocument();
    expect(onDraft).toHaveBeenLastCalledWith(`Sum this up:\n\n${long}`);
    await user.type(field, '{Enter}');
    expect(onSend).toHaveBeenCalledExactlyOnceWith(`Sum this up:\n\n${long}`);
    expect(screen.queryByText(/Long text/)).toBeNull();
  });

  it('can be taken away again', async () => {
    const { field, user, onDraft } = setUp({ draft: 'kept' });
    await paste(field, long);
    await user.click(screen.getByRole('button', { name: 'Remove the long text' }));
    expect(onDraft).toHaveBeenLastCalledWith('kept');
    expect(field).toHaveValue('kept');
    expect(field).toHaveFocus();
  });

  it('that is the draft of another chat is folded too', async () => {
    const { field, rerender } = setUp({ draft: 'short' });
    await rerender({ draft: long });
    expect(field).toHaveValue('');
    expect(screen.getByText('Long text, 1,000,000 characters')).toBeInTheDocument();
    await rerender({ draft: 'short' });
    expect(field).toHaveValue('short');
    expect(screen.queryByText(/Long text/)).toBeNull();
  });

  it('that is not so long goes into the field', async () => {
    const { field } = setUp();
    expect(await paste(field, 'a'.repeat(50_000))).toBe(true);
    expect(screen.queryByText(/Long text/)).toBeNull();
  });

  it('has the direction of its first letter', () => {
    expect(directionOf('שלום')).toBe('auto');
    expect(directionOf('1. ' + 'שלום '.repeat(2_000))).toBe('rtl');
    expect(directionOf('1. ' + 'word '.repeat(2_000))).toBe('ltr');
  });
});

describe('files', () => {
  const withFiles = async () => {
    const view = setUp();
    return { ...view, chips: () => screen.queryAllByTestId('composer-chip').map((chip) => chip.textContent) };
  };

  it('dropped anywhere stay out of the page, and become documents of the message', async () => {
    const { chips, attached } = await withFiles();
    const over = createEvent.dragOver(document.body, { dataTransfer: transfer(['Files'], [aFile]) });
    await fireEvent(document.body, over);
    const drop = createEvent.drop(document.body, { dataTransfer: transfer(['Files'], [aFile]) });
    await fireEvent(document.body, drop);
    expect([over.defaultPrevented, drop.defaultPrevented]).toEqual([true, true]);
    await waitFor(() => expect(api.attachFile).toHaveBeenCalledOnce());
    const [name, bytes] = api.attachFile.mock.calls[0]!;
    expect([name, [...bytes]]).toEqual(['notes.txt', [120]]);
    await waitFor(() => expect(chips()).toEqual([expect.stringMatching(/notes\.txt\s*reading…/)]));
    expect(attached.asked()).toEqual({ documents: ['notes.txt'], allDocuments: false, skills: [] });
  });

  it('that are pasted are attached the same way', async () => {
    const { field } = await withFiles();
    const paste = createEvent.paste(field, { clipboardData: transfer(['Files'], [aFile]) });
    await fireEvent(field, paste);
    expect(paste.defaultPrevented).toBe(true);
    await waitFor(() => expect(api.attachFile).toHaveBeenCalledOnce());
  });

  it('that come with their text are pasted as the text', async () => {
    const { field } = await withFiles();
    const paste = createEvent.paste(field, { clipboardData: transfer(['text/plain', 'Files'], [aFile]) });
    await fireEvent(field, paste);
    expect(paste.defaultPrevented).toBe(false);
    expect(api.attachFile).not.toHaveBeenCalled();
  });

  it('are no matter of dropped text', async () => {
    const { field } = await withFiles();
    const drop = createEvent.drop(field, { dataTransfer: transfer(['text/plain']) });
    await fireEvent(field, drop);
    expect(drop.defaultPrevented).toBe(false);
  });

  it('are chosen from the menu', async () => {
    const { user } = await withFiles();
    await user.click(screen.getByRole('button', { name: 'Add documents and skills' }));
    expect(await screen.findByRole('menuitem', { name: 'Attach files…' })).toBeVisible();
    await user.keyboard('{Escape}');
    await user.upload(screen.getByTestId('file-picker'), [aFile, new File(['y'], 'photo.png')]);
    await waitFor(() => expect(screen.getAllByTestId('composer-chip')).toHaveLength(2));
  });

  it('that are still being copied hold the message back, and it is said', async () => {
    let copied = (): void => {};
    const { field, user, onSend, attached } = await withFiles();
    api.attachFile.mockReturnValue(
      new Promise((resolve) => (copied = () => resolve(aDocument({ id: 'd9', name: 'notes.txt' })))),
    );
    await fireEvent.drop(window, { dataTransfer: transfer(['Files'], [aFile]) });
    await user.type(field, 'Sum it up{Enter}');
    expect(onSend).not.toHaveBeenCalled();
    expect(screen.getByText(/as soon as the files are copied/)).toBeInTheDocument();
    await waitFor(() => expect(api.attachFile).toHaveBeenCalled());
    copied();
    await waitFor(() => expect(onSend).toHaveBeenCalledExactlyOnceWith('Sum it up'));
    expect(attached.isCopying).toBe(false);
  });

  it('that cannot be had leave the message that waited for them', async () => {
    let fail = (): void => {};
    const { field, user, onSend, attached } = await withFiles();
    api.attachFile.mockReturnValue(
      new Promise((_, reject) => (fail = () => reject(new Error('The disk is full.')))),
    );
    await fireEvent.drop(window, { dataTransfer: transfer(['Files'], [aFile]) });
    await user.type(field, 'Sum it up{Enter}');
    await waitFor(() => expect(api.attachFile).toHaveBeenCalled());
    fail();
    await waitFor(() => expect(attached.isCopying).toBe(false));
    expect(onSend).not.toHaveBeenCalled();
    expect(field).toHaveValue('Sum it up');
  });

  it('that cannot be had say why, and leave nothing', async () => {
    const onFailure = vi.fn();
    setUp({ attached: new Attached(onFailure) });
    api.attachFile.mockRejectedValue({ message: 'The disk is full.' });
    await fireEvent.drop(window, { dataTransfer: transfer(['Files'], [aFile]) });
    await waitFor(() =>
      expect(onFailure).toHaveBeenCalledExactlyOnceWith('notes.txt was not attached: The disk is full.'),
    );
    expect(screen.queryAllByTestId('composer-chip')).toEqual([]);
  });
});

describe('picking a document', () => {
  const garden = aDocument({ id: 'd1', name: 'garden.pdf' });
  const options = () =>
    screen.queryAllByRole('option').map((option) => option.querySelector('.name')?.textContent);

  it('is by @ and its name; what was typed for it goes, and a chip comes', async () => {
    const { field, user, attached, onSend } = setUp();
    api.suggestDocuments.mockResolvedValue([garden]);
    await user.type(field, 'About @gar');
    await waitFor(() => expect(api.suggestDocuments).toHaveBeenLastCalledWith('gar'));
    await waitFor(() => expect(options()).toEqual(['garden.pdf']));
    expect(field).toHaveAttribute('aria-activedescendant', screen.getByRole('option').id);
    expect(field).toHaveAttribute('aria-controls', screen.getByRole('listbox').id);
    await waitFor(async () => {
      await user.keyboard('{Enter}');
      expect(field).toHaveValue('About ');
    });
    expect(onSend).not.toHaveBeenCalled();
    expect(screen.getByTestId('composer-chip')).toHaveTextContent('garden.pdf');
    expect(attached.asked().documents).toEqual(['d1']);
    expect(screen.queryByRole('listbox')).toBeNull();
  });

  it('offers all of them first, and goes by arrow keys and Tab', async () => {
    const { field, user, attached } = setUp();
    api.suggestDocuments.mockResolvedValue([garden, aDocument({ id: 'd2', name: 'soup.md' })]);
    await user.type(field, '@');
    await waitFor(() => expect(options()).toEqual(['All documents', 'garden.pdf', 'soup.md']));
    await user.keyboard('{ArrowUp}');
    expect(screen.getByRole('option', { selected: true })).toHaveTextContent('soup.md');
    await user.keyboard('{ArrowDown}{Tab}');
    expect(attached.allDocuments).toBe(true);
    expect(field).toHaveFocus();
    await user.click(screen.getByRole('button', { name: 'Remove All documents' }));
    expect(attached.allDocuments).toBe(false);
  });

  it('is given up by Escape, which stops nothing', async () => {
    const { field, user, onStop } = setUp({ busy: true });
    await user.type(field, '@x{Escape}');
    expect(screen.queryByTestId('mention-menu')).toBeNull();
    expect(onStop).not.toHaveBeenCalled();
    await user.keyboard('y');
    expect(screen.queryByTestId('mention-menu')).toBeNull();
    await user.keyboard(' @');
    expect(screen.getByTestId('mention-menu')).toBeInTheDocument();
  });

  it('leaves Enter to the message where nothing fits', async () => {
    const { field, user, onSend } = setUp();
    await user.type(field, 'Hi @nobody');
    expect(await screen.findByText('No document fits “nobody”.')).toBeVisible();
    await user.keyboard('{Enter}');
    expect(onSend).toHaveBeenCalledExactlyOnceWith('Hi @nobody');
  });

  it('takes no key of the input method', async () => {
    const { field, user, attached } = setUp();
    api.suggestDocuments.mockResolvedValue([garden]);
    await user.type(field, '@gar');
    await waitFor(() => expect(options()).toEqual(['garden.pdf']));
    await fireEvent.keyDown(field, { key: 'Enter', isComposing: true });
    expect(attached.documents).toEqual([]);
  });

  it('begins from the menu too', async () => {
    const { field, user } = setUp({ draft: 'About' });
    await user.click(screen.getByRole('button', { name: 'Add documents and skills' }));
    await user.click(await screen.findByRole('menuitem', { name: /^Documents/ }));
    expect(await screen.findByTestId('mention-menu')).toBeInTheDocument();
    expect(field).toHaveValue('About @');
    expect(field).toHaveFocus();
  });
});

it('picks a skill by a / at the beginning, among those that are on', async () => {
  const { field, user, attached } = setUp();
  api.listSkills.mockResolvedValue(
    skillList({
      skills: [aSkill(), aSkill({ name: 'tidy-off', isEnabled: false }), aSkill({ name: 'count' })],
    }),
  );
  await user.type(field, '/tidy');
  expect(await screen.findByRole('option')).toHaveTextContent('tidy-notes');
  await user.keyboard('{Enter}');
  expect(field).toHaveValue('');
  expect(attached.skills).toEqual(['tidy-notes']);
});
