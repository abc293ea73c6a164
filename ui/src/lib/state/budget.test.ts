import { expect, it } from 'vitest';
import type { ContextUse } from '../bindings';
import { pressureOf, segmentsOf, usedShare } from './budget';

const use = (change: Partial<ContextUse> = {}): ContextUse => ({
  window: 1000,
  system: 0,
  skills: 0,
  passages: 0,
  history: 0,
  draft: 0,
  typed: 0,
  reservedOutput: 0,
  free: 1000,
  hiddenTurns: 0,
  ...change,
});

it('the bar is full when the window is', () => {
  const parts = segmentsOf(
    use({ system: 100, skills: 50, passages: 50, history: 100, draft: 50, reservedOutput: 250, free: 400 }),
  );
  expect(parts.map(({ share }) => share)).toEqual([0.1, 0.05, 0.05, 0.1, 0.05, 0.25, 0.4]);
});

it('the bar stays within its bounds when the draft does not fit', () => {
  const parts = segmentsOf(use({ draft: 1500, reservedOutput: 500, free: 0 }));
  expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
});

it.each([
  [799, 'calm'],
  [800, 'high'],
  [949, 'high'],
  [950, 'full'],
  [1000, 'full'],
  [1001, 'over'],
])('%i of 1,000 tokens is %s', (history, pressure) => {
  expect(pressureOf(use({ history }))).toBe(pressure);
});

it('never shows a share that was not reached', () => {
  expect(usedShare(use({ history: 949 }))).toBe(0.94);
  expect(usedShare(use({ window: 0 }))).toBe(0);
});
