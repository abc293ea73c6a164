import { describe, expect, it } from 'vitest';
import { inspection } from '../../test/values';
import { callsOf, kindOf, partsOf, timePartsOf, totalsOf } from './views';

describe('how a prompt was read', () => {
  const told = inspection();

  it('counts every token once', () => {
    const totals = totalsOf(told);
    expect(totals).toEqual({ prefix: 600, moved: 170, recomputed: 30, new: 200 });
    expect(Object.values(totals).reduce((sum, count) => sum + count)).toBe(told.promptTokens);
  });

  it('shows what the pool had and what was stored as the same beginning', () => {
    expect(told.stretches.map(({ how }) => kindOf[how])).toEqual([
      'prefix',
      'prefix',
      'recomputed',
      'moved',
      'new',
    ]);
  });

  it('puts stretches under the parts they belong to', () => {
    expect(partsOf(told.stretches).map(({ part, stretches }) => [part, stretches.length])).toEqual([
      ['system', 1],
      ['turn', 3],
      ['question', 1],
    ]);
  });

  it('joins calls that are alike', () => {
    expect(callsOf(told.calls)).toEqual([
      { purpose: 'fillIn', tokens: 128, count: 2 },
      { purpose: 'probe', tokens: 40, count: 1 },
    ]);
  });

  it('tells what was waited for, which adds up to the time to the first token', () => {
    const parts = timePartsOf(told.times!);
    expect(parts.map(({ step }) => step)).toEqual(['matching', 'loading', 'turning', 'computing', 'rest']);
    expect(parts.reduce((sum, { waitedMs }) => sum + waitedMs, 0)).toBe(500);
    expect(parts.find(({ step }) => step === 'loading')).toEqual({
      step: 'loading',
      waitedMs: 20,
      hiddenMs: 40,
    });
  });
});
