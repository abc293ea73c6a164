// Values for tests, each whole and valid, with what a test is about said by the test.
import type {
  Chat,
  ChatSummary,
  DocumentList,
  DocumentShown,
  Given,
  Indexing,
  Inspection,
  ModelShown,
  ModelState,
  Settings,
  SkillList,
  SkillShown,
  SkillSummary,
  Start,
  Turn,
} from '../lib/bindings';

/** A chat of the list. */
export const summary = (change: Partial<ChatSummary> = {}): ChatSummary => ({
  id: 1,
  title: 'A chat',
  folder: null,
  pinned: false,
  createdMs: 0,
  updatedMs: 0,
  draft: '',
  ...change,
});

/** A turn; an answer that is done unless said otherwise. */
export const turn = (change: Partial<Turn> = {}): Turn => {
  const id = change.id ?? 1;
  return {
    id,
    chat: 1,
    parent: null,
    role: 'assistant',
    text: '',
    state: 'done',
    createdMs: 0,
    stats: null,
    error: null,
    branch: { siblings: [id], index: 0 },
    ...change,
  };
};

/** A chat with its turns. */
export const chatOf = (turns: Turn[], change: Partial<ChatSummary> = {}): Chat => ({
  summary: summary(change),
  turns,
});

/** Settings as a new installation has them. */
export const settings = (change: Partial<Settings> = {}): Settings => ({
  theme: 'system',
  language: 'system',
  systemPrompt: 'You are helpful.',
  model: null,
  contextTokens: null,
  threads: null,
  kvStorage: 'profile',
  kvBudgetMegabytes: null,
  memoryLimitMegabytes: null,
  reuse: 'anywhere',
  recomputeRatio: 0.3,
  diskBudgetMegabytes: null,
  readAhead: true,
  tools: true,
  speculation: true,
  temperature: 0.7,
  topP: 0.95,
  repetitionPenalty: 1.1,
  maxAnswerTokens: 1024,
  sidebarOpen: true,
  panelOpen: true,
  ...change,
});

/** A model that can answer. */
export const readyModel: ModelState = {
  status: 'ready',
  name: 'Test Model',
  quantisation: 'Q4_1',
  contextTokens: 8192,
  trainedContextTokens: 8192,
  threads: 2,
  backend: 'CPU',
  warning: null,
  storeFault: null,
};

/** What the program answers to `start`. */
export const startOf = (change: Partial<Start> = {}): Start => ({
  settings: settings(),
  defaultSettings: settings(),
  model: readyModel,
  list: { chats: [], folders: [] },
  newChatDraft: '',
  notices: [],
  phases: [],
  questions: [],
  version: '0.1.0',
  commit: 'abc1234',
  dataFolder: '/home/someone/.local/share/reprise',
  isMac: false,
  ...change,
});

/** How a prompt of 1,000 tokens was read: 600 known, 200 moved and 30 of them computed again, the rest new. */
export const inspection = (change: Partial<Inspection> = {}): Inspection => ({
  isNow: false,
  promptTokens: 1000,
  prefixTokens: 600,
  movedTokens: 200,
  recomputedTokens: 30,
  stretches: [
    { from: 0, to: 400, how: 'pool', text: 'You are helpful.', part: 'system', owner: 'Garden', chunk: null },
    {
      from: 400,
      to: 600,
      how: 'stored',
      text: 'What grows?',
      part: 'turn',
      owner: 'Garden',
      chunk: '0000000000000007',
    },
    {
      from: 600,
      to: 630,
      how: 'again',
      text: 'Ferns ',
      part: 'turn',
      owner: 'Garden',
      chunk: '0000000000000008',
    },
    {
      from: 630,
      to: 800,
      how: 'moved',
      text: 'grow.',
      part: 'turn',
      owner: 'Garden',
      chunk: '0000000000000008',
    },
    { from: 800, to: 1000, how: 'new', text: 'And in sun?', part: 'question', owner: 'Garden', chunk: null },
  ],
  chunks: [
    {
      id: '0000000000000007',
      usedTokens: 200,
      owners: ['Garden'],
      kept: {
        id: '0000000000000007',
        tokens: 256,
        bytes: 2_000_000,
        uses: 1,
        score: 0.5,
        pinned: false,
        madeMs: 0,
        exact: true,
        inMemory: false,
      },
    },
    { id: '0000000000000008', usedTokens: 200, owners: [], kept: null },
  ],
  divergence: { at: 600, text: 'Ferns grow', reason: { kind: 'differs', earlier: 'Mosses' } },
  calls: [
    { purpose: 'fillIn', tokens: 128 },
    { purpose: 'fillIn', tokens: 128 },
    { purpose: 'probe', tokens: 40 },
  ],
  times: {
    waitingMs: 0,
    readingMs: 500,
    matching: { takenMs: 5, hiddenMs: 0 },
    loading: { takenMs: 60, hiddenMs: 40 },
    turning: { takenMs: 10, hiddenMs: 0 },
    computing: { takenMs: 400, hiddenMs: 0 },
    storing: { takenMs: 0, hiddenMs: 0 },
  },
  ...change,
});

