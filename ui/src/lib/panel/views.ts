// The engine's picture in words: which facts a section shows and how. Only formatting; the engine counts.
import type {
  ComponentView,
  LaneView,
  OwnerView,
  PoolView,
  Snapshot,
  SpeculationView,
  TierView,
} from '../bindings';
import { formatBytes } from '../format';
import { strings } from '../strings';
import { runsOf, type Cell, type LegendRow } from './pool';

/** A line of a section: a name, what is known, and a remark. */
export type Fact = { name: string; value: string; note?: string };

const words = strings.engine;

/** Who asked, as a person reads it. */
export const ownerName = (owner: string): string =>
  owner.trim() === '' ? words.unnamed : (words.ownWork[owner] ?? owner);

/** Sizes and formats of the pool. */
export function poolFacts({ pool, model }: Pick<Snapshot, 'pool' | 'model'>): Fact[] {
  const { pool: said } = words;
  return [
    { name: said.highWater, value: words.pages(pool.high_water_pages) },
    { name: said.size, value: said.sizeOf(pool.pages, pool.page_bytes) },
    { name: said.resident, value: formatBytes(pool.resident_bytes) },
    { name: said.format, value: said.formatOf(model.kv_format, model.kv_token_bytes) },
    { name: said.pageTokens, value: words.tokens(pool.page_tokens) },
  ];
}

/** What is where. A tier that does not exist yet is not in the list: zeros would look measured. */
export function tierFacts({ pool, tiers, totals }: Pick<Snapshot, 'pool' | 'tiers' | 'totals'>): Fact[] {
  const { tiers: said } = words;
  const pages = (count: number): string => said.size(count * pool.page_bytes, words.pages(count));
  const chunks = (name: string, tier: TierView): Fact => {
    const notes = [
      ...(tier.lookups > 0 ? [said.hits(tier.hits, tier.lookups)] : []),
      ...(tier.dirty_chunks > 0 ? [said.dirty(tier.dirty_chunks)] : []),
    ];
    const value = said.size(tier.bytes, said.chunks(tier.chunks));
    return notes.length === 0 ? { name, value } : { name, value, note: notes.join(', ') };
  };
  return [
    { name: said.inUse, value: pages(pool.in_use_pages) },
    { name: said.kept, value: pages(pool.cached_pages) },
    ...(exists(tiers.memory) ? [chunks(said.memory, tiers.memory)] : []),
    ...(exists(tiers.flash) ? [chunks(said.flash, tiers.flash)] : []),
    ...(totals.prompt_tokens > 0
      ? [
          {
            name: said.reused,
            value: words.sharedOf(totals.reused_tokens, totals.prompt_tokens),
            note: said.reusedHint,
          },
        ]
      : []),
  ];
}

const exists = (tier: TierView): boolean => tier.chunks > 0 || tier.bytes > 0 || tier.lookups > 0;

/** Whether nothing is kept outside the pool. */
export const isAllInPool = ({ memory, flash }: Snapshot['tiers']): boolean =>
  !exists(memory) && !exists(flash);

/** The parts of the model: where each is, and whose requests need it. */
export function componentFacts({ components, lanes }: Pick<Snapshot, 'components' | 'lanes'>): Fact[] {
  const owners = new Map(lanes.map(({ id, owner }) => [id, ownerName(owner)]));
  return components.map((component) => {
    const fact = { name: words.components.name(component.name), value: componentState(component) };
    const names = component.owners.map((id) => owners.get(id) ?? words.components.request(id));
    return names.length === 0
      ? fact
      : { ...fact, note: words.components.heldBy(words.names([...new Set(names)])) };
  });
}

function componentState({ state, bytes }: ComponentView): string {
  const said = words.components.states[state];
  return bytes > 0 ? words.components.withBytes(said, bytes) : said;
}

/** A request in words: what it does, a figure for the right, and how far its prompt is read, of 1. */
export type LaneLine = { does: string; figure: string; note: string; share: number | null };

