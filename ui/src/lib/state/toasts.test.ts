import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Toasts } from './toasts.svelte';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const messages = (toasts: Toasts) => toasts.shown.map(({ message }) => message);

it('a message goes after its time', () => {
  const toasts = new Toasts();
  toasts.info('saved', { lifeMs: 5_000 });
  vi.advanceTimersByTime(4_999);
  expect(messages(toasts)).toEqual(['saved']);
  vi.advanceTimersByTime(1);
  expect(messages(toasts)).toEqual([]);
});

it('a message without an end stays until it is dismissed', () => {
  const toasts = new Toasts();
  const id = toasts.info('read me', { lifeMs: null });
  vi.advanceTimersByTime(1e9);
  expect(messages(toasts)).toEqual(['read me']);
  toasts.dismiss(id);
  expect(messages(toasts)).toEqual([]);
});

it('time stands still while a message is held, and the rest of it counts afterwards', () => {
  const toasts = new Toasts();
  toasts.info('undo?', { lifeMs: 10_000 });
  vi.advanceTimersByTime(8_000);
  toasts.hold();
  vi.advanceTimersByTime(60_000);
  expect(messages(toasts)).toEqual(['undo?']);
  toasts.release();
  vi.advanceTimersByTime(1_999);
  expect(messages(toasts)).toEqual(['undo?']);
  vi.advanceTimersByTime(1);
  expect(messages(toasts)).toEqual([]);
});

it('a message that comes while others are held waits with them', () => {
  const toasts = new Toasts();
  toasts.info('first', { lifeMs: null });
  toasts.hold();
  toasts.info('second', { lifeMs: 2_000 });
  vi.advanceTimersByTime(60_000);
  expect(messages(toasts)).toEqual(['first', 'second']);
  toasts.release();
  vi.advanceTimersByTime(2_000);
  expect(messages(toasts)).toEqual(['first']);
});

it('the same failure is shown once', () => {
  const toasts = new Toasts();
  toasts.error('disk full');
  toasts.error('disk full');
  expect(messages(toasts)).toEqual(['disk full']);
});

it('the oldest goes when there are too many', () => {
  const toasts = new Toasts();
  for (const message of ['1', '2', '3', '4', '5']) toasts.info(message);
  expect(messages(toasts)).toEqual(['2', '3', '4', '5']);
});
