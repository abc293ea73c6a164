// Which passages of a document are drawn, and which are the ones that were cited. A document may have thousands; a stretch
// around the one that is meant is drawn, and grows by request.
import type { PassageShown } from '../bindings';

/** Passages that are drawn at once before and after the one that is meant, and that come with each request. */
export const STRETCH = 60;

/** A stretch of passages, from `from` up to and without `to`. */
export type Stretch = { from: number; to: number };

type Place = { start: number; end: number };

/** The passages that are at a place, or else those that share text with it. */
export function passagesAt(passages: readonly PassageShown[], place: Place): number[] {
  const same = passages.findIndex(({ start, end }) => start === place.start && end === place.end);
  if (same >= 0) return [same];
  return passages.flatMap(({ start, end }, index) => (start < place.end && place.start < end ? [index] : []));
}

/** The stretch around a passage. */
export const stretchAround = (target: number, count: number): Stretch => ({
  from: Math.max(0, target - STRETCH),
  to: Math.min(count, target + STRETCH + 1),
});

/** How many passages a request for earlier ones, or for later ones, brings. */
export const earlierCount = ({ from }: Stretch): number => Math.min(STRETCH, from);
export const laterCount = ({ to }: Stretch, count: number): number => Math.min(STRETCH, count - to);
