// Whether the conversation follows its end while an answer streams in. Pure: what happened goes in, the new state comes
// out, and the component does the scrolling.
//
// The rule: the person always wins. Any move up lets go, at once for a wheel or a key, otherwise as soon as the scroll
// position tells. The end takes hold again only by the person's doing: scrolling back to it, the button, or a message.

/** The scrolled element's numbers, in pixels. */
export type Metrics = { top: number; height: number; viewport: number };

export type Autoscroll = {
  readonly following: boolean;
  /** A finger or button is down: nothing may move under it. */
  readonly held: boolean;
  readonly metrics: Metrics;
};

export type AutoscrollEvent =
  /** The scroll position changed, by whomever. */
  | { kind: 'scrolled'; metrics: Metrics }
  /** The page itself scrolled; no sign of what the person wants. */
  | { kind: 'placed'; metrics: Metrics }
  /** The content or the window changed its size. */
  | { kind: 'resized'; metrics: Metrics }
  /** A wheel turned up or a key that moves up was pressed; the position has not changed yet. */
  | { kind: 'wantsUp' }
  | { kind: 'held' }
  | { kind: 'released' }
  /** The person asked for the end: the button, or a message was sent. */
  | { kind: 'toEnd' }
  /** The page goes to a place in the middle. */
  | { kind: 'toPlace' };

/** Nearer to the end than this is at the end. */
export const NEAR_END_PX = 40;
/** Positions are fractions on some screens; smaller moves mean nothing. */
const NOISE_PX = 1;

export const startAtEnd: Autoscroll = {
  following: true,
  held: false,
  metrics: { top: 0, height: 0, viewport: 0 },
};

/** How far the end is below what is seen. */
export const distanceToEnd = ({ top, height, viewport }: Metrics): number =>
  Math.max(0, height - viewport - top);

/** The state after an event. */
export function step(state: Autoscroll, event: AutoscrollEvent): Autoscroll {
  switch (event.kind) {
    case 'scrolled':
      return { ...state, following: followsAfter(state, event.metrics), metrics: event.metrics };
    case 'placed':
    case 'resized':
      return { ...state, metrics: event.metrics };
    case 'wantsUp':
      // Where there is nothing above, the wish moves nothing.
      return state.metrics.top > 0 ? { ...state, following: false } : state;
    case 'held':
      return { ...state, held: true };
    case 'released':
      return { ...state, held: false };
    case 'toEnd':
      return { ...state, following: true, held: false };
    case 'toPlace':
      return { ...state, following: false };
  }
}

/** Whether to scroll to the end now. */
export const shouldScroll = (state: Autoscroll): boolean =>
  state.following && !state.held && distanceToEnd(state.metrics) > 0;

/** Whether to offer the way back to the end. */
export const offersEnd = (state: Autoscroll): boolean =>
  !state.following && distanceToEnd(state.metrics) > NEAR_END_PX;

function followsAfter(state: Autoscroll, now: Metrics): boolean {
  const before = state.metrics;
  const moved = now.top - before.top;
  // Content that shrinks and a window that grows push the position up as well; the person did the rest.
  const pushed = Math.max(0, before.height - now.height) + Math.max(0, now.viewport - before.viewport);
  if (-moved > pushed + NOISE_PX) return false;
  if (moved > 0 && distanceToEnd(now) <= NEAR_END_PX) return true;
  return state.following;
}
