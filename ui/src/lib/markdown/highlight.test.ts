import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HighlightRequest } from './tokens';

/** A worker that does nothing but remember, and answers when it is told to. */
class FakeWorker extends EventTarget {
  static all: FakeWorker[] = [];
  readonly asked: HighlightRequest[] = [];
  isTerminated = false;
  constructor() {
    super();
    FakeWorker.all.push(this);
  }
  postMessage(request: HighlightRequest): void {
    this.asked.push(request);
  }
  terminate(): void {
    this.isTerminated = true;
  }
  answer(session: number, from: number, given: number): void {
    const lines = Array.from({ length: given }, () => []);
    this.dispatchEvent(new MessageEvent('message', { data: { session, from, lines, given } }));
  }
}

async function fresh() {
  vi.resetModules();
  return (await import('./highlight')).openHighlight;
}

beforeEach(() => {
  FakeWorker.all = [];
  vi.useFakeTimers();
  vi.stubGlobal('Worker', FakeWorker);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('highlighting from the page', () => {
  it('needs no worker for a language that nobody knows', async () => {
    const openHighlight = await fresh();
    expect(openHighlight('brainfuck', () => {})).toBeNull();
    expect(FakeWorker.all).toHaveLength(0);
  });

  it('is plain where there are no workers', async () => {
    vi.stubGlobal('Worker', undefined);
    const openHighlight = await fresh();
    expect(openHighlight('ts', () => {})).toBeNull();
  });

  it('is plain from then on when the worker does not load', async () => {
    const openHighlight = await fresh();
    openHighlight('ts', () => {});
    FakeWorker.all[0]!.dispatchEvent(new Event('error'));
    expect(openHighlight('ts', () => {})).toBeNull();
  });

  it('gives each block its own lines', async () => {
    const openHighlight = await fresh();
    const [first, second] = [vi.fn(), vi.fn()];
    openHighlight('ts', first)!.append(['a']);
    openHighlight('rs', second)!.append(['b', 'c']);
    const [worker] = FakeWorker.all;
    expect(worker!.asked).toMatchObject([
      { session: 1, language: 'typescript', lines: ['a'] },
      { session: 2, language: 'rust', lines: ['b', 'c'] },
    ]);
    worker!.answer(2, 0, 2);
    expect(first).not.toHaveBeenCalled();
    expect(second).toHaveBeenCalledExactlyOnceWith(0, [[], []]);
  });

  it('hears nothing more of a block that was closed', async () => {
    const openHighlight = await fresh();
    const onLines = vi.fn();
    const session = openHighlight('ts', onLines)!;
    session.append(['a']);
    session.close();
    FakeWorker.all[0]!.answer(1, 0, 1);
    expect(onLines).not.toHaveBeenCalled();
    expect(FakeWorker.all[0]!.asked.at(-1)).toEqual({ kind: 'close', session: 1 });
  });

  it('gives up a worker that hangs, and begins with a new one', async () => {
    const openHighlight = await fresh();
    const session = openHighlight('ts', () => {})!;
    session.append(['(a+)+$']);
    vi.advanceTimersByTime(60_000);
    expect(FakeWorker.all[0]!.isTerminated).toBe(true);
    session.append(['more']);
    openHighlight('ts', () => {})!.append(['b']);
    expect(FakeWorker.all[1]!.asked).toHaveLength(1);
  });

  it('waits for no worker that owes nothing', async () => {
    const openHighlight = await fresh();
    openHighlight('ts', () => {})!.append(['a']);
    FakeWorker.all[0]!.answer(1, 0, 1);
    vi.advanceTimersByTime(600_000);
    expect(FakeWorker.all[0]!.isTerminated).toBe(false);
  });
});
