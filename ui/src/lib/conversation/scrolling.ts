// What the scrolled element tells autoscroll: its numbers, and what the person's hands are doing to it.
import type { Attachment } from 'svelte/attachments';
import type { AutoscrollEvent, Metrics } from './autoscroll';

export const metricsOf = (element: HTMLElement): Metrics => ({
  top: element.scrollTop,
  height: element.scrollHeight,
  viewport: element.clientHeight,
});

const RELEASES = ['pointerup', 'touchend', 'touchcancel', 'dragend', 'blur'] as const;

/** Whether the person asked for less motion. */
export const prefersReducedMotion = (): boolean =>
  typeof matchMedia === 'function' && matchMedia('(prefers-reduced-motion: reduce)').matches;

/** Whether a key press moves the conversation up. */
export function movesUp(event: Pick<KeyboardEvent, 'key' | 'shiftKey' | 'target'>): boolean {
  if (event.target instanceof Element && event.target.closest('textarea, input') !== null) return false;
  return ['ArrowUp', 'PageUp', 'Home'].includes(event.key) || (event.key === ' ' && event.shiftKey);
}

/** Tells `handle` about wheels, keys and held pointers; `onResize` is called when the window onto the turns changes. */
export function followGestures(
  handle: (event: AutoscrollEvent) => void,
  onResize: () => void,
): Attachment<HTMLElement> {
  return (element) => {
    const onWheel = (event: WheelEvent): void => {
      if (event.deltaY < 0 && !event.ctrlKey) handle({ kind: 'wantsUp' });
    };
    const onKey = (event: KeyboardEvent): void => {
      if (movesUp(event)) handle({ kind: 'wantsUp' });
    };
    const onPointerDown = ({ button }: PointerEvent): void => {
      // Another button opens a menu, which may keep its release to itself.
      if (button === 0) handle({ kind: 'held' });
    };
    const onTouch = (): void => handle({ kind: 'held' });
    // Wherever it is released. A drag ends without `pointerup`.
    const onUp = (): void => {
      handle({ kind: 'released' });
      onResize();
    };
    element.addEventListener('wheel', onWheel, { passive: true });
    element.addEventListener('keydown', onKey);
    element.addEventListener('pointerdown', onPointerDown);
    element.addEventListener('touchstart', onTouch, { passive: true });
    for (const name of RELEASES) window.addEventListener(name, onUp);
    const sizes = typeof ResizeObserver === 'undefined' ? null : new ResizeObserver(onResize);
    sizes?.observe(element);
    return () => {
      element.removeEventListener('wheel', onWheel);
      element.removeEventListener('keydown', onKey);
      element.removeEventListener('pointerdown', onPointerDown);
      element.removeEventListener('touchstart', onTouch);
      for (const name of RELEASES) window.removeEventListener(name, onUp);
      sizes?.disconnect();
    };
  };
}
