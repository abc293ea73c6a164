import type { Turn } from '../bindings';

/** The text column, in characters of a line and pixels of one. */
const LINE_CHARS = 85;
const LINE_PX = 24;
/** Space around a turn, its actions and its footer. */
const AROUND_PX = 90;
/** A mean of this many turns is near enough. */
const SAMPLES = 200;

/**
 * About how high a turn is, on average, before any was drawn. It decides how much is drawn first and how long the
 * scrollbar's handle is; turns that come into view are measured.
 */
export function meanTurnHeight(turns: readonly Turn[]): number {
  if (turns.length === 0) return AROUND_PX;
  const every = Math.max(1, Math.floor(turns.length / SAMPLES));
  let sum = 0;
  let count = 0;
  for (let index = 0; index < turns.length; index += every) {
    const text = turns[index]!.text;
    // Blank lines between blocks count about half a line.
    const breaks = text.length > 20_000 ? text.length / 60 : text.split('\n').length - 1;
    sum += AROUND_PX + LINE_PX * (text.length / LINE_CHARS + breaks * 0.6);
    count += 1;
  }
  return Math.round(sum / count);
}
