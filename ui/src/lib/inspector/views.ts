// How a prompt was read, in the forms in which it is shown. Only formatting and sums; the engine counts.
import type { Call, How, Inspection, Stretch, Times } from '../bindings';

/** How tokens were obtained, as colours and patterns tell it. */
export type Kind = 'prefix' | 'moved' | 'recomputed' | 'new';

/** All kinds, in the order of the legend. */
export const kinds: readonly Kind[] = ['prefix', 'moved', 'recomputed', 'new'];

/** What each way of obtaining tokens is shown as. */
export const kindOf: Readonly<Record<How, Kind>> = {
  pool: 'prefix',
  stored: 'prefix',
  moved: 'moved',
  again: 'recomputed',
  new: 'new',
};

/** The prompt's tokens of each kind; together all of them. */
export function totalsOf(inspection: Inspection): Record<Kind, number> {
  const { promptTokens, prefixTokens, movedTokens, recomputedTokens } = inspection;
  return {
    prefix: prefixTokens,
    moved: movedTokens - recomputedTokens,
    recomputed: recomputedTokens,
    new: promptTokens - prefixTokens - movedTokens,
  };
}

/** A part of the prompt with a heading of its own, and the stretches in it. */
export type Part = { key: number; part: Stretch['part']; owner: string | null; stretches: Stretch[] };

/** The stretches under the parts of the prompt that they belong to. */
export function partsOf(stretches: readonly Stretch[]): Part[] {
  const parts: Part[] = [];
  for (const stretch of stretches) {
    const last = parts.at(-1);
    if (last !== undefined && last.part === stretch.part && last.owner === stretch.owner) {
      last.stretches.push(stretch);
    } else {
      parts.push({ key: stretch.from, part: stretch.part, owner: stretch.owner, stretches: [stretch] });
    }
  }
  return parts;
}

/** Calls alike that follow each other, as one with a count. */
export function callsOf(calls: readonly Call[]): (Call & { count: number })[] {
  const runs: (Call & { count: number })[] = [];
  for (const call of calls) {
    const last = runs.at(-1);
    if (last !== undefined && last.purpose === call.purpose && last.tokens === call.tokens) last.count += 1;
    else runs.push({ ...call, count: 1 });
  }
  return runs;
}

/** What time until the first token is spent on. */
export type StepName = 'waiting' | 'matching' | 'loading' | 'turning' | 'computing' | 'storing' | 'rest';

/** A part of the time bar: what somebody waited for, and what was hidden behind computing. */
export type TimePart = { step: StepName; waitedMs: number; hiddenMs: number };

/** The parts of the time to the first token that took any; what somebody waited for adds up to all of it. */
export function timePartsOf(times: Times): TimePart[] {
  const { waitingMs, readingMs, ...steps } = times;
  const names = ['matching', 'loading', 'turning', 'computing', 'storing'] as const;
  const parts = names.map((step): TimePart => {
    const { takenMs, hiddenMs } = steps[step];
    return { step, waitedMs: Math.max(0, takenMs - hiddenMs), hiddenMs };
  });
  const waited = parts.reduce((sum, part) => sum + part.waitedMs, 0);
  const all: TimePart[] = [
    { step: 'waiting', waitedMs: waitingMs, hiddenMs: 0 },
    ...parts,
    { step: 'rest', waitedMs: Math.max(0, readingMs - waited), hiddenMs: 0 },
  ];
  return all.filter(({ waitedMs, hiddenMs }) => waitedMs + hiddenMs > 0);
}
