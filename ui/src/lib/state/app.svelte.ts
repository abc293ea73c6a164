// The page's state: what the program told at the start and every event since, applied in order, plus the chat on show.
// Only what is on show is kept; the program's database is the truth and is asked again whenever something is missing.
import { createContext } from 'svelte';
import * as api from '../api';
import type {
  AppEvent,
  Chat,
  ChatList,
  ChatSummary,
  ExportFormat,
  Given,
  ModelState,
  SearchHit,
  Settings,
  Start,
} from '../bindings';
import { told } from '../messages';
import { strings } from '../strings';
import { Attached } from './attached.svelte';
import { adoptChat, answeredChats, applyToAnswers, applyToChat, turnUnderWay, type Answers } from './chat';
import { Drafts } from './drafts.svelte';
import { Engine } from './engine.svelte';
import { Layout } from './layout.svelte';
import { Library } from './library.svelte';
import { sortList, withFolder, withoutChat, withoutFolder, withSummary } from './list';
import { Meter } from './meter.svelte';
import { hashOf, placeOf, type View } from './place';
import { Sections } from './sections.svelte';
import { SettingsState } from './settings.svelte';
import { Sources } from './sources.svelte';
import { Toasts } from './toasts.svelte';
import { Tools, type AnswerPhase } from './tools.svelte';

/** What the program says of itself once. */
export type Facts = Pick<Start, 'defaultSettings' | 'version' | 'commit' | 'dataFolder' | 'isMac'>;

/** A dialog over the page. */
export type DialogName = 'search' | 'settings';

/** A document to be shown, and in it the passage that is meant, with its text in case the document is gone. */
export type DocumentWanted = {
  path: string;
  passage: { label: string; text: string; start: number; end: number } | null;
};

/** Long enough to find the way to "Undo" by keyboard. */
const UNDO_MS = 15_000;

/** Everything a running page knows. Made when the program has answered `start`. */
export class AppState {
  readonly facts: Facts;
  readonly toasts: Toasts;
  readonly settings: SettingsState;
  readonly layout: Layout;
  readonly drafts: Drafts;
  readonly meter = new Meter();
  readonly engine = new Engine();
  readonly sections = new Sections();
  readonly attached: Attached;
  readonly sources = new Sources();
  readonly tools: Tools;
  readonly library = new Library();

  list: ChatList;
  model: ModelState;
  /** The chat on show; null is the one that begins with the next message. */
  chat: Chat | null;
  answers: Answers;
  /** Why the last message was not sent. */
  sendError = $state<string | null>(null);
  isSending = $state(false);
  dialog = $state<DialogName | null>(null);
  /** The document that is open over the page. */
  document = $state.raw<DocumentWanted | null>(null);
  /** The skill to be open when its screen is shown. */
  wantedSkill = $state<string | null>(null);
  /** Whether the title of the chat on show is being changed. */
  isRenaming = $state(false);
  /** The address that a person is asked about. */
  link = $state<string | null>(null);
  /** The answer whose prompt's reading is on show. */
  inspected = $state<number | null>(null);
  /** A turn to scroll to as soon as its chat is on show. */
  wantedTurn = $state.raw<number | null>(null);

  readonly phases: ReadonlyMap<number, AnswerPhase> = $derived.by(() => {
    const asking = new Set<number | null>(this.tools.questions.map(({ chat }) => chat));
    return new Map(
      [...this.answers].map(([turn, { chat, phase }]) => [turn, asking.has(chat) ? { at: 'asking' } : phase]),
    );
  });
  readonly answered: ReadonlySet<number> = $derived.by(() => answeredChats(this.answers));

  /** Events since a command began that answers with a chat: its answer may be older than they are. */
  #logs = new Set<AppEvent[]>();
  /** Counts the times that another chat was asked for; what comes late for an earlier one is not shown. */
  #place = 0;
  #reads = 0;
  #shownRead = 0;
  #isReopening = false;
  #isAsking = false;
  #deleted = new Set<number>();
  #newChatDraft: string;
  #view = $state<View>('chat');

