import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api, resetApi } from '../../test/api';
import { atRest, busy, refusing } from '../../test/snapshots';
import { Engine } from './engine.svelte';

vi.mock('../api', async () => (await import('../../test/api')).api);

beforeEach(() => {
  resetApi();
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

const sequence = (engine: Engine) => engine.snapshot?.sequence;

describe('pictures of the engine', () => {
  it('are shown at most ten times a second, the latest one always', () => {
    const engine = new Engine();
    const shown: (number | undefined)[] = [];
    for (let at = 0; at < 1000; at += 10) {
      engine.take(atRest({ sequence: at }));
      vi.advanceTimersByTime(10);
      if (sequence(engine) !== shown.at(-1)) shown.push(sequence(engine));
    }
    expect(shown.length).toBeLessThanOrEqual(11);
    expect(shown.length).toBeGreaterThanOrEqual(9);
    vi.advanceTimersByTime(100);
    expect(sequence(engine)).toBe(990);
  });

  it('go at once with the model', () => {
    const engine = new Engine();
    engine.take(atRest());
    expect(sequence(engine)).toBe(1);
    engine.take(atRest({ sequence: 2 }));
    engine.take(null);
    expect(engine.snapshot).toBeNull();
    vi.advanceTimersByTime(200);
    expect(engine.snapshot).toBeNull();
  });

  it('begin with one that is asked for, unless another has come meanwhile', async () => {
    api.snapshot.mockResolvedValue(atRest({ sequence: 5 }));
    const engine = new Engine();
    await engine.ask();
    expect(sequence(engine)).toBe(5);
    const other = new Engine();
    const asked = other.ask();
    other.take(atRest({ sequence: 6 }));
    await asked;
    vi.advanceTimersByTime(200);
    expect(sequence(other)).toBe(6);
  });

  it('come later when asking fails', async () => {
    api.snapshot.mockRejectedValue({ message: 'No.' });
    const engine = new Engine();
    await engine.ask();
    expect(engine.snapshot).toBeNull();
  });
});

it('an owner looks the same in every picture', () => {
  const engine = new Engine();
  const show = (picture: Parameters<Engine['take']>[0]) => {
    engine.take(picture);
    vi.advanceTimersByTime(100);
  };
  show(busy());
  const first = engine.looks;
  show(busy({ sequence: 3 }));
  expect(engine.looks).toBe(first);
  show(atRest());
  expect(engine.looks.size).toBe(0);
});

it('a refusal keeps its words while only the figures change', () => {
  const engine = new Engine();
  const show = (picture: Parameters<Engine['take']>[0]) => {
    engine.take(picture);
    vi.advanceTimersByTime(100);
  };
  show(refusing('the machine has 395 MB free'));
  show(refusing('the machine has 391 MB free'));
  expect(engine.refusal).toBe('the machine has 395 MB free');
  show(busy());
  expect(engine.refusal).toBeNull();
});
