import { createEvent, fireEvent, render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, it, vi } from 'vitest';
import Composer from './Composer.svelte';
import { directionOf } from './long-draft';

function setUp(
  over: { draft?: string; busy?: boolean; tokenCount?: number | null; disabledReason?: string | null } = {},
) {
  const calls = { onSend: vi.fn(), onStop: vi.fn(), onDraft: vi.fn() };
  const view = render(Composer, { draft: '', busy: false, tokenCount: null, ...over, ...calls });
  const field = screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'Message' });
  return { ...calls, ...view, field, user: userEvent.setup() };
}

/** A drop or paste that carries files, or text. */
const transfer = (types: string[], files: File[] = []) =>
  ({ types, files, getData: () => '' }) as unknown as DataTransfer;
const aFile = new File(['x'], 'notes.txt', { type: 'text/plain' });

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
    expect(field).toHaveAccessibleDescription('Enter sends, Shift+Enter breaks the line.');
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
  it('dropped anywhere stay out of the page, and it is said that they cannot be attached', async () => {
    setUp();
    const over = createEvent.dragOver(document.body, { dataTransfer: transfer(['Files'], [aFile]) });
    await fireEvent(document.body, over);
    const drop = createEvent.drop(document.body, { dataTransfer: transfer(['Files'], [aFile]) });
    await fireEvent(document.body, drop);
    expect([over.defaultPrevented, drop.defaultPrevented]).toEqual([true, true]);
    expect(screen.getByRole('status')).toHaveTextContent('Files cannot be attached yet');
  });

  it('that are pasted are refused with the same words', async () => {
    const { field } = setUp();
    const paste = createEvent.paste(field, { clipboardData: transfer(['Files'], [aFile]) });
    await fireEvent(field, paste);
    expect(paste.defaultPrevented).toBe(true);
    expect(screen.getByRole('status')).toHaveTextContent('Files cannot be attached yet');
  });

  it('that come with their text are pasted as the text', async () => {
    const { field } = setUp();
    const paste = createEvent.paste(field, { clipboardData: transfer(['text/plain', 'Files'], [aFile]) });
    await fireEvent(field, paste);
    expect(paste.defaultPrevented).toBe(false);
    expect(screen.getByRole('status').textContent).toBe('');
  });

  it('are no matter of dropped text', async () => {
    const { field } = setUp();
    const drop = createEvent.drop(field, { dataTransfer: transfer(['text/plain']) });
    await fireEvent(field, drop);
    expect(drop.defaultPrevented).toBe(false);
  });

  it('are forgotten when typing goes on, or when it is dismissed', async () => {
    const { field, user } = setUp();
    await fireEvent.drop(window, { dataTransfer: transfer(['Files'], [aFile]) });
    await user.type(field, 'a');
    expect(screen.getByRole('status').textContent).toBe('');
    await fireEvent.drop(window, { dataTransfer: transfer(['Files'], [aFile]) });
    await user.click(screen.getByRole('button', { name: 'Dismiss' }));
    expect(screen.getByRole('status').textContent).toBe('');
  });
});