  constructor(start: Start, toasts: Toasts) {
    this.facts = start;
    this.toasts = toasts;
    this.list = $state.raw(sortList(start.list));
    this.model = $state.raw(start.model);
    this.chat = $state.raw(null);
    this.answers = $state.raw(new Map(start.phases.map(({ chat, turn, phase }) => [turn, { chat, phase }])));
    this.settings = new SettingsState(start.settings, () => this.measure());
    this.attached = new Attached((message) => this.toasts.error(message));
    this.tools = new Tools(start.questions);
    this.drafts = new Drafts((error) => this.toasts.error(strings.errors.draft(api.messageOf(error))));
    this.#newChatDraft = start.newChatDraft;
    this.drafts.show(null, start.newChatDraft);
    const setting = { sidebar: 'sidebarOpen', panel: 'panelOpen' } as const;
    this.layout = new Layout(
      (column) => this.settings.value[setting[column]],
      (column, open) => void this.#saveQuietly({ [setting[column]]: open }),
    );
    for (const notice of start.notices) toasts.info(told(notice), { lifeMs: null });
  }

  /** Shows what was on show before the page was loaded anew. */
  async resume(): Promise<void> {
    void this.engine.ask();
    const { view, chat: id } = placeOf(location.hash);
    if (id !== null && this.list.chats.some((chat) => chat.id === id)) await this.openChat(id);
    else this.newChat();
    this.view = view;
  }

  /** Applies what happened, in order. */
  apply(events: AppEvent[]): void {
    for (const event of events) this.#applyOne(event);
  }

  // Which chat is on show, or which screen in its place

  get view(): View {
    return this.#view;
  }

  /** The chat stays as it is under a screen. */
  set view(view: View) {
    if (view !== 'chat') void this.drafts.flush();
    this.#view = view;
    this.#keepPlace();
  }

  /** Shows the chat that does not exist yet. */
  newChat(): void {
    void this.drafts.flush();
    this.#place += 1;
    void this.attached.show(null);
    this.view = 'chat';
    this.#show(null);
  }

  /** Shows something that an answer was made from. */
  showGiven = ({ label, text, source }: Given): void => {
    if (source.kind === 'passage') {
      const { path, start, end } = source;
      this.document = { path, passage: { label, text, start, end } };
    } else if (source.kind === 'earlier') this.wantedTurn = source.turn;
    else if (source.kind === 'skill') this.openSkill(source.name);
  };

  /** Shows a skill on its screen. */
  openSkill(name: string): void {
    this.wantedSkill = name;
    this.view = 'skills';
  }

