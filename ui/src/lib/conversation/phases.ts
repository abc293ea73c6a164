import type { Turn } from '../bindings';
import type { AnswerPhase } from '../state/tools.svelte';

/** Phases of the answers under way, by turn, in whatever form the page keeps them. */
export type Phases = ReadonlyMap<number, AnswerPhase> | Readonly<Record<number, AnswerPhase>>;

/** What an answer is at: queued until something else is known, null when it has ended. */
export function phaseOf(phases: Phases, turn: Turn): AnswerPhase | null {
  if (turn.state !== 'writing') return null;
  const phase =
    phases instanceof Map ? phases.get(turn.id) : (phases as Record<number, AnswerPhase>)[turn.id];
  return phase ?? { at: 'queued' };
}
