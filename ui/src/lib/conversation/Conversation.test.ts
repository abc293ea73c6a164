import { fireEvent, render, screen, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { tick } from 'svelte';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Phase, Turn } from '../bindings';
import Conversation from './Conversation.svelte';
import { anAnswer, aTurn } from './testing';

/** Says that the window onto the turns is 600 pixels high, and every turn 100. */
class FakeResizeObserver {
  readonly #callback: ResizeObserverCallback;
  constructor(callback: ResizeObserverCallback) {
    this.#callback = callback;
  }
  observe(target: Element): void {
    const isWindow = target.matches('.viewport');
    const contentRect = { width: 800, height: isWindow ? 600 : 100 } as DOMRectReadOnly;
    const entry = { target, contentRect } as ResizeObserverEntry;
    queueMicrotask(() => this.#callback([entry], this as unknown as ResizeObserver));
  }
  unobserve(): void {}
  disconnect(): void {}
}

let height = 600;
beforeEach(() => {
  height = 600;
  vi.stubGlobal('ResizeObserver', FakeResizeObserver);
  vi.spyOn(HTMLElement.prototype, 'offsetParent', 'get').mockReturnValue(document.body);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockImplementation(() => height);
});

const many = (count: number): Turn[] =>
  Array.from({ length: count }, (_, index) =>
    index % 2 === 0
      ? aTurn({ id: index + 1, text: `Question ${index}` })
      : anAnswer({ id: index + 1, text: `Answer ${index}` }),
  );

async function show(turns: Turn[], over: { chatId?: number | null; phases?: Map<number, Phase> } = {}) {
  const calls = {
    onRegenerate: vi.fn(),
    onEdit: vi.fn(),
    onContinue: vi.fn(),
    onStop: vi.fn(),
    onSelectBranch: vi.fn(),
    onLink: vi.fn(),
  };
  const view = render(Conversation, { turns, phases: new Map(), chatId: 1, ...over, ...calls });
  await settle();
  const list = () => screen.getByRole('region', { name: 'Conversation' });
  return { ...calls, ...view, list, user: userEvent.setup() };
}

/** The list looks at its place a few ticks after it appears. */
async function settle(): Promise<void> {
  for (let round = 0; round < 6; round++) await tick();
}

describe('the conversation', () => {
  it('is a region of named articles with a heading each', async () => {
    await show([aTurn({ text: 'Why?' }), anAnswer({ text: 'Because.' })]);
    const [question, answer] = screen.getAllByRole('article');
    expect(question).toHaveAccessibleName('You');
    expect(answer).toHaveAccessibleName('Reprise');
    expect(within(question!).getByRole('heading', { level: 2, name: 'You' })).toBeInTheDocument();
    expect(answer).toHaveAttribute('aria-posinset', '2');
    expect(answer).toHaveAttribute('aria-setsize', '2');
  });

  it('keeps only some of a thousand turns in the page', async () => {
    await show(many(1000));
    const shown = screen.getAllByRole('article').length;
    expect(shown).toBeGreaterThan(0);
    expect(shown).toBeLessThan(40);
  });

  it('is reachable by keyboard', async () => {
    const { list } = await show(many(4));
    expect(list()).toHaveAttribute('tabindex', '0');
  });

  it('takes the phases of answers from a map or an object', async () => {
    const turns = [aTurn(), anAnswer({ text: '', state: 'writing', stats: null })];
    const { rerender } = await show(turns, { phases: new Map([[2, { at: 'loading' }]]) });
    expect(screen.getByText('Loading the model…')).toBeInTheDocument();
    await rerender({ phases: { 2: { at: 'queued' } } });
    expect(screen.getByText('Waiting for its turn…')).toBeInTheDocument();
  });

  it('finds a turn by its id, and says when there is none', async () => {
    const { component } = await show(many(10));
    const { scrollToTurn } = component as unknown as { scrollToTurn(id: number): boolean };
    expect(scrollToTurn(99)).toBe(false);
    expect(scrollToTurn(3)).toBe(true);
    await settle();
    expect(document.querySelector('.turn-marked')).toHaveAttribute('data-turn', '3');
  });
});

describe('announcements', () => {
  const writing = anAnswer({ text: 'So', state: 'writing', stats: null });
  const status = () => document.querySelector('.conversation > [role="status"]')?.textContent;

  it('are made once, when an answer ends', async () => {
    const { rerender } = await show([aTurn(), writing]);
    expect(status()).toBe('');
    await rerender({ turns: [aTurn(), { ...writing, text: 'So far' }] });
    expect(status()).toBe('');
    await rerender({ turns: [aTurn(), anAnswer({ text: 'So far so good' })] });
    expect(status()).toBe('Answer finished');
  });

  it('tell of failures', async () => {
    const { rerender } = await show([aTurn(), writing]);
    await rerender({ turns: [aTurn(), { ...writing, state: 'failed', error: 'Not enough memory.' }] });
    expect(status()).toBe('The answer failed. Not enough memory.');
  });

  it('are not made for answers that were there already', async () => {
    const { rerender } = await show(many(4));
    await rerender({ turns: many(6) });
    expect(status()).toBe('');
  });
});

describe('scrolling', () => {
  const scrollTo = (list: HTMLElement, top: number) => {
    list.scrollTop = top;
    return fireEvent.scroll(list);
  };
  const jump = () => screen.queryByRole('button', { name: 'Jump to the latest' });

  it('opens at the end', async () => {
    height = 5_000;
    const { list } = await show(many(100));
    expect(list().scrollTop).toBeGreaterThanOrEqual(4_400);
    expect(jump()).toBeNull();
  });

  it('draws nothing of the beginning on the way there', async () => {
    height = 9_000;
    const drawn: Node[] = [];
    const watcher = new MutationObserver((records) => {
      for (const { addedNodes } of records) drawn.push(...addedNodes);
    });
    watcher.observe(document.body, { childList: true, subtree: true });
    await show(many(100));
    watcher.disconnect();
    // Read only now: text comes into an element after the element came into the page.
    const text = drawn.map((node) => node.textContent).join();
    expect(text).toContain('Answer 99');
    expect(text).not.toContain('Question 0');
  });

  it('offers the way back to the end, and takes it', async () => {
    height = 5_000;
    const { list, user } = await show(many(100));
    list().scrollTo = vi.fn(
      ({ top }: ScrollToOptions) => void (list().scrollTop = top!),
    ) as typeof window.scrollTo;
    await scrollTo(list(), 4_400);
    await scrollTo(list(), 1_000);
    expect(jump()).not.toBeNull();
    await user.click(jump()!);
    expect(list().scrollTop).toBeGreaterThanOrEqual(4_400);
    expect(jump()).toBeNull();
  });

  it('goes to the end when a message was sent', async () => {
    height = 5_000;
    const turns = many(100);
    const { list, rerender } = await show(turns);
    await scrollTo(list(), 4_400);
    await scrollTo(list(), 1_000);
    height = 5_200;
    await rerender({
      turns: [...turns, aTurn({ id: 101 }), anAnswer({ id: 102, text: '', state: 'writing' })],
    });
    await settle();
    expect(list().scrollTop).toBeGreaterThanOrEqual(4_600);
  });

  it('stays where the person reads when more is written', async () => {
    height = 5_000;
    const turns = [
      ...many(100),
      aTurn({ id: 101 }),
      anAnswer({ id: 102, text: 'a', state: 'writing', stats: null }),
    ];
    const { list, rerender } = await show(turns);
    await scrollTo(list(), 4_400);
    await scrollTo(list(), 4_380);
    height = 5_200;
    await rerender({ turns: turns.with(-1, { ...turns.at(-1)!, text: 'a b' }) });
    await settle();
    expect(list().scrollTop).toBe(4_380);
  });

  it('begins anew with another chat', async () => {
    height = 5_000;
    const { list, rerender } = await show(many(100));
    await scrollTo(list(), 4_400);
    await scrollTo(list(), 1_000);
    await rerender({ turns: many(50), chatId: 2 });
    await settle();
    expect(list().scrollTop).toBeGreaterThanOrEqual(4_400);
    expect(jump()).toBeNull();
  });
});

describe('the focus', () => {
  it('stays on the arrow when another version takes a turn’s place', async () => {
    const branch = (index: number) => ({ siblings: [2, 3, 4], index });
    const { user, rerender } = await show([aTurn(), anAnswer({ id: 2, branch: branch(0) })]);
    await user.tab();
    screen.getByRole('button', { name: 'Next version' }).focus();
    await user.keyboard('{Enter}');
    await rerender({ turns: [aTurn(), anAnswer({ id: 3, branch: branch(1) })] });
    await settle();
    const arrow = screen.getByRole('button', { name: 'Next version' });
    expect(arrow.closest('article')).toHaveAttribute('data-turn', '3');
    expect(arrow).toHaveFocus();
  });

  it('stays in the conversation when the button is gone', async () => {
    const { user, rerender, list } = await show([aTurn(), anAnswer({ id: 2 })]);
    screen.getByRole('button', { name: 'Regenerate' }).focus();
    await user.keyboard('{Enter}');
    await rerender({ turns: [aTurn(), anAnswer({ id: 3, text: '', state: 'writing' })] });
    await settle();
    expect(list()).toHaveFocus();
  });

  it('is not taken from where the person put it meanwhile', async () => {
    const { user, rerender } = await show([aTurn(), anAnswer({ id: 2 })]);
    screen.getByRole('button', { name: 'Regenerate' }).focus();
    await user.keyboard('{Enter}');
    await user.click(document.body);
    await rerender({ turns: [aTurn(), anAnswer({ id: 3, text: '', state: 'writing' })] });
    await settle();
    expect(document.body).toHaveFocus();
  });
});

describe('editing', () => {
  it('keeps what was typed while more is written, and asks anew by Enter', async () => {
    const turns = [aTurn({ text: 'Why?' }), anAnswer()];
    const { user, rerender, onEdit } = await show(turns);
    await user.click(screen.getByRole('button', { name: 'Edit message' }));
    await user.keyboard(' And how?');
    await rerender({ turns: [...turns] });
    await user.keyboard('{Enter}');
    expect(onEdit).toHaveBeenCalledExactlyOnceWith(1, 'Why? And how?');
    expect(screen.queryByRole('textbox')).toBeNull();
  });

  it('is cancelled by Escape, which stops nothing else', async () => {
    const { user, onEdit, onStop } = await show([aTurn({ text: 'Why?' }), anAnswer()]);
    await user.click(screen.getByRole('button', { name: 'Edit message' }));
    await user.keyboard('x{Escape}');
    expect(screen.getByText('Why?')).toBeInTheDocument();
    expect(onEdit).not.toHaveBeenCalled();
    expect(onStop).not.toHaveBeenCalled();
  });
});