  /** Shows a chat, and in it a turn, which may be on another branch than the one shown last. */
  async openChat(id: number, turn: number | null = null): Promise<void> {
    void this.drafts.flush();
    const place = ++this.#place;
    await this.attempt(async () => {
      let read = await this.#read(() => api.openChat(id));
      if (turn !== null && !read.chat.turns.some((one) => one.id === turn)) {
        read = await this.#read(() => api.selectBranch(turn));
      }
      if (place !== this.#place) return;
      void this.attached.show(id);
      this.view = 'chat';
      this.#show(read.chat, read.order);
      this.wantedTurn = turn;
    });
  }

  // The conversation

  /** Sends a message in the chat on show. A message that fails is back in the composer, with the reason. */
  async send(text: string): Promise<void> {
    if (this.isSending || text.trim() === '') return;
    const place = this.#place;
    const from = this.chat?.summary.id ?? null;
    const parent = this.chat?.turns.at(-1)?.id ?? null;
    this.isSending = true;
    this.sendError = null;
    this.drafts.take();
    const asked = this.attached.asked();
    this.attached.sent();
    try {
      const { chat, order } = await this.#read(() => api.send(from, parent, text, asked));
      void this.drafts.sent(from);
      if (from === null) this.#newChatDraft = '';
      if (place === this.#place) {
        if (from === null) this.attached.begun(chat.summary.id);
        this.#show(chat, order);
      }
    } catch (error) {
      if (place === this.#place) {
        this.sendError = api.messageOf(error);
        this.attached.giveBack(asked);
      } else this.toasts.error(api.messageOf(error));
      this.drafts.giveBack(from, text);
      this.measure();
    } finally {
      this.isSending = false;
    }
  }

  /** A turn of the person with another text: a branch. */
  editTurn = (turn: number, text: string): Promise<void> => this.#askAnew(() => api.editTurn(turn, text));
  /** Another answer to the same turn: a branch. */
  regenerate = (turn: number): Promise<void> => this.#askAnew(() => api.regenerate(turn));
  /** Goes on with an answer that was cut short. */
  continueTurn = (turn: number): Promise<void> => this.#askAnew(() => api.continueTurn(turn));
  /** Shows the branch that a turn is on. */
  selectBranch = (turn: number): Promise<void> => this.#change(() => api.selectBranch(turn));

  /** Stops an answer, or the one under way in the chat on show; whether there was one. */
  stop(turn: number | null = null): boolean {
    const id = turn ?? (this.chat === null ? null : (turnUnderWay(this.chat)?.id ?? null));
    if (id === null) return false;
    void this.attempt(() => api.stop(id));
    return true;
  }

  /** Takes what was typed. */
  typed(text: string): void {
    this.drafts.typed(text);
    this.measureSoon();
  }

  /** Asks anew what the next prompt takes of the window when nothing more has changed for a moment. */
  measureSoon(): void {
    this.meter.refreshSoon(this.chat?.summary.id ?? null, this.drafts.text, this.attached.asked());
  }

  /** Asks anew what the next prompt takes of the window. */
  measure(): void {
    void this.meter.refresh(this.chat?.summary.id ?? null, this.drafts.text, this.attached.asked());
  }

  // The list of chats

  /** Gives a chat a title; an empty one changes nothing. */
  async renameChat(chat: ChatSummary, title: string): Promise<void> {
    const trimmed = title.trim();
    if (trimmed === '' || trimmed === chat.title) return;
    await this.#changeSummary(() => api.renameChat(chat.id, trimmed));
  }

  /** Keeps a chat at the top, or no longer. */
  pinChat = (id: number, pinned: boolean): Promise<void> =>
    this.#changeSummary(() => api.pinChat(id, pinned));

  /** Puts a chat in a folder, or in none. */
  moveChat = (id: number, folder: number | null): Promise<void> =>
    this.#changeSummary(() => api.moveChat(id, folder));

  /** Makes a folder and puts a chat in it. */
  async moveToNewFolder(id: number, name: string): Promise<void> {
    await this.attempt(async () => {
      const folder = await api.addFolder(name);
      this.list = withFolder(this.list, folder);
      await this.moveChat(id, folder.id);
    });
  }

  /** Gives a folder another name. */
  async renameFolder(id: number, name: string): Promise<void> {
    if (name.trim() === '') return;
    await this.attempt(async () => {
      this.list = withFolder(this.list, await api.renameFolder(id, name.trim()));
    });
  }

  /** Takes a folder away; its chats stay. */
  async removeFolder(id: number): Promise<void> {
    await this.attempt(async () => {
      await api.removeFolder(id);
      this.list = withoutFolder(this.list, id);
    });
  }

  /** Takes a chat away at once, with a way back; whether it went. `onRestored` is called when it is back. */
  async deleteChat(chat: ChatSummary, onRestored: () => void): Promise<boolean> {
    const wasOpen = this.chat?.summary.id === chat.id;
    await this.drafts.flush();
    const went = await this.attempt(async () => {
      await api.deleteChat(chat.id);
      return true;
    });
    if (went !== true) return false;
    this.#deleted.add(chat.id);
    this.list = withoutChat(this.list, chat.id);
    if (wasOpen && this.chat?.summary.id === chat.id) this.newChat();
    this.toasts.info(strings.toasts.deleted(titleOf(chat)), {
      lifeMs: UNDO_MS,
      action: {
        label: strings.toasts.undo,
        run: () => void this.#restoreChat(chat.id, wasOpen).then((isBack) => isBack && onRestored()),
      },
    });
    return true;
  }

  /** Writes a chat to a file that the person chooses. */
  async exportChat(id: number, format: ExportFormat): Promise<void> {
    await this.attempt(async () => {
      const path = await api.exportChat(id, format);
      if (path !== null) this.toasts.info(strings.toasts.exported(path));
    });
  }

  /** Opens what was found. */
  openHit(hit: SearchHit): Promise<void> {
    return this.openChat(hit.chat, hit.turn);
  }

  // The rest

  /** Loads the model again, after a failure. */
  reloadModel = (): Promise<void | undefined> => this.attempt(() => api.reloadModel());

  /** Opens the address that the person was asked about. */
  async openLink(): Promise<void> {
    const url = this.link;
    this.link = null;
    if (url !== null) await this.attempt(() => api.openLink(url));
  }

  /** Does something and shows why it failed, if it did. The one way from a command's error to a toast. */
  async attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.toasts.error(api.messageOf(error));
      return undefined;
    }
  }

  #applyOne(event: AppEvent): void {
    if (event.kind === 'snapshot') {
      this.engine.take(event.snapshot);
      return;
    }
    for (const log of this.#logs) log.push(event);
    this.answers = applyToAnswers(this.answers, event);
    this.tools.take(event);
    this.library.take(event);
    if (this.chat !== null) {
      const { chat, gap } = applyToChat(this.chat, event);
      this.chat = chat;
      if (gap) void this.#reopen(chat.summary.id);
    }
    switch (event.kind) {
      case 'model':
        this.model = event.model;
        this.measure();
        break;
      case 'chat':
        if (!this.#deleted.has(event.summary.id)) this.list = withSummary(this.list, event.summary);
        break;
      case 'ended':
        this.sources.forget(event.turn.id);
        if (event.turn.chat === this.chat?.summary.id) this.measure();
        break;
      case 'documents':
        this.attached.indexed(event.indexing);
        break;
      case 'notice':
        this.toasts.info(told(event.message), { lifeMs: null });
        break;
      default:
        break;
    }
  }

  /** Puts a chat on show. `order` is when its reading began: an older reading never replaces a newer one. */
  #show(chat: Chat | null, order = ++this.#reads): void {
    const isOther = chat === null || chat.summary.id !== this.chat?.summary.id;
    if (order < this.#shownRead && !isOther) return;
    this.#shownRead = order;
    this.chat = chat;
    if (isOther) {
      this.sendError = null;
      this.wantedTurn = null;
      this.isRenaming = false;
      this.drafts.show(chat?.summary.id ?? null, chat === null ? this.#newChatDraft : chat.summary.draft);
      this.#keepPlace();
    }
    this.measure();
  }

  /** Keeps in the address what is on show, for when the page is loaded anew. */
  #keepPlace(): void {
    const place = { view: this.#view, chat: this.chat?.summary.id ?? null };
    history.replaceState(null, '', location.pathname + location.search + hashOf(place));
  }

  /** A chat as a command gives it, brought up to date with what happened meanwhile. */
  async #read(command: () => Promise<Chat>): Promise<{ chat: Chat; order: number }> {
    const log: AppEvent[] = [];
    const order = ++this.#reads;
    this.#logs.add(log);
    try {
      let chat = await command();
      this.answers = adoptChat(this.answers, chat);
      for (const event of log) {
        chat = applyToChat(chat, event).chat;
        this.answers = applyToAnswers(this.answers, event);
      }
      if (!this.#deleted.has(chat.summary.id)) this.list = withSummary(this.list, chat.summary);
      return { chat, order };
    } finally {
      this.#logs.delete(log);
    }
  }

  /** A command on the chat on show, whose answer takes its place. */
  async #change(command: () => Promise<Chat>): Promise<void> {
    await this.attempt(async () => {
      const { chat, order } = await this.#read(command);
      if (chat.summary.id === this.chat?.summary.id) this.#show(chat, order);
    });
  }

  /** A command that begins an answer. A second one before the first is through is the same wish: a double click. */
  async #askAnew(command: () => Promise<Chat>): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    await this.#change(command);
    this.#isAsking = false;
  }

  /** Reads the chat on show again, because some of its text is missing. */
  async #reopen(id: number): Promise<void> {
    if (this.#isReopening) return;
    this.#isReopening = true;
    await this.#change(() => api.openChat(id));
    this.#isReopening = false;
  }

  async #changeSummary(command: () => Promise<ChatSummary>): Promise<void> {
    await this.attempt(async () => {
      this.#applyOne({ kind: 'chat', summary: await command() });
    });
  }

  async #restoreChat(id: number, open: boolean): Promise<boolean> {
    const summary = await this.attempt(() => api.restoreChat(id));
    if (summary === undefined) return false;
    this.#deleted.delete(id);
    this.list = withSummary(this.list, summary);
    if (open && this.chat === null) await this.openChat(id);
    return true;
  }

  async #saveQuietly(change: Partial<Settings>): Promise<void> {
    if (await this.settings.save(change)) return;
    if (this.settings.error !== null) this.toasts.error(this.settings.error);
  }
}

/** A chat's title, or what stands for one until something was asked. */
export const titleOf = (chat: ChatSummary): string => chat.title ?? strings.chats.untitled;

/** The page's state, for every component below `App`. */
export const [getApp, setApp] = createContext<AppState>();
