// Where the focus goes when something opens over the page or goes away from under it.
import { tick } from 'svelte';
import type { Attachment } from 'svelte/attachments';

const focusable =
  'a[href], button:not([disabled]), input:not([disabled]), select:not([disabled]), textarea:not([disabled]), [tabindex]';

/** What Tab reaches inside an element, in order. */
export function tabStops(root: ParentNode): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>(focusable)].filter(
    (element) => element.tabIndex >= 0 && !element.closest('[inert]'),
  );
}

/** Keeps the focus inside an element from when it appears until it goes, then gives it back. */
export const trapFocus: Attachment<HTMLElement> = (root) => {
  const before = document.activeElement;
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Tab' || event.defaultPrevented) return;
    const stops = tabStops(root);
    const edge = event.shiftKey ? stops[0] : stops.at(-1);
    const next = event.shiftKey ? stops.at(-1) : stops[0];
    const isInside = root.contains(document.activeElement);
    if (isInside && document.activeElement !== edge && document.activeElement !== root) return;
    event.preventDefault();
    (next ?? root).focus();
  };
  (tabStops(root)[0] ?? root).focus();
  root.addEventListener('keydown', onKey);
  return () => {
    root.removeEventListener('keydown', onKey);
    // What had the focus may still be inert at this moment.
    void tick().then(() => {
      const isLost = document.activeElement === document.body || document.activeElement === null;
      if (isLost && before instanceof HTMLElement && before.isConnected) before.focus();
    });
  };
};

/** Puts the focus on an element as it appears, and selects what is in it. */
export const focusAndSelect: Attachment<HTMLInputElement> = (input) => {
  input.focus();
  input.select();
};

/** Puts the focus into the message field, if there is one. */
export function focusComposer(): void {
  document.querySelector<HTMLTextAreaElement>('[data-composer] textarea')?.focus();
}
