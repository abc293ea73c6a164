import { describe, expect, it } from 'vitest';
import {
  distanceToEnd,
  NEAR_END_PX,
  offersEnd,
  shouldScroll,
  startAtEnd,
  step,
  type Autoscroll,
  type AutoscrollEvent,
} from './autoscroll';

/** A window of 500 on content of `height`, `below` pixels above its end. */
const at = (below: number, height = 2000) => ({ top: height - 500 - below, height, viewport: 500 });

const run = (state: Autoscroll, ...events: AutoscrollEvent[]): Autoscroll => events.reduce(step, state);
const atEnd = run(startAtEnd, { kind: 'placed', metrics: at(0) });
const letGo = run(atEnd, { kind: 'scrolled', metrics: at(200) });

describe('following the end', () => {
  it('begins so, and scrolls when content grows', () => {
    expect(atEnd.following).toBe(true);
    expect(shouldScroll(atEnd)).toBe(false);
    const grown = run(atEnd, { kind: 'resized', metrics: { ...at(0), height: 2040 } });
    expect(shouldScroll(grown)).toBe(true);
    expect(offersEnd(grown)).toBe(false);
  });

  it('goes on through any number of growths and placements', () => {
    let state = atEnd;
    for (let height = 2000; height < 4000; height += 37) {
      state = run(state, { kind: 'resized', metrics: { ...state.metrics, height } });
      expect(shouldScroll(state)).toBe(height > 2000);
      state = run(
        state,
        { kind: 'placed', metrics: at(0, height) },
        { kind: 'scrolled', metrics: at(0, height) },
      );
    }
    expect(state.following).toBe(true);
  });

  it.each([1.5, 10, NEAR_END_PX, 800])('lets go when the person scrolls up by %d pixels', (pixels) => {
    expect(run(atEnd, { kind: 'scrolled', metrics: at(pixels) }).following).toBe(false);
  });

  it('lets go when the person scrolls up in the moment that content grows', () => {
    const state = run(atEnd, { kind: 'scrolled', metrics: { top: 1450, height: 2030, viewport: 500 } });
    expect(state.following).toBe(false);
  });

  it('lets go at the first sign, before the position changed', () => {
    const state = run(atEnd, { kind: 'wantsUp' }, { kind: 'resized', metrics: { ...at(0), height: 2040 } });
    expect(shouldScroll(state)).toBe(false);
  });

  it('does not let go by a wish that nothing can follow', () => {
    const fits = run(startAtEnd, { kind: 'placed', metrics: { top: 0, height: 400, viewport: 500 } });
    expect(run(fits, { kind: 'wantsUp' }).following).toBe(true);
  });

  it('does not let go when content shrinks above or the window grows', () => {
    expect(run(atEnd, { kind: 'scrolled', metrics: at(0, 1700) }).following).toBe(true);
    const taller = { top: 1300, height: 2000, viewport: 700 };
    expect(run(atEnd, { kind: 'scrolled', metrics: taller }).following).toBe(true);
  });

  it('does not let go when content and window shrink in one moment', () => {
    // The position was pushed up by the content, then the window (a taller composer) took some of what is seen.
    const shrunk = { top: 1200, height: 1700, viewport: 460 };
    const state = run(atEnd, { kind: 'scrolled', metrics: shrunk });
    expect(shouldScroll(state)).toBe(true);
  });

  it('lets go when the person scrolls up further than the content shrinks', () => {
    expect(run(atEnd, { kind: 'scrolled', metrics: at(50, 1700) }).following).toBe(false);
  });

  it('does not let go for a rounding of the position', () => {
    expect(run(atEnd, { kind: 'scrolled', metrics: at(0.6) }).following).toBe(true);
  });
});

describe('having let go', () => {
  it('stays where it is, whatever grows', () => {
    const state = run(letGo, { kind: 'resized', metrics: { ...at(200), height: 2400 } });
    expect(state.following).toBe(false);
    expect(shouldScroll(state)).toBe(false);
    expect(offersEnd(state)).toBe(true);
  });

  it('does not take hold while the person moves up near the end, or does not move', () => {
    const up = run(atEnd, { kind: 'scrolled', metrics: at(20) }, { kind: 'scrolled', metrics: at(35) });
    expect(up.following).toBe(false);
    expect(run(up, { kind: 'scrolled', metrics: at(35) }).following).toBe(false);
  });

  it.each([0, 20, NEAR_END_PX])('takes hold when the person comes within %d pixels of the end', (below) => {
    expect(run(letGo, { kind: 'scrolled', metrics: at(below) }).following).toBe(true);
  });

  it('does not take hold on the way down before that', () => {
    expect(run(letGo, { kind: 'scrolled', metrics: at(NEAR_END_PX + 1) }).following).toBe(false);
  });

  it('takes hold by the button or a message', () => {
    expect(run(letGo, { kind: 'toEnd' })).toMatchObject({ following: true, held: false });
  });

  it('offers the way back only from some way off', () => {
    expect(offersEnd(letGo)).toBe(true);
    expect(offersEnd(run(atEnd, { kind: 'scrolled', metrics: at(NEAR_END_PX) }))).toBe(false);
  });
});

describe('a finger or button that is down', () => {
  it('keeps the page from moving under it, and then it follows again', () => {
    const grown: AutoscrollEvent = { kind: 'resized', metrics: { ...at(0), height: 2040 } };
    const held = run(atEnd, { kind: 'held' }, grown);
    expect(shouldScroll(held)).toBe(false);
    expect(shouldScroll(run(held, { kind: 'released' }))).toBe(true);
  });

  it('that dragged up lets go', () => {
    const dragged = run(atEnd, { kind: 'held' }, { kind: 'scrolled', metrics: at(60) }, { kind: 'released' });
    expect(dragged.following).toBe(false);
  });
});

it('lets go when the page is sent to a place', () => {
  expect(run(atEnd, { kind: 'toPlace' }).following).toBe(false);
});

it('measures no less than nothing where the content fits or bounces', () => {
  expect(distanceToEnd({ top: 0, height: 300, viewport: 500 })).toBe(0);
  expect(distanceToEnd({ top: 1520, height: 2000, viewport: 500 })).toBe(0);
});
