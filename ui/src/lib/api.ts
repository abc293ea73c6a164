// The commands of the program around this page, typed. Nothing else in the page talks to it.
import { Channel, invoke } from '@tauri-apps/api/core';
import type {
  AnswerSources,
  AppEvent,
  Asked,
  Chat,
  ChatSummary,
  Chips,
  ContextUse,
  DocumentList,
  DocumentShown,
  DocumentState,
  DocumentText,
  ExportFormat,
  Folder,
  Inspection,
  Kept,
  KeptChunk,
  ModelChoice,
  ModelShown,
  Permission,
  SearchHit,
  Settings,
  SkillList,
  Snapshot,
  Start,
} from './bindings';
import { told } from './messages';

/** Begins: from now on `onEvents` gets what happens. A later call takes the earlier one's place. */
export function start(onEvents: (events: AppEvent[]) => void): Promise<Start> {
  const events = new Channel<AppEvent[]>();
  events.onmessage = onEvents;
  return invoke('start', { events });
}

export const openChat = (chat: number): Promise<Chat> => invoke('open_chat', { chat });

/** Adds the person's turn after `parent` (none: the chat's first) and begins an answer. Without a chat, a new one. */
export const send = (chat: number | null, parent: number | null, text: string, asked: Asked): Promise<Chat> =>
  invoke('send', { chat, parent, text, asked });
/** The person's turn anew with another text, and the same documents and skills: a branch, with an answer of its own. */
export const editTurn = (turn: number, text: string): Promise<Chat> => invoke('edit_turn', { turn, text });
/** Another answer to the same turn: a branch. */
export const regenerate = (turn: number): Promise<Chat> => invoke('regenerate', { turn });
/** Goes on with an answer that was stopped or cut. */
export const continueTurn = (turn: number): Promise<Chat> => invoke('continue_turn', { turn });
export const stop = (turn: number): Promise<void> => invoke('stop', { turn });
/** Shows the branch that this turn is on. */
export const selectBranch = (turn: number): Promise<Chat> => invoke('select_branch', { turn });
/** What an answer that has ended was made from. */
export const sources = (turn: number): Promise<AnswerSources> => invoke('sources', { turn });
/** What the person says to a question about something that wants to run. */
export const answerQuestion = (id: number, permission: Permission): Promise<void> =>
  invoke('answer_question', { id, permission });

export const renameChat = (chat: number, title: string): Promise<ChatSummary> =>
  invoke('rename_chat', { chat, title });
export const pinChat = (chat: number, pinned: boolean): Promise<ChatSummary> =>
  invoke('pin_chat', { chat, pinned });
export const moveChat = (chat: number, folder: number | null): Promise<ChatSummary> =>
  invoke('move_chat', { chat, folder });
/** Takes a chat away; `restoreChat` brings it back until the program ends or a while has passed. */
export const deleteChat = (chat: number): Promise<void> => invoke('delete_chat', { chat });
export const restoreChat = (chat: number): Promise<ChatSummary> => invoke('restore_chat', { chat });
/** Asks where to and writes; the file's path, or null when the person changed their mind. */
export const exportChat = (chat: number, format: ExportFormat): Promise<string | null> =>
  invoke('export_chat', { chat, format });
export const addFolder = (name: string): Promise<Folder> => invoke('add_folder', { name });
export const renameFolder = (folder: number, name: string): Promise<Folder> =>
  invoke('rename_folder', { folder, name });
/** The folder goes, its chats stay. */
export const removeFolder = (folder: number): Promise<void> => invoke('remove_folder', { folder });
/** Keeps what was typed and not sent (chat null: for the next new chat). */
export const setDraft = (chat: number | null, text: string): Promise<void> =>
  invoke('set_draft', { chat, text });
/** What the next message was to be asked with when the chat was left (chat null: of the next new chat). */
export const chips = (chat: number | null): Promise<Chips> => invoke('chips', { chat });
/** Keeps what the next message is to be asked with. */
export const setChips = (chat: number | null, asked: Asked): Promise<void> =>
  invoke('set_chips', { chat, asked });
export const search = (query: string): Promise<SearchHit[]> => invoke('search', { query });

/** Null while no model is loaded, and for a draft too long to be counted while it is typed. */
export const contextUse = (chat: number | null, draft: string, asked: Asked): Promise<ContextUse | null> =>
  invoke('context_use', { chat, draft, asked });

