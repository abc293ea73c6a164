// Every word of the screen of models.
import type { Fetching, Fit, ModelState } from './bindings';
import { formatBytes, formatInteger, formatPercent, plural } from './format';
import { inLanguage } from './language';
import { german } from './strings.models.de';

const tokens = (count: number): string =>
  `${formatInteger(count)} ${plural(count, { one: 'token', other: 'tokens' })}`;

/** What is said of models, in English. */
export const english = {
  title: 'Models',
  intro: 'Which model answers. Changing it keeps all chats.',
  loading: 'Looking for models…',
  notListed: (reason: string) => `The models cannot be shown: ${reason}`,
  groups: {
    here: 'On this machine',
    found: 'Found in other programs',
    known: 'Known models',
  },
  groupHints: {
    here: '',
    found: 'They stay where they are; nothing is copied.',
    known: 'Not on this machine.',
  },
  nothingHere: 'There is no model on this machine yet.',
  inUse: 'In use',
  states: {
    loading: 'Loading',
    ready: 'Ready',
    failed: 'Could not be loaded',
  } satisfies Record<ModelState['status'], string>,
  foundIn: (program: string) => `in ${program}`,
  size: formatBytes,
  trained: (count: number) => `window of ${tokens(count)}`,
  needs: (bytes: number, window: number | null) =>
    window === null
      ? `takes about ${formatBytes(bytes)}`
      : `takes about ${formatBytes(bytes)} with a window of ${formatInteger(window)}`,
  fits: { fits: 'Fits', tight: 'Tight', tooLarge: 'Too large' } satisfies Record<Fit, string>,
  fitHints: {
    fits: 'It fits well into this machine’s memory.',
    tight: 'It fits with little memory to spare.',
    tooLarge: 'This machine has too little memory for it.',
  } satisfies Record<Fit, string>,
  use: 'Use',
  useLabel: (name: string) => `Use ${name}`,
  remove: 'Remove',
  removeLabel: (name: string) => `Remove ${name}`,
  sure: 'It is taken off this list; its file stays.',
  cancel: 'Cancel',
  add: 'Add a GGUF file…',
  added: (name: string) => `${name} was added.`,
  licence: (name: string) => `Licence: ${name}`,
  page: 'About it',
  pageLabel: (name: string) => `About it: ${name}`,
  fetch: 'Fetch',
  fetchLabel: (name: string) => `Fetch ${name}`,
  fetching: (name: string) => `Fetching ${name}`,
  fetched: ({ doneBytes, totalBytes }: Fetching) =>
    totalBytes === null
      ? formatBytes(doneBytes)
      : `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)} (${formatPercent(doneBytes / Math.max(totalBytes, 1))})`,
  stop: 'Stop',
  stopLabel: (name: string) => `Stop fetching ${name}`,
  measure: 'Measure its KV format',
  measureHint:
    'Finds out how few bits hold what the model has read without its answers getting worse. It takes a few minutes.',
  measuring: (activity: string, share: number) => `${activity}, ${formatPercent(share)}`,
  measuringLabel: 'Progress of the measurement',
};

/** All of it, in whatever language. */
export type ModelStrings = typeof english;

/** What is said of models. */
export const modelStrings: ModelStrings = inLanguage(english, german);