/** Documents that are all read. */
export const indexing = (change: Partial<Indexing> = {}): Indexing => ({
  work: { at: 'idle' },
  waiting: 0,
  ready: 0,
  failed: 0,
  skipped: 0,
  passages: 0,
  withoutVector: 0,
  bytes: 0,
  ...change,
});

/** A document that was read. */
export const aDocument = (change: Partial<DocumentShown> = {}): DocumentShown => ({
  id: 'd1',
  source: 1,
  name: 'garden.pdf',
  path: '/home/someone/papers/garden.pdf',
  isCopy: false,
  bytes: 120_000,
  state: 'ready',
  trouble: null,
  needsPassword: false,
  notes: [],
  isOcr: false,
  passages: 12,
  ...change,
});

/** What the documents' screen is told: nothing was added yet. */
export const documentList = (change: Partial<DocumentList> = {}): DocumentList => ({
  sources: [],
  documents: [],
  total: change.documents?.length ?? 0,
  indexing: indexing(),
  notes: [],
  ...change,
});

/** A passage that a question was given. */
export const aPassage = (change: Partial<Given> & { start?: number; end?: number } = {}): Given => {
  const { start = 0, end = 11, ...rest } = change;
  return {
    label: 'garden.pdf, page 3',
    text: 'Ferns grow.',
    source: {
      kind: 'passage',
      path: '/home/someone/papers/garden.pdf',
      owner: 'document:d1',
      place: 'page 3',
      start,
      end,
      isOcr: false,
    },
    ...rest,
  };
};

/** A skill that is on and has no scripts. */
export const aSkill = (change: Partial<SkillSummary> = {}, tokens: number | null = 312): SkillShown => ({
  skill: {
    name: 'tidy-notes',
    description: 'Brings notes into order.',
    source: 'app',
    folder: '~/skills/tidy-notes',
    isEnabled: true,
    isTrusted: false,
    license: null,
    compatibility: null,
    allowedTools: [],
    metadata: {},
    files: [],
    warnings: [],
    body: '# Tidy notes\n\nSort them by day.',
    ...change,
  },
  tokens,
});

/** What the skills' screen is told: there are none. */
export const skillList = (change: Partial<SkillList> = {}): SkillList => ({
  skills: [],
  troubles: [],
  folders: ['~/skills'],
  canCall: true,
  ...change,
});

/** A model of the catalogue that is here. */
export const aModel = (change: Partial<ModelShown> = {}): ModelShown => ({
  id: 'small',
  name: 'Small',
  note: 'Quick, and good at short tasks.',
  origin: 'catalogue',
  foundIn: null,
  path: '/models/small.gguf',
  sizeBytes: 610_000_000,
  quantisation: 'Q4_1',
  contextTokens: 32_768,
  needsBytes: 1_200_000_000,
  fit: 'fits',
  licence: 'Apache-2.0',
  page: 'https://example.org/small',
  trouble: null,
  canFetch: false,
  ...change,
});
