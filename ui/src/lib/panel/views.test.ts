import { describe, expect, it } from 'vitest';
import { atRest, busy, refusing } from '../../test/snapshots';
import { cellsOf, legendOf } from './pool';
import {
  cellWords,
  componentFacts,
  isAllInPool,
  laneFigure,
  laneLine,
  memoryFacts,
  ownerName,
  ownerWords,
  poolFacts,
  processUse,
  refusalOf,
  speculationFacts,
  tierFacts,
  type Fact,
} from './views';

const lines = (facts: Fact[]): string[] =>
  facts.map(({ name, value, note }) => `${name}: ${value}${note === undefined ? '' : ` (${note})`}`);

it('the pool says its size, what is really there and how it is stored', () => {
  expect(lines(poolFacts(busy()))).toEqual([
    'Most at once: 48 pages',
    'Size: 66 × 1.3 MB = 86.5 MB',
    'Resident: 47.2 MB',
    'Format: tq4, 5,120 bytes a token',
    'A page: 256 tokens',
  ]);
});

describe('a place of the map', () => {
  const { pool } = busy();

  it('names its page and owner', () => {
    const words = (page: number) =>
      cellWords(cellsOf(pool.map)[page] ?? { first: 0, holders: [] }, pool.owners);
    expect(words(0)).toBe('Page 1: Garden');
    expect(words(30)).toBe('Page 31: Garden (kept)');
    expect(words(65)).toBe('Page 66: free');
  });

  it('names the pages of each owner when it stands for several', () => {
    const cell = {
      first: 9,
      holders: [[0, 2] as const, [null, 1] as const].map(([a, b]) => [a, b] as [number | null, number]),
    };
    expect(cellWords(cell, pool.owners)).toBe('Pages 10–12: 2 Garden, 1 free');
    expect(cellWords({ first: 9, holders: [[null, 3]] }, pool.owners)).toBe('Pages 10–12: free');
  });
});

describe('an owner', () => {
  const { pool } = busy();
  const row = (index: number) => {
    const found = legendOf(pool.owners, new Map()).find((one) => one.index === index);
    if (found === undefined) throw new Error(`no owner ${index}`);
    return found;
  };

  it('is named with the pages that are its', () => {
    expect(ownerWords(row(0), pool.map)).toBe('Pages 1–12: Garden');
    expect(ownerWords(row(4), [4])).toBe('Page 1: Garden (kept)');
    expect(ownerWords(row(4), [4, null, 4, 4])).toBe('Pages 1, 3–4: Garden (kept)');
    expect(ownerWords(row(0), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0])).toBe(
      'Pages 1, 3, 5, 7 and 2 more runs: Garden',
    );
  });

  it('whose pages are all shared, or who has none yet, says so', () => {
    expect(ownerWords(row(4), [])).toBe('Garden (kept): all its pages are shared and shown as another’s');
    const empty = { ...row(0), owner: { ...row(0).owner, pages: 0 } };
    expect(ownerWords(empty, [])).toBe('Garden: no pages yet');
  });

  it('without a name is called so', () => {
    expect([ownerName(''), ownerName(' '), ownerName('Soup')]).toEqual(['Unnamed', 'Unnamed', 'Soup']);
  });
});

describe('tiers', () => {
  it('that do not exist are not shown as zeros', () => {
    expect(isAllInPool(atRest().tiers)).toBe(true);
    expect(lines(tierFacts(busy()))).toEqual([
      'In use: 28.8 MB, 22 pages',
      'Memory pool, kept: 18.4 MB, 14 pages',
      'Reused: 12,400 of 13,010 (95%) (Prompt tokens whose keys and values were there already.)',
    ]);
  });

  it('that do are shown with what they found and what waits to be written', () => {
    const tier = { bytes: 5_000_000, chunks: 3, dirty_chunks: 0, hits: 0, lookups: 0 };
    const tiers = { memory: tier, flash: { ...tier, chunks: 1, dirty_chunks: 2, hits: 4, lookups: 5 } };
    expect(isAllInPool(tiers)).toBe(false);
    expect(lines(tierFacts(atRest({ tiers }))).slice(2)).toEqual([
      'Chunks in memory: 5 MB, 3 chunks',
      'Flash: 5 MB, 1 chunk (4 of 5 lookups found it, 2 chunks not yet written to disk)',
    ]);
  });
});

