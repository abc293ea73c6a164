// Pictures of the engine for tests: at rest, busy, with a large pool, refusing.
import type { LaneView, OwnerView, PoolView, Snapshot } from '../lib/bindings';

const megabyte = 1_000_000;

/** A pool whose map and counts follow from its owners' runs of pages: owner, first page, pages. */
export function poolOf(
  pages: number,
  owners: Omit<OwnerView, 'pages'>[],
  runs: [owner: number, first: number, pages: number][],
  change: Partial<PoolView> = {},
): PoolView {
  const map = Array.from({ length: pages }, (): number | null => null);
  for (const [owner, first, count] of runs) map.fill(owner, first, first + count);
  const held = (index: number): number => map.filter((owner) => owner === index).length;
  const sum = (isActive: boolean): number =>
    owners.reduce((total, owner, index) => total + (owner.is_active === isActive ? held(index) : 0), 0);
  return {
    pages,
    in_use_pages: sum(true),
    cached_pages: sum(false),
    free_pages: pages - sum(true) - sum(false),
    promised_pages: 0,
    high_water_pages: sum(true) + sum(false),
    page_tokens: 256,
    page_bytes: 1_310_720,
    resident_bytes: (sum(true) + sum(false)) * 1_310_720,
    map,
    owners: owners.map((owner, index) => ({ ...owner, pages: held(index) })),
    ...change,
  };
}

const tier = { bytes: 0, chunks: 0, dirty_chunks: 0, hits: 0, lookups: 0 };

/** The engine just after the model was loaded. */
export const atRest = (change: Partial<Snapshot> = {}): Snapshot => ({
  sequence: 1,
  model: {
    name: 'Test Model',
    context_tokens: 8192,
    kv_format: 'tq4',
    kv_token_bytes: 5120,
    backend: 'CPU',
  },
  pool: poolOf(66, [], []),
  lanes: [],
  components: [
    { name: 'backbone', state: 'resident', bytes: 610 * megabyte, owners: [] },
    { name: 'embedding', state: 'mapped', bytes: 0, owners: [] },
    { name: 'head', state: 'released', bytes: 0, owners: [] },
    { name: 'predictor', state: 'absent', bytes: 0, owners: [] },
    { name: 'vision tower', state: 'absent', bytes: 0, owners: [] },
  ],
  memory: {
    process_bytes: 900 * megabyte,
    limit_bytes: 4_000 * megabyte,
    available_bytes: 7_900 * megabyte,
    total_bytes: 16_000 * megabyte,
    stalled_percent: 0,
    weight_bytes: 620 * megabyte,
    workspace_bytes: 48 * megabyte,
    kv_bytes: 0,
    refusal: null,
  },
  tiers: { memory: tier, flash: tier },
  prefetch: [],
  images: [],
  speculation: { method: 'prompt lookup', guessed: 0, accepted: 0 },
  tuning: null,
  totals: { requests: 0, refused: 0, prompt_tokens: 0, reused_tokens: 0, answer_tokens: 0 },
  ...change,
});

const lane = (
  id: number,
  owner: string,
  phase: LaneView['phase'],
  change: Partial<LaneView> = {},
): LaneView => ({
  id,
  owner,
  prompt_tokens: 4000,
  reused_tokens: 0,
  phase,
  ...change,
});

/** Four lanes at work, one that waits, and what earlier requests left. */
export const busy = (change: Partial<Snapshot> = {}): Snapshot => {
  const pool = poolOf(
    66,
    [
      { name: 'Garden', is_active: true, tokens: 2900 },
      { name: 'Letter to the landlord about the broken heating', is_active: true, tokens: 1200 },
      { name: 'Soup', is_active: true, tokens: 700 },
      { name: 'notes.example', is_active: true, tokens: 300 },
      { name: 'Garden', is_active: false, tokens: 2100 },
      { name: 'Holiday', is_active: false, tokens: 1500 },
    ],
    [
      [0, 0, 12],
      [1, 12, 5],
      [2, 20, 3],
      [3, 23, 2],
      [4, 30, 8],
      [5, 40, 6],
    ],
    { promised_pages: 9, high_water_pages: 48 },
  );
  return atRest({
    sequence: 2,
    pool,
    lanes: [
      lane(
        7,
        'Garden',
        { kind: 'decode', answer_tokens: 120, tokens_per_second: 14.23 },
        { prompt_tokens: 2780, reused_tokens: 2100 },
      ),
      lane(
        8,
        'Letter to the landlord about the broken heating',
        { kind: 'prefill', done_tokens: 1200, seconds_left: 11.2 },
        { reused_tokens: 800 },
      ),
      lane(9, 'Soup', { kind: 'decode', answer_tokens: 1, tokens_per_second: 0 }, { prompt_tokens: 699 }),
      lane(10, 'notes.example', { kind: 'prefill', done_tokens: 300, seconds_left: null }),
      lane(11, '', { kind: 'queued', ahead: 0, overtaken: 2, waited_seconds: 12.7 }),
    ],
    components: [
      { name: 'backbone', state: 'resident', bytes: 610 * megabyte, owners: [7, 8, 9, 10] },
      { name: 'embedding', state: 'mapped', bytes: 0, owners: [8, 10] },
      { name: 'head', state: 'resident', bytes: 96 * megabyte, owners: [7, 9, 99] },
      { name: 'predictor', state: 'absent', bytes: 0, owners: [] },
      { name: 'vision tower', state: 'absent', bytes: 0, owners: [] },
    ],
    speculation: { method: 'prompt lookup', guessed: 300, accepted: 120 },
    totals: { requests: 12, refused: 1, prompt_tokens: 13_010, reused_tokens: 12_400, answer_tokens: 3_000 },
    ...change,
  });
};

/** A pool of so many pages that a cell stands for several, held by more owners than there are looks. */
export const large = (): Snapshot => {
  const owners = Array.from({ length: 12 }, (_, index) => ({
    name: `Chat ${index + 1}`,
    is_active: index < 2,
    tokens: 20_000,
  }));
  const pool = poolOf(
    1300,
    owners,
    owners.map((_, index) => [index, index * 80, 76]),
  );
  return atRest({ pool });
};

/** An engine that takes no new work. */
export const refusing = (reason = 'the machine has 395 MB free, and the request takes 0 MB'): Snapshot => {
  const { memory, ...rest } = busy();
  return {
    ...rest,
    memory: { ...memory, available_bytes: 395 * megabyte, stalled_percent: 12.34, refusal: reason },
  };
};
