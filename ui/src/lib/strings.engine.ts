// Every word about the engine in the context panel: its memory, its requests and the parts of the model.
import type { ComponentState } from './bindings';
import { formatBytes, formatDecimal, formatInteger, formatPercent, plural } from './format';
import { inLanguage } from './language';
import { german } from './strings.engine.de';
import { seconds } from './strings.time';

const counted = (count: number, one: string, other: string): string =>
  `${formatInteger(count)} ${plural(count, { one, other })}`;
const pages = (count: number): string => counted(count, 'page', 'pages');
const tokens = (count: number): string => counted(count, 'token', 'tokens');
const list = new Intl.ListFormat('en', { type: 'conjunction' });

const components: Record<string, string> = {
  backbone: 'Backbone',
  embedding: 'Embedding',
  head: 'Head',
  predictor: 'Predictor',
  'vision tower': 'Vision tower',
};
const methods: Record<string, string> = {
  off: 'Off',
  'prompt lookup': 'Prompt lookup',
  'draft model': 'Draft model',
};

/** What the panel says of the engine, in English. */
export const english = {
  unnamed: 'Unnamed',
  // What the program does by itself, by the engine's name for it.
  ownWork: { 'reading ahead': 'reading ahead', title: 'a title' } as Record<string, string>,
  unknown: 'Unknown',
  pages,
  tokens,
  names: (names: string[]) => list.format(names),
  percent: (value: number) => `${formatDecimal(Math.round(value * 10) / 10)}%`,
  sharedOf: (part: number, whole: number) =>
    `${formatInteger(part)} of ${formatInteger(whole)} (${formatPercent(part / Math.max(whole, 1))})`,
  refusal: (reason: string) => `New requests are refused: ${reason}.`,

  pool: {
    title: 'KV pool',
    figure: (held: number, all: number) => `${formatInteger(held)} of ${pages(all)}`,
    label: (inUse: number, kept: number, free: number, all: number) =>
      `Map of ${pages(all)}: ${formatInteger(inUse)} in use, ${formatInteger(kept)} kept, ${formatInteger(free)} free`,
    run: (count: number) => `Each square stands for ${pages(count)}.`,
    hint: 'Point at a square or a name to see whose pages these are.',
    page: (first: number) => `Page ${formatInteger(first)}`,
    pageRun: (first: number, last: number) => `Pages ${formatInteger(first)}–${formatInteger(last)}`,
    at: (place: string, holders: string[]) => `${place}: ${holders.join(', ')}`,
    holder: (name: string, isActive: boolean) => (isActive ? name : `${name} (kept)`),
    holderOf: (holder: string, count: number) => `${formatInteger(count)} ${holder}`,
    nobody: 'free',
    runs: (count: number, runs: string[], more: number) =>
      `${plural(count, { one: 'Page', other: 'Pages' })} ${runs.join(', ')}${more > 0 ? ` and ${formatInteger(more)} more runs` : ''}`,
    noPages: (holder: string) => `${holder}: no pages yet`,
    onlyShared: (holder: string) => `${holder}: all its pages are shared and shown as another’s`,
    runOf: (first: number, last: number) =>
      first === last ? formatInteger(first) : `${formatInteger(first)}–${formatInteger(last)}`,
    inUse: 'In use',
    kept: 'Kept for later prompts',
    free: 'Free',
    promised: (count: number) => `${formatInteger(count)} of these are promised to requests under way.`,
    owners: 'Owners',
    ownersPages: 'Pages',
    ownersTokens: 'Tokens',
    // Around an owner's two numbers, for screen readers.
    ownerState: (isActive: boolean): string => (isActive ? ', in use, ' : ', kept, '),
    ownerPages: (count: number) => plural(count, { one: ' page, ', other: ' pages, ' }),
    ownerTokens: (count: number) => plural(count, { one: ' token', other: ' tokens' }),
    none: 'Nobody holds pages.',
    showAll: (count: number) => `Show ${formatInteger(count)} more`,
    showFewer: 'Show fewer',
    highWater: 'Most at once',
    size: 'Size',
    sizeOf: (all: number, page: number) =>
      `${formatInteger(all)} × ${formatBytes(page)} = ${formatBytes(all * page)}`,
    resident: 'Resident',
    format: 'Format',
    formatOf: (format: string, tokenBytes: number) =>
      `${format}, ${counted(tokenBytes, 'byte', 'bytes')} a token`,
    pageTokens: 'A page',
  },

  tiers: {
    title: 'Tiers',
    inUse: 'In use',
    kept: 'Memory pool, kept',
    memory: 'Chunks in memory',
    flash: 'Flash',
    size: (bytes: number, count: string) => `${formatBytes(bytes)}, ${count}`,
    chunks: (count: number) => counted(count, 'chunk', 'chunks'),
    hits: (hits: number, lookups: number) =>
      `${formatInteger(hits)} of ${counted(lookups, 'lookup', 'lookups')} found it`,
    dirty: (count: number) => `${counted(count, 'chunk', 'chunks')} not yet written to disk`,
    nothingOutside: 'Not yet: nothing is stored outside the pool.',
    reused: 'Reused',
    reusedHint: 'Prompt tokens whose keys and values were there already.',
  },

  prefetch: {
    title: 'Prefetch',
    none: 'Not yet: nothing is loaded ahead of time.',
    item: (owner: string, reason: string) => `${owner}: ${reason}`,
  },

  images: {
    title: 'Images',
    none: 'Not yet: images are not read.',
    item: (name: string, state: string) => `${name}: ${state}`,
  },

  components: {
    title: 'Components',
    name: (name: string) => components[name] ?? name,
    states: {
      resident: 'In memory',
      mapped: 'Mapped from the file',
      released: 'Released',
      absent: 'None',
    } satisfies Record<ComponentState, string>,
    withBytes: (state: string, bytes: number) => `${state}, ${formatBytes(bytes)}`,
    heldBy: (names: string) => `Held by ${names}`,
    request: (id: number) => `request ${formatInteger(id)}`,
  },

  lanes: {
    title: 'Lanes',
    figure: (active: number, waiting: number) =>
      [
        ...(active > 0 ? [`${formatInteger(active)} active`] : []),
        ...(waiting > 0 ? [`${formatInteger(waiting)} waiting`] : []),
      ].join(', '),
    none: 'Nothing is being read or answered.',
    done: (requests: number, refused: number) =>
      `${counted(requests, 'request', 'requests')} done since the model was loaded${refused > 0 ? `, ${formatInteger(refused)} refused` : ''}`,
    queued: (place: number) => `Waiting, number ${formatInteger(place)} in line`,
    waited: (value: number) => seconds(Math.max(1, Math.floor(value))),
    overtaken: (count: number) =>
      plural(count, {
        one: 'a later one went first',
        other: `${formatInteger(count)} later ones went first`,
      }),
    reading: (done: number, all: number) => `Reading ${formatInteger(done)} of ${tokens(all)}`,
    reused: (count: number) => `${formatInteger(count)} reused`,
    left: (value: number) => `${seconds(Math.max(1, Math.ceil(value)))} left`,
    answering: (count: number) => `Answering, ${tokens(count)}`,
    speed: (perSecond: number) =>
      `${perSecond < 10 ? formatDecimal(Math.round(perSecond * 10) / 10) : formatInteger(perSecond)} tokens/s`,
    prompt: (count: number, reused: number) =>
      `prompt of ${tokens(count)}${reused > 0 ? `, ${formatInteger(reused)} reused` : ''}`,
  },

  memory: {
    title: 'Memory',
    ofLimit: (bytes: number, limit: number) => `${formatBytes(bytes)} of ${formatBytes(limit)}`,
    process: 'This program',
    available: 'Free on this machine',
    weights: 'Weights',
    workspace: 'Scratch',
    kv: 'Keys and values',
    stalled: 'Waiting for memory',
    stalledHint: 'Share of the last 10 s in which programs waited for it.',
    speculation: 'Guessing ahead',
    method: (method: string) => methods[method] ?? method,
    accepted: 'Guessed right',
  },
};

/** All of it, in whatever language. */
export type EngineStrings = typeof english;

/** What the panel says of the engine. */
export const engineStrings: EngineStrings = inLanguage(english, german);
