import type { Turn } from '../bindings';

/** A selection over more turns than this is not kept whole when it is scrolled out of sight. */
const MAX_KEPT = 100;
const NONE: readonly number[] = [];

/**
 * Ids of the turns that a selection reaches over. They stay in the page, so that copying gets all of what was selected.
 */
export function selectedTurns(
  selection: Selection | null,
  list: HTMLElement | undefined,
  turns: readonly Turn[],
): readonly number[] {
  if (selection === null || selection.isCollapsed || list === undefined) return NONE;
  const places = [selection.anchorNode, selection.focusNode].map((node) => {
    const element = node instanceof Element ? node : node?.parentElement;
    const id = list.contains(element ?? null)
      ? element?.closest<HTMLElement>('[data-turn]')?.dataset['turn']
      : undefined;
    return id === undefined ? -1 : turns.findIndex((turn) => turn.id === Number(id));
  });
  const [from, to] = [Math.min(...places), Math.max(...places)];
  if (from === -1) return NONE;
  return turns.slice(from, Math.min(to + 1, from + MAX_KEPT)).map((turn) => turn.id);
}
