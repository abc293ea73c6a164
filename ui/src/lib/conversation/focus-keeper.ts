// Where the focus is when a turn is replaced by another version of itself: on the same button of the new one, so that
// somebody who goes through the versions by keyboard can press it again.
import type { Turn } from '../bindings';

/** A control in a turn, by the turn's place in the chat and the control's name. */
export type Place = { index: number; label: string };

/** The place of the focus, or null when it is on no named control of a turn. */
export function placeOfFocus(turns: readonly Turn[]): Place | null {
  const label = document.activeElement?.getAttribute('aria-label');
  const id = document.activeElement?.closest<HTMLElement>('[data-turn]')?.dataset['turn'];
  const index = turns.findIndex((turn) => String(turn.id) === id);
  return label == null || index === -1 ? null : { index, label };
}

/** Puts the focus back there, or on the list itself, when it was lost; whether it was. */
export function restoreFocus(place: Place, turns: readonly Turn[], list: HTMLElement): boolean {
  const isLost = document.activeElement === null || document.activeElement === document.body;
  if (!isLost) return false;
  const turn = list.querySelector(`[data-turn="${turns[place.index]?.id}"]`);
  const controls = turn?.querySelectorAll<HTMLElement>('[aria-label]') ?? [];
  const control = [...controls].find((element) => element.getAttribute('aria-label') === place.label);
  (control ?? list).focus({ preventScroll: true });
  return true;
}
