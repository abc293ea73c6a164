import type { Phase, Turn } from '../bindings';

/** Phases of the answers under way, by turn, in whatever form the page keeps them. */
export type Phases = ReadonlyMap<number, Phase> | Readonly<Record<number, Phase>>;

/** What an answer is at: queued until something else is known, null when it has ended. */
export function phaseOf(phases: Phases, turn: Turn): Phase | null {
  if (turn.state !== 'writing') return null;
  const phase = phases instanceof Map ? phases.get(turn.id) : (phases as Record<number, Phase>)[turn.id];
  return phase ?? { at: 'queued' };
}