/** What a request does. */
export function laneLine({ phase, prompt_tokens, reused_tokens }: LaneView): LaneLine {
  const { lanes: said } = words;
  switch (phase.kind) {
    case 'queued':
      return {
        does: said.queued(phase.ahead + 1),
        figure: said.waited(phase.waited_seconds),
        note: phase.overtaken > 0 ? said.overtaken(phase.overtaken) : '',
        share: null,
      };
    case 'prefill':
      return {
        does: said.reading(phase.done_tokens, prompt_tokens),
        figure: phase.seconds_left === null ? '' : said.left(phase.seconds_left),
        note: reused_tokens > 0 ? said.reused(reused_tokens) : '',
        share: prompt_tokens > 0 ? Math.min(1, phase.done_tokens / prompt_tokens) : 0,
      };
    case 'decode':
      return {
        does: said.answering(phase.answer_tokens),
        figure: phase.tokens_per_second > 0 ? said.speed(phase.tokens_per_second) : '',
        note: said.prompt(prompt_tokens, reused_tokens),
        share: null,
      };
  }
}

/** Requests under way and waiting, in short. */
export function laneFigure(lanes: LaneView[]): string {
  const waiting = lanes.filter(({ phase }) => phase.kind === 'queued').length;
  return words.lanes.figure(lanes.length - waiting, waiting);
}

/** Beyond this a limit means that there is none. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** The program's memory and its limit; the share is null when one of them is unknown. */
export function processUse({ process_bytes, limit_bytes }: Snapshot['memory']): {
  text: string;
  share: number | null;
} {
  if (process_bytes === null) return { text: words.unknown, share: null };
  if (limit_bytes >= NO_LIMIT || limit_bytes === 0) return { text: formatBytes(process_bytes), share: null };
  return {
    text: words.memory.ofLimit(process_bytes, limit_bytes),
    share: Math.min(1, process_bytes / limit_bytes),
  };
}

/** Memory of the machine, and what the engine counts of its own. */
export function memoryFacts(memory: Snapshot['memory']): Fact[] {
  const { memory: said } = words;
  return [
    ...(memory.total_bytes > 0
      ? [{ name: said.available, value: said.ofLimit(memory.available_bytes, memory.total_bytes) }]
      : []),
    { name: said.weights, value: formatBytes(memory.weight_bytes) },
    { name: said.workspace, value: formatBytes(memory.workspace_bytes) },
    { name: said.kv, value: formatBytes(memory.kv_bytes) },
    ...(memory.stalled_percent === null
      ? []
      : [{ name: said.stalled, value: words.percent(memory.stalled_percent), note: said.stalledHint }]),
  ];
}

/** How tokens are guessed ahead, and how often rightly. */
export function speculationFacts({ method, guessed, accepted }: SpeculationView): Fact[] {
  const { memory: said } = words;
  return [
    { name: said.speculation, value: method === '' ? words.unknown : said.method(method) },
    ...(guessed > 0 ? [{ name: said.accepted, value: words.sharedOf(accepted, guessed) }] : []),
  ];
}

/** The reason to show: the one shown already as long as only its figures are others, so that it is said once. */
export function refusalOf(shown: string | null, now: string | null): string | null {
  const kind = (reason: string): string => reason.replace(/\d+/g, '0');
  return shown !== null && now !== null && kind(shown) === kind(now) ? shown : now;
}

/** What a cell of the map stands for, and whose its pages are. */
export function cellWords({ first, holders }: Cell, owners: OwnerView[]): string {
  const { pool: said } = words;
  const pages = holders.reduce((sum, [, count]) => sum + count, 0);
  const place = pages === 1 ? said.page(first + 1) : said.pageRun(first + 1, first + pages);
  const names = holders.map(([index, count]) => {
    const owner = owners[index ?? -1];
    const name = owner === undefined ? said.nobody : said.holder(ownerName(owner.name), owner.is_active);
    return pages === 1 || holders.length === 1 ? name : said.holderOf(name, count);
  });
  return said.at(place, names);
}

/** Runs of pages that are named before the rest is only counted. */
const FEW_RUNS = 4;

/** Where an owner's pages are. */
export function ownerWords({ owner, index }: LegendRow, map: PoolView['map']): string {
  const { pool: said } = words;
  const name = said.holder(ownerName(owner.name), owner.is_active);
  const runs = runsOf(map, index);
  if (runs.length === 0) return owner.pages > 0 ? said.onlyShared(name) : said.noPages(name);
  const shown = runs.slice(0, FEW_RUNS).map(([first, last]) => said.runOf(first + 1, last + 1));
  const pages = runs.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  return said.at(said.runs(pages, shown, runs.length - shown.length), [name]);
}
