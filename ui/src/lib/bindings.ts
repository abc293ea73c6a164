// Generated from the Rust types; do not edit. A test of reprise-app fails when this file is stale.

export type Role = 'user' | 'assistant';

/** How far a turn has come, and for answers why they ended. */
export type TurnState =
  /** An answer that is being written (or waits to be). */
  | 'writing'
  /** The model ended its turn, or a person's turn. */
  | 'done'
  /** The person stopped it. */
  | 'stopped'
  /** It reached the most tokens an answer may have. */
  | 'limit'
  /** The model's window is full. */
  | 'window'
  /** It only repeated itself. */
  | 'repeating'
  /** The program ended while it was written. */
  | 'interrupted'
  /** Something failed; `error` says what. */
  | 'failed';

export type AnswerStats = {
  /** The model's name. */
  model: string;
  promptTokens: number;
  /** Prompt tokens whose keys and values were there because everything before them was the same. */
  reusedPrefixTokens: number;
  /** Prompt tokens reused at another place. */
  reusedElsewhereTokens: number;
  answerTokens: number;
  firstTokenMs: number;
  decodeMs: number;
  /** Time that reading the reused tokens would have taken. */
  savedMs: number;
};

/** Where a turn stands among the turns that share its parent; more than one are branches. */
export type Branch = {
  /** All turns with this parent, oldest first. */
  siblings: number[];
  /** This turn's place among them, from 0. */
  index: number;
};

export type Turn = {
  id: number;
  chat: number;
  parent: number | null;
  role: Role;
  text: string;
  state: TurnState;
  createdMs: number;
  stats: AnswerStats | null;
  error: string | null;
  branch: Branch;
};

export type ChatSummary = {
  id: number;
  /** None until something was asked. */
  title: string | null;
  folder: number | null;
  pinned: boolean;
  createdMs: number;
  updatedMs: number;
  /** What was typed and not sent. */
  draft: string;
};

export type Folder = { id: number; name: string };

export type ChatList = { chats: ChatSummary[]; folders: Folder[] };

export type Chat = {
  summary: ChatSummary;
  /** The turns from the first to the last of the branch that is shown. */
  turns: Turn[];
};

/** A piece of a search hit's text; `hit` marks what was searched for. */
export type SnippetPart = { text: string; hit: boolean };

export type SearchHit = {
  chat: number;
  title: string;
  /** The turn with the words; none when they are in the title. */
  turn: number | null;
  snippet: SnippetPart[];
  updatedMs: number;
};

export type ExportFormat = 'markdown' | 'json';

export type Theme = 'system' | 'light' | 'dark';

export type Settings = {
  theme: Theme;
  /** What the model is told before every chat. */
  systemPrompt: string;
  /** A model's name or file; none is the default one. */
  model: string | null;
  /** The window in tokens; none is the smaller of the model's own and 8,192. */
  contextTokens: number | null;
  /** Compute threads; none is the machine's cores. */
  threads: number | null;
  temperature: number;
  topP: number;
  repetitionPenalty: number;
  maxAnswerTokens: number;
  sidebarOpen: boolean;
  panelOpen: boolean;
};

export type ModelChoice = {
  /** What `Settings.model` takes. */
  id: string;
  name: string;
  sizeBytes: number;
  note: string;
};

export type ModelState =
  | { status: 'loading'; name: string }
  | {
      status: 'ready';
      name: string;
      quantisation: string;
      contextTokens: number;
      threads: number;
      backend: string;
      /** Something a person should know about this model, such as a missing chat template. */
      warning: string | null;
    }
  | { status: 'failed'; name: string; error: string };

/** What a request is at. */
export type Phase =
  | { at: 'queued' }
  | { at: 'loading' }
  | {
      at: 'reading';
      doneTokens: number;
      totalTokens: number;
      reusedTokens: number;
      /** None before the speed is known. */
      secondsLeft: number | null;
    }
  | { at: 'writing' };

/** Something that happened; the page gets them in order, a list at most once per frame. */
export type AppEvent =
  | { kind: 'model'; model: ModelState }
  | { kind: 'phase'; chat: number; turn: number; phase: Phase }
  /** More of an answer. `from` is the length (UTF-16 units) of what came before. */
  | { kind: 'text'; chat: number; turn: number; from: number; text: string }
  /** An answer ended, in whatever way. */
  | { kind: 'ended'; turn: Turn }
  /** A chat's title, draft, place or time changed. */
  | { kind: 'chat'; summary: ChatSummary }
  /** Something to tell the person, outside of any answer. */
  | { kind: 'notice'; message: string };

/** What the page needs to begin. */
export type Start = {
  settings: Settings;
  model: ModelState;
  list: ChatList;
  /** Draft of the chat that does not exist yet. */
  newChatDraft: string;
  /** What a person should know once: a backup that was made, answers that a crash cut short, a missing font. */
  notices: string[];
  /** Answers under way, when the page was loaded anew. */
  phases: { turn: number; phase: Phase }[];
  version: string;
  commit: string;
  dataFolder: string;
  /** True where the system's modifier key is Cmd. */
  isMac: boolean;
};

/** The window's tokens for this chat's next prompt, by owner. They add up to `window`, unless the draft does not fit. */
export type ContextUse = {
  window: number;
  system: number;
  history: number;
  draft: number;
  reservedOutput: number;
  free: number;
  /** Oldest turns that the model no longer sees. */
  hiddenTurns: number;
};

/** Why a command failed: what, where and what to do. */
export type Failure = { message: string };