export const saveSettings = (settings: Settings): Promise<Settings> => invoke('save_settings', { settings });
export const listModels = (): Promise<ModelChoice[]> => invoke('list_models');
/** Asks for a GGUF file and adds it to the models; null when the person changed their mind. */
export const addModel = (): Promise<ModelChoice | null> => invoke('add_model');
/** Loads the chosen model again, after a failure. */
export const reloadModel = (): Promise<void> => invoke('reload_model');
/** What the engine looks like now; null while no model is loaded. Later pictures come as events of kind `snapshot`. */
export const snapshot = (): Promise<Snapshot | null> => invoke('snapshot');
/** How the prompt of an answer was read, or would be now when that is not known any more. */
export const inspect = (turn: number): Promise<Inspection> => invoke('inspect', { turn });
/** What is kept on disk of texts that were read. */
export const listKept = (): Promise<Kept> => invoke('list_kept');
/** An owner's chunks, most worth keeping first. */
export const listChunks = (owner: string): Promise<KeptChunk[]> => invoke('list_chunks', { owner });
/** Keeps a chunk whatever else has to go, or no longer. */
export const pinChunk = (chunk: string, pinned: boolean): Promise<void> =>
  invoke('pin_chunk', { chunk, pinned });
/** Lets a chunk go; its text is read again when it is needed. */
export const evictChunk = (chunk: string): Promise<void> => invoke('evict_chunk', { chunk });
/** Erases what is kept for an owner, or for everybody. */
export const eraseKept = (owner: string | null): Promise<void> => invoke('erase_kept', { owner });

/** The documents whose names fit, of one source or in one state where one is named: at most 500, and how many there are. */
export const listDocuments = (
  query: string,
  source: number | null,
  state: DocumentState | null,
): Promise<DocumentList> => invoke('list_documents', { query, source, state });
/** At most eight documents that fit what is typed after an `@`. */
export const suggestDocuments = (query: string): Promise<DocumentShown[]> =>
  invoke('suggest_documents', { query });
/** Asks for files, or for a folder; how many were added, none when the person changed their mind. */
export const addDocuments = (folder: boolean): Promise<number> => invoke('add_documents', { folder });
/** Adds the document that comes with the program, to try things with. */
export const addSample = (): Promise<DocumentShown> => invoke('add_sample');
/** Erases chats, documents and what is kept of texts: nothing of it can be had back. */
export const eraseEverything = (): Promise<void> => invoke('erase_everything');
/** A file that was dropped or pasted: it is copied into the program's folder. Its bytes travel as they are. */
export const attachFile = (name: string, bytes: Uint8Array): Promise<DocumentShown> =>
  invoke('attach_file', bytes, { headers: { name: encodeURIComponent(name) } });
/** Takes a file or folder out of the index, with all that was kept of it. The file itself stays. */
export const removeSource = (source: number): Promise<void> => invoke('remove_source', { source });
export const unlockDocument = (id: string, password: string): Promise<void> =>
  invoke('unlock_document', { id, password });
export const stopIndexing = (): Promise<void> => invoke('stop_indexing');
/** Looks again at everything that was added, or goes on after a stop. */
export const updateDocuments = (): Promise<void> => invoke('update_documents');
export const readDocument = (path: string): Promise<DocumentText> => invoke('read_document', { path });
/** Opens a document in the system's own program for it. */
export const openDocument = (path: string): Promise<void> => invoke('open_document', { path });

export const listSkills = (): Promise<SkillList> => invoke('list_skills');
export const enableSkill = (name: string, enabled: boolean): Promise<void> =>
  invoke('enable_skill', { name, enabled });
/** Lets a skill's scripts run without asking, until a file of it changes, or no longer. */
export const trustSkill = (name: string, trusted: boolean): Promise<void> =>
  invoke('trust_skill', { name, trusted });
export const readSkillFile = (name: string, path: string): Promise<string> =>
  invoke('read_skill_file', { name, path });

/** All models: those on this machine, those of other programs, and those that are known and not here. */
export const modelsShown = (): Promise<ModelShown[]> => invoke('models_shown');
/** Adds a model that another program has; the name that `Settings.model` takes. */
export const addFound = (path: string): Promise<string> => invoke('add_found', { path });
/** Forgets a model that was added; its file stays. */
export const removeModel = (id: string): Promise<void> => invoke('remove_model', { id });
/** Begins to fetch a model; how far it is comes as events of kind `fetching`. */
export const fetchModel = (id: string): Promise<void> => invoke('fetch_model', { id });
export const stopFetching = (id: string): Promise<void> => invoke('stop_fetching', { id });
/** Measures now how the loaded model's keys and values are best stored; the snapshot's `tuning` says how far it is. */
export const tuneModel = (): Promise<void> => invoke('tune_model');

/** Opens a link in the system's browser. Ask first. */
export const openLink = (url: string): Promise<void> => invoke('open_link', { url });

/** The sentence for a person in whatever a command threw, in the page's language. */
export function messageOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'message' in error) return told(String(error.message));
  return String(error);
}
