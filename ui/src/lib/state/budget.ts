// The window's tokens as the panel shows them: shares by owner and how near the window is to full.
import type { ContextUse } from '../bindings';

/** Whose tokens. */
export type Owner = 'system' | 'skills' | 'passages' | 'history' | 'draft' | 'reserved' | 'free';

/** How near the window is to full: 80 % is a warning, 95 % is red, above 100 % the message does not fit. */
export type Pressure = 'calm' | 'high' | 'full' | 'over';

/** One owner's tokens and share of the bar. */
export type Segment = { owner: Owner; tokens: number; share: number };

/** The bar: shares are of the window, or of what is needed when that is more. */
export function segmentsOf(use: ContextUse): Segment[] {
  const whole = Math.max(use.window, usedTokens(use), 1);
  const tokens: [Owner, number][] = [
    ['system', use.system],
    ['skills', use.skills],
    ['passages', use.passages],
    ['history', use.history],
    ['draft', use.draft],
    ['reserved', use.reservedOutput],
    ['free', use.free],
  ];
  return tokens.map(([owner, count]) => ({ owner, tokens: count, share: count / whole }));
}

/** What the next prompt takes, with what is kept for its answer. */
export const usedTokens = (use: ContextUse): number =>
  use.system + use.skills + use.passages + use.history + use.draft + use.reservedOutput;

/** The share of the window that is taken, in whole hundredths and never rounded up to a bound it has not reached. */
export const usedShare = (use: ContextUse): number =>
  Math.floor((usedTokens(use) / Math.max(use.window, 1)) * 100) / 100;

/** How near the window is to full. */
export function pressureOf(use: ContextUse): Pressure {
  const used = usedTokens(use);
  if (used > use.window) return 'over';
  if (used >= use.window * 0.95) return 'full';
  return used >= use.window * 0.8 ? 'high' : 'calm';
}
