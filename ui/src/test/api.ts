// A program that answers as a test says. Used in place of `lib/api` by `vi.mock`; every command that a test does not
// speak of succeeds and changes nothing.
import { vi } from 'vitest';
import type * as Api from '../lib/api';
import type { AppEvent, Start } from '../lib/bindings';
import { told } from '../lib/messages';
import { aDocument, chatOf, documentList, inspection, settings, skillList, startOf, summary } from './values';

type Commands = { [Name in keyof typeof Api]: ReturnType<typeof vi.fn<(typeof Api)[Name]>> };

/** What the page handed to `start`. */
let sink: (events: AppEvent[]) => void = () => {};

/** Sends events to the page. */
export const emit = (...events: AppEvent[]): void => sink(events);

export const api: Commands = {
  start: vi.fn(),
  openChat: vi.fn(),
  send: vi.fn(),
  editTurn: vi.fn(),
  regenerate: vi.fn(),
  continueTurn: vi.fn(),
  stop: vi.fn(),
  selectBranch: vi.fn(),
  sources: vi.fn(),
  answerQuestion: vi.fn(),
  renameChat: vi.fn(),
  pinChat: vi.fn(),
  moveChat: vi.fn(),
  deleteChat: vi.fn(),
  restoreChat: vi.fn(),
  exportChat: vi.fn(),
  addFolder: vi.fn(),
  renameFolder: vi.fn(),
  removeFolder: vi.fn(),
  setDraft: vi.fn(),
  chips: vi.fn(),
  setChips: vi.fn(),
  search: vi.fn(),
  contextUse: vi.fn(),
  saveSettings: vi.fn(),
  listModels: vi.fn(),
  addModel: vi.fn(),
  reloadModel: vi.fn(),
  snapshot: vi.fn(),
  inspect: vi.fn(),
  listKept: vi.fn(),
  listChunks: vi.fn(),
  pinChunk: vi.fn(),
  evictChunk: vi.fn(),
  eraseKept: vi.fn(),
  listDocuments: vi.fn(),
  suggestDocuments: vi.fn(),
  addDocuments: vi.fn(),
  attachFile: vi.fn(),
  addSample: vi.fn(),
  eraseEverything: vi.fn(),
  removeSource: vi.fn(),
  unlockDocument: vi.fn(),
  stopIndexing: vi.fn(),
  updateDocuments: vi.fn(),
  readDocument: vi.fn(),
  openDocument: vi.fn(),
  listSkills: vi.fn(),
  enableSkill: vi.fn(),
  trustSkill: vi.fn(),
  readSkillFile: vi.fn(),
  modelsShown: vi.fn(),
  addFound: vi.fn(),
  removeModel: vi.fn(),
  fetchModel: vi.fn(),
  stopFetching: vi.fn(),
  tuneModel: vi.fn(),
  openLink: vi.fn(),
  messageOf: vi.fn(),
};

/** Forgets what earlier tests said; `start` is what the program begins with. */
export function resetApi(start: Partial<Start> = {}): void {
  const begin = startOf(start);
  const known = (id: number) => begin.list.chats.find((chat) => chat.id === id) ?? summary({ id });
  for (const command of Object.values(api)) command.mockReset();
  api.start.mockImplementation(async (onEvents) => {
    sink = onEvents;
    return begin;
  });
  api.openChat.mockImplementation(async (id) => chatOf([], known(id)));
  api.stop.mockResolvedValue();
  api.renameChat.mockImplementation(async (id, title) => ({ ...known(id), title }));
  api.pinChat.mockImplementation(async (id, pinned) => ({ ...known(id), pinned }));
  api.moveChat.mockImplementation(async (id, folder) => ({ ...known(id), folder }));
  api.deleteChat.mockResolvedValue();
  api.restoreChat.mockImplementation(async (id) => known(id));
  api.exportChat.mockResolvedValue(null);
  api.addFolder.mockImplementation(async (name) => ({ id: 100, name }));
  api.renameFolder.mockImplementation(async (id, name) => ({ id, name }));
  api.removeFolder.mockResolvedValue();
  api.setDraft.mockResolvedValue();
  api.chips.mockImplementation(async () => ({ documents: [], allDocuments: false, skills: [] }));
  api.setChips.mockResolvedValue();
  api.search.mockResolvedValue([]);
  api.contextUse.mockResolvedValue(null);
  api.saveSettings.mockImplementation(async (saved) => settings(saved));
  api.listModels.mockResolvedValue([]);
  api.addModel.mockResolvedValue(null);
  api.reloadModel.mockResolvedValue();
  api.snapshot.mockResolvedValue(null);
  api.inspect.mockImplementation(async () => inspection());
  api.listKept.mockResolvedValue({ owners: [], chunks: 0, bytes: 0, folder: '~/kv' });
  api.listChunks.mockResolvedValue([]);
  api.pinChunk.mockResolvedValue();
  api.evictChunk.mockResolvedValue();
  api.eraseKept.mockResolvedValue();
  api.sources.mockResolvedValue({ text: '', given: [], cited: [], steps: [] });
  api.answerQuestion.mockResolvedValue();
  api.listDocuments.mockImplementation(async () => documentList());
  api.suggestDocuments.mockResolvedValue([]);
  api.addDocuments.mockResolvedValue(0);
  api.addSample.mockImplementation(async () =>
    aDocument({ id: 'sample', name: 'handbook.md', state: 'waiting' }),
  );
  api.eraseEverything.mockResolvedValue();
  api.attachFile.mockImplementation(async (name) => aDocument({ id: name, name, state: 'waiting' }));
  api.removeSource.mockResolvedValue();
  api.unlockDocument.mockResolvedValue();
  api.stopIndexing.mockResolvedValue();
  api.updateDocuments.mockResolvedValue();
  api.readDocument.mockImplementation(async (path) => ({ document: aDocument({ path }), passages: [] }));
  api.openDocument.mockResolvedValue();
  api.listSkills.mockImplementation(async () => skillList());
  api.enableSkill.mockResolvedValue();
  api.trustSkill.mockResolvedValue();
  api.readSkillFile.mockResolvedValue('');
  api.modelsShown.mockResolvedValue([]);
  api.addFound.mockImplementation(async (path) => path);
  api.removeModel.mockResolvedValue();
  api.fetchModel.mockResolvedValue();
  api.stopFetching.mockResolvedValue();
  api.tuneModel.mockResolvedValue();
  api.openLink.mockResolvedValue();
  api.messageOf.mockImplementation((error) =>
    typeof error === 'object' && error !== null && 'message' in error
      ? told(String(error.message))
      : String(error),
  );
}
