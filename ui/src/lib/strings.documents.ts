// Every word of the screen of documents, and of a document that is open.
import type { DocumentState, IndexWork } from './bindings';
import { formatBytes, formatInteger, plural } from './format';
import { inLanguage } from './language';
import { german } from './strings.documents.de';

const counted = (count: number, one: string, other: string): string =>
  `${formatInteger(count)} ${plural(count, { one, other })}`;
const documents = (count: number): string => counted(count, 'document', 'documents');
const passages = (count: number): string => counted(count, 'passage', 'passages');

/** What is said of documents, in English. */
export const english = {
  title: 'Documents',
  intro:
    'What the model may look things up in. Write @ in a message to ask about a document, or about all of them.',
  private: 'Nothing leaves this machine.',
  empty: 'Add files or folders, and ask about what is in them: answers say which passage they come from.',
  addFiles: 'Add files…',
  addFolder: 'Add folder…',
  added: (count: number) => `${documents(count)} added.`,
  folderAdded: 'Folder added.',
  attached: (count: number) => `${counted(count, 'file', 'files')} added.`,
  notListed: (reason: string) => `The documents cannot be shown: ${reason}`,
  loading: 'Looking…',
  dropHere: 'Drop files to add them',
  keptCopy: (name: string) => `${name}, a copy of a dropped file`,

  status: 'Index',
  work: (work: IndexWork): string => {
    switch (work.at) {
      case 'idle':
        return 'Up to date';
      case 'stopped':
        return 'Stopped';
      case 'failed':
        return work.message;
      case 'looking':
        return `Looking at ${work.path}`;
      case 'reading':
        return `Reading ${formatInteger(work.done)} of ${formatInteger(work.total)}: ${work.name}`;
      case 'embedding':
        return `Finding out what passages mean, ${formatInteger(work.done)} of ${formatInteger(work.total)}`;
    }
  },
  progress: 'Progress of the index',
  readyCount: documents,
  passageCount: passages,
  failedCount: (count: number) => `${formatInteger(count)} without text`,
  waitingCount: (count: number) => `${formatInteger(count)} waiting`,
  wordsOnly: (count: number) => `${formatInteger(count)} found by their words only so far`,
  bytes: (bytes: number) => `${formatBytes(bytes)} on disk`,
  stop: 'Stop',
  continue: 'Continue',
  lookAgain: 'Look again',

  sources: 'Added',
  sourceKind: (isFolder: boolean): string => (isFolder ? 'Folder' : 'File'),
  allSources: 'Show all',
  showOnly: (path: string) => `Show only what is in ${path}`,
  notThere: 'not there now',
  remove: 'Remove',
  removeSource: (path: string) => `Remove ${path}`,
  sure: 'Everything that was read of it is erased, also the chunks kept on disk. The files stay where they are.',
  cancel: 'Cancel',

  list: 'All documents',
  search: 'Search documents by name',
  filter: 'Which documents',
  filters: {
    all: 'All',
    ready: 'Ready',
    waiting: 'Waiting',
    failed: 'Without text',
    skipped: 'Other kinds',
  } satisfies Record<DocumentState | 'all', string>,
  found: (shown: number, total: number) =>
    shown < total ? `The first ${formatInteger(shown)} of ${documents(total)}` : documents(total),
  nothing: 'No document fits.',
  states: {
    ready: '',
    waiting: 'waiting to be read',
    failed: 'without text',
    skipped: 'a kind that is not read',
  } satisfies Record<DocumentState, string>,
  size: formatBytes,
  ocr: 'text recognised',
  password: (name: string) => `Password of ${name}`,
  passwordShort: 'Password',
  unlock: 'Unlock',

  view: {
    openFile: 'Open file',
    loading: 'Reading…',
    cited: 'The passage that was read for the answer',
    gone: (reason: string) =>
      `The document cannot be shown any more: ${reason} This is the passage as it was given to the model.`,
    failed: (reason: string) => `The document cannot be shown: ${reason}`,
    changed: 'The document has changed since: the passage is not in it as it was.',
    none: 'There is no text in it.',
    earlier: (count: number) => `Show ${passages(count)} before`,
    later: (count: number) => `Show ${passages(count)} after`,
    ocr: 'recognised in a picture',
    headings: (headings: string[]) => headings.join(' › '),
  },
};

/** All of it, in whatever language. */
export type DocumentStrings = typeof english;

/** What is said of documents. */
export const documentStrings: DocumentStrings = inLanguage(english, german);
