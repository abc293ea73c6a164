import { createEvent, fireEvent, render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import type { Phase, Turn } from '../bindings';
import Answer from './Answer.svelte';
import BranchArrows from './BranchArrows.svelte';
import { anAnswer, aTurn } from './testing';
import TurnEditor from './TurnEditor.svelte';
import UserTurn from './UserTurn.svelte';

const button = (name: string) => screen.getByRole('button', { name });

describe('branch arrows', () => {
  const arrows = (index: number, siblings: number[], disabled = false) => {
    const onSelect = vi.fn();
    render(BranchArrows, { branch: { siblings, index }, onSelect, disabled });
    return { onSelect, user: userEvent.setup() };
  };

  it('are not there for a single version', () => {
    arrows(0, [5]);
    expect(screen.queryByRole('group')).toBeNull();
  });

  it('say which version this is and lead to its neighbours', async () => {
    const { onSelect, user } = arrows(1, [5, 8, 9]);
    expect(screen.getByText('2 / 3')).toBeInTheDocument();
    expect(screen.getByText('Version 2 of 3')).toBeInTheDocument();
    await user.click(button('Previous version'));
    await user.click(button('Next version'));
    expect(onSelect.mock.calls).toEqual([[5], [9]]);
  });

  it('end at the first and the last, and keep the focus', async () => {
    const { onSelect, user } = arrows(2, [5, 8, 9]);
    await user.click(button('Next version'));
    expect(onSelect).not.toHaveBeenCalled();
    expect(button('Next version')).toHaveAttribute('aria-disabled', 'true');
    expect(button('Next version')).toHaveFocus();
    expect(button('Previous version')).toHaveAttribute('aria-disabled', 'false');
  });

  it('lead nowhere while an answer is written', async () => {
    const { onSelect, user } = arrows(1, [5, 8, 9], true);
    await user.click(button('Previous version'));
    expect(onSelect).not.toHaveBeenCalled();
  });
});

describe('an answer', () => {
  const answer = (
    turn: Partial<Turn>,
    over: { phase?: Phase | null; isLast?: boolean; busy?: boolean } = {},
  ) => {
    const calls = {
      onRegenerate: vi.fn(),
      onContinue: vi.fn(),
      onStop: vi.fn(),
      onSelectBranch: vi.fn(),
      onLink: vi.fn(),
      onInspect: vi.fn(),
    };
    const view = render(Answer, {
      turn: anAnswer(turn),
      phase: null,
      isLast: true,
      busy: false,
      ...over,
      ...calls,
    });
    return { ...calls, ...view, user: userEvent.setup() };
  };

  it('that is done says how it was made, and the line leads to all of it', async () => {
    const { user, onInspect } = answer({ id: 7 });
    expect(screen.getByText('0.5 s to first token · 50 tokens/s')).toBeInTheDocument();
    expect(screen.getByText('60 of 100 prompt tokens reused')).toBeInTheDocument();
    await user.click(button('60 of 100 prompt tokens reused. Show how this prompt was read'));
    expect(onInspect).toHaveBeenCalledExactlyOnceWith(7);
  });

  it('can be copied as the markdown that it is', async () => {
    const { user } = answer({ text: '**a** `b`' });
    await user.click(button('Copy answer'));
    expect(await navigator.clipboard.readText()).toBe('**a** `b`');
    expect(screen.getByText('Copied')).toBeInTheDocument();
  });

  it('can be made anew, but not while another is written', async () => {
    const { user, onRegenerate, rerender } = answer({ id: 7 });
    await user.click(button('Regenerate'));
    expect(onRegenerate).toHaveBeenCalledExactlyOnceWith(7);
    await rerender({ busy: true });
    await user.click(button('Regenerate'));
    expect(onRegenerate).toHaveBeenCalledOnce();
    expect(button('Regenerate')).toHaveAttribute('title', expect.stringContaining('Wait until'));
  });

  it.each(['stopped', 'limit', 'interrupted'] as const)(
    'that ended as %s can go on, when it is the last',
    async (state) => {
      const { user, onContinue, rerender } = answer({ id: 7, state });
      await user.click(button('Continue'));
      expect(onContinue).toHaveBeenCalledExactlyOnceWith(7);
      await rerender({ isLast: false });
      expect(screen.queryByRole('button', { name: 'Continue' })).toBeNull();
    },
  );

  it.each(['done', 'window', 'repeating', 'failed'] as const)('that ended as %s cannot go on', (state) => {
    answer({ state });
    expect(screen.queryByRole('button', { name: 'Continue' })).toBeNull();
  });

  it('that failed says why and offers another try', async () => {
    const { user, onRegenerate } = answer({
      id: 7,
      text: '',
      state: 'failed',
      error: 'Not enough memory.',
      stats: null,
    });
    expect(screen.getByText('Not enough memory.')).toBeInTheDocument();
    await user.click(button('Try again'));
    expect(onRegenerate).toHaveBeenCalledExactlyOnceWith(7);
  });

  it('that was stopped for others says so in the program’s words', () => {
    answer({ state: 'stopped', error: 'stopped: its memory was needed' });
    expect(screen.getByText('stopped: its memory was needed')).toBeInTheDocument();
    expect(screen.queryByText('Stopped')).toBeNull();
  });

  it('that waits says for what, and can be stopped', async () => {
    const waiting = { id: 7, text: '', state: 'writing', stats: null } as const;
    const { user, onStop, rerender } = answer(waiting, { phase: { at: 'queued' }, busy: true });
    expect(screen.getByText('Waiting for its turn…')).toBeInTheDocument();
    await rerender({ phase: { at: 'loading' } });
    expect(screen.getByText('Loading the model…')).toBeInTheDocument();
    await user.click(button('Stop'));
    expect(onStop).toHaveBeenCalledExactlyOnceWith(7);
    expect(screen.queryByRole('button', { name: 'Copy answer' })).toBeNull();
  });

  it('shows how far the prompt is read', async () => {
    const reading = {
      at: 'reading',
      doneTokens: 1500,
      totalTokens: 4500,
      reusedTokens: 0,
      secondsLeft: 5.4,
    } as const;
    const { rerender } = answer({ text: '', state: 'writing', stats: null }, { phase: reading, busy: true });
    expect(screen.getByText('Reading 1,500 of 4,500 tokens – 6 s left')).toBeInTheDocument();
    const bar = screen.getByRole('progressbar', { name: 'Reading the prompt' });
    expect([bar.getAttribute('value'), bar.getAttribute('max')]).toEqual(['1500', '4500']);
    await rerender({ phase: { ...reading, secondsLeft: null } });
    expect(screen.getByText('Reading 1,500 of 4,500 tokens')).toBeInTheDocument();
  });

  it('that is being written has neither a footer nor a phase', () => {
    answer({ state: 'writing', text: 'So far' }, { phase: { at: 'writing' }, busy: true });
    expect(screen.getByText('So far')).toBeInTheDocument();
    expect(screen.queryByText(/first token|Writing/)).toBeNull();
  });
});

describe('a message', () => {
  const message = (
    turn: Partial<Turn> = {},
    over: { editing?: string | null; busy?: boolean; onAnswer?: (turn: number) => void } = {},
  ) => {
    const calls = { onEditing: vi.fn(), onEdit: vi.fn(), onSelectBranch: vi.fn() };
    const view = render(UserTurn, {
      turn: aTurn({ id: 3, ...turn }),
      busy: false,
      editing: null,
      onAnswer: null,
      ...over,
      ...calls,
    });
    return { ...calls, ...view, user: userEvent.setup() };
  };

  it('that was left without an answer can be answered, and no other', async () => {
    message();
    expect(screen.queryByRole('button', { name: 'Answer this' })).toBeNull();
    const onAnswer = vi.fn();
    const { user } = message({}, { onAnswer });
    await user.click(screen.getByRole('button', { name: 'Answer this' }));
    expect(onAnswer).toHaveBeenCalledWith(3);
  });

  it('is shown as it was written', () => {
    message({ text: '# no heading\n  **a** <b>' });
    const text = screen.getByText(/no heading/);
    expect(text.textContent).toBe('# no heading\n  **a** <b>');
    expect(text).toHaveAttribute('dir', 'auto');
  });

  it('that is very long is folded, until it is wanted', async () => {
    const { user } = message({ text: 'word '.repeat(2_000) + 'end' });
    expect(screen.queryByText(/end$/)).toBeNull();
    await user.click(button('Show all'));
    expect(screen.getByText(/end$/)).toBeInTheDocument();
    await user.click(button('Show less'));
    expect(screen.queryByText(/end$/)).toBeNull();
  });

  it('of many short lines is folded too', () => {
    message({ text: Array.from({ length: 100 }, (_, line) => `line ${line}`).join('\n') });
    expect(screen.getByText(/line 19/)).toBeInTheDocument();
    expect(screen.queryByText(/line 21/)).toBeNull();
  });

  it('can be edited, but not while an answer is written', async () => {
    const { user, onEditing, rerender } = message();
    await user.click(button('Edit message'));
    expect(onEditing).toHaveBeenCalledExactlyOnceWith('Hello');
    await rerender({ busy: true });
    await user.click(button('Edit message'));
    expect(onEditing).toHaveBeenCalledOnce();
  });

  it('that was edited is sent as a branch', async () => {
    const { user, onEditing, onEdit } = message({}, { editing: 'Hello, you' });
    await user.click(button('Save'));
    expect(onEditing).toHaveBeenCalledExactlyOnceWith(null);
    expect(onEdit).toHaveBeenCalledExactlyOnceWith(3, 'Hello, you');
  });

  it('that was not changed makes no branch', async () => {
    const { user, onEditing, onEdit } = message({}, { editing: 'Hello ' });
    await user.click(button('Save'));
    expect(onEditing).toHaveBeenCalledExactlyOnceWith(null);
    expect(onEdit).not.toHaveBeenCalled();
  });
});

describe('the editor of a message', () => {
  const editor = (text = 'Hello') => {
    const calls = { onInput: vi.fn(), onSave: vi.fn(), onCancel: vi.fn() };
    const view = render(TurnEditor, { text, ...calls });
    return {
      ...calls,
      ...view,
      field: screen.getByRole<HTMLTextAreaElement>('textbox'),
      user: userEvent.setup(),
    };
  };

  it('has the focus at the end of the text', () => {
    const { field } = editor();
    expect(field).toHaveFocus();
    expect(field.selectionStart).toBe(5);
    expect(field).toHaveAccessibleName('Edit your message');
    expect(field).toHaveAccessibleDescription(expect.stringContaining('Esc cancels'));
  });

  it('saves by Enter, breaks the line by Shift+Enter, cancels by Escape', async () => {
    const { field, user, onInput, onSave, onCancel } = editor();
    await user.type(field, '{Shift>}{Enter}{/Shift}');
    expect(onInput).toHaveBeenLastCalledWith('Hello\n');
    expect(onSave).not.toHaveBeenCalled();
    await user.type(field, '{Enter}');
    expect(onSave).toHaveBeenCalledOnce();
    await user.type(field, '{Escape}');
    expect(onCancel).toHaveBeenCalledOnce();
  });

  it('does not save by an Enter of the input method', async () => {
    const { field, onSave, onCancel } = editor();
    for (const how of [{ isComposing: true }, { keyCode: 229 }]) {
      await fireEvent(field, createEvent.keyDown(field, { key: 'Enter', ...how }));
      await fireEvent(field, createEvent.keyDown(field, { key: 'Escape', ...how }));
    }
    expect(onSave).not.toHaveBeenCalled();
    expect(onCancel).not.toHaveBeenCalled();
  });

  it('does not save nothing', async () => {
    const { field, user, onSave } = editor('  ');
    await user.type(field, '{Enter}');
    expect(onSave).not.toHaveBeenCalled();
    expect(button('Save')).toBeDisabled();
  });
});