it('parts of the model say where they are and whose requests need them', () => {
  expect(lines(componentFacts(busy()))).toEqual([
    'Backbone: In memory, 610 MB (Held by Garden, Letter to the landlord about the broken heating, Soup, and notes.example)',
    'Embedding: Mapped from the file (Held by Letter to the landlord about the broken heating and notes.example)',
    'Head: In memory, 96 MB (Held by Garden, Soup, and request 99)',
    'Predictor: None',
    'Vision tower: None',
  ]);
  expect(lines(componentFacts(atRest()))[2]).toBe('Head: Released');
});

describe('lanes', () => {
  it('say what each request does', () => {
    expect(busy().lanes.map(laneLine)).toEqual([
      {
        does: 'Answering, 120 tokens',
        figure: '14 tokens/s',
        note: 'prompt of 2,780 tokens, 2,100 reused',
        share: null,
      },
      { does: 'Reading 1,200 of 4,000 tokens', figure: '12 s left', note: '800 reused', share: 0.3 },
      { does: 'Answering, 1 token', figure: '', note: 'prompt of 699 tokens', share: null },
      { does: 'Reading 300 of 4,000 tokens', figure: '', note: '', share: 0.075 },
      { does: 'Waiting, number 1 in line', figure: '12 s', note: '2 later ones went first', share: null },
    ]);
  });

  it('are counted in short', () => {
    expect(laneFigure(busy().lanes)).toBe('4 active, 1 waiting');
    expect(laneFigure(busy().lanes.slice(0, 2))).toBe('2 active');
    expect(laneFigure([])).toBe('');
  });
});

describe('memory', () => {
  it('is the program’s, of its limit', () => {
    const { memory } = atRest();
    expect(processUse(memory)).toEqual({ text: '900 MB of 4 GB', share: 0.225 });
    expect(processUse({ ...memory, process_bytes: 5e9 }).share).toBe(1);
    expect(processUse({ ...memory, limit_bytes: 2 ** 64 })).toEqual({ text: '900 MB', share: null });
    expect(processUse({ ...memory, process_bytes: null })).toEqual({ text: 'Unknown', share: null });
  });

  it('of the machine is left out where the system does not say', () => {
    expect(lines(memoryFacts(refusing().memory))).toEqual([
      'Free on this machine: 395 MB of 16 GB',
      'Weights: 620 MB',
      'Scratch: 48 MB',
      'Keys and values: 0 byte',
      'Waiting for memory: 12.3% (Share of the last 10 s in which programs waited for it.)',
    ]);
    const silent = { ...atRest().memory, total_bytes: 0, stalled_percent: null };
    expect(lines(memoryFacts(silent)).map((line) => line.split(':')[0])).toEqual([
      'Weights',
      'Scratch',
      'Keys and values',
    ]);
  });

  it('guesses are shown when there were some', () => {
    expect(lines(speculationFacts(atRest().speculation))).toEqual(['Guessing ahead: Prompt lookup']);
    expect(lines(speculationFacts(busy().speculation))).toEqual([
      'Guessing ahead: Prompt lookup',
      'Guessed right: 120 of 300 (40%)',
    ]);
    expect(lines(speculationFacts({ method: 'medusa', guessed: 0, accepted: 0 }))).toEqual([
      'Guessing ahead: medusa',
    ]);
  });

  it('a reason for refusing is another one only when its words are', () => {
    const reason = 'the machine has 395 MB free';
    expect(refusalOf(null, reason)).toBe(reason);
    expect(refusalOf(reason, 'the machine has 391 MB free')).toBe(reason);
    expect(refusalOf(reason, 'programs waited')).toBe('programs waited');
    expect(refusalOf(reason, null)).toBeNull();
  });
});
