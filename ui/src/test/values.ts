// Values for tests, each whole and valid, with what a test is about said by the test.
import type { Chat, ChatSummary, ModelState, Settings, Start, Turn } from '../lib/bindings';

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
  systemPrompt: 'You are helpful.',
  model: null,
  contextTokens: null,
  threads: null,
  kvStorage: 'profile',
  kvBudgetMegabytes: null,
  memoryLimitMegabytes: null,
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
  version: '0.1.0',
  commit: 'abc1234',
  dataFolder: '/home/someone/.local/share/reprise',
  isMac: false,
  ...change,
});
