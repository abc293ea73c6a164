// The sidebar's list of chats: its order, its groups and what changes them. Pure; the clock is passed in.
import type { ChatList, ChatSummary, Folder } from '../bindings';
import { locale } from '../language';

/** The chats under one heading. Each chat is under one: pinned goes before folder, folder before day. */
export type Section = {
  kind: 'pinned' | 'folder' | 'today' | 'earlier';
  /** The folder, for that kind. */
  folder: Folder | null;
  chats: ChatSummary[];
};

/** A heading's chats as far as they are drawn, and how many more there are. */
export type ShownSection = Section & { key: string; isClosed: boolean; rest: number };

/** How much of each section is drawn. */
export type Shown = {
  closedFolders: ReadonlySet<number>;
  /** Rows of a section, by its key, where a person asked for more than `ROWS`. */
  rows: ReadonlyMap<string, number>;
};

/** Rows of a section that are drawn at once: thousands would make every opening of the sidebar slow. */
export const ROWS = 200;

const byName = new Intl.Collator(locale, { numeric: true, sensitivity: 'base' });

/** The list in its order: newest first. */
export const sortList = (list: ChatList): ChatList => ({ ...list, chats: [...list.chats].sort(newestFirst) });

/** The list with a chat added or changed, in its order. */
export function withSummary(list: ChatList, summary: ChatSummary): ChatList {
  const chats = list.chats.filter((chat) => chat.id !== summary.id);
  const at = chats.findIndex((chat) => newestFirst(summary, chat) < 0);
  chats.splice(at < 0 ? chats.length : at, 0, summary);
  return { ...list, chats };
}

/** The list without a chat. */
export const withoutChat = (list: ChatList, id: number): ChatList => ({
  ...list,
  chats: list.chats.filter((chat) => chat.id !== id),
});

/** The list with a folder added or renamed. */
export const withFolder = (list: ChatList, folder: Folder): ChatList => ({
  ...list,
  folders: [...list.folders.filter(({ id }) => id !== folder.id), folder],
});

/** The list without a folder; its chats stay. */
export const withoutFolder = (list: ChatList, id: number): ChatList => ({
  folders: list.folders.filter((folder) => folder.id !== id),
  chats: list.chats.map((chat) => (chat.folder === id ? { ...chat, folder: null } : chat)),
});

/** The folders by name. */
export const sortedFolders = (folders: Folder[]): Folder[] =>
  [...folders].sort((a, b) => byName.compare(a.name, b.name) || a.id - b.id);

/** The list by heading, from top to bottom; `todayMs` is when the day began, where the person is. */
export function sectionsOf(list: ChatList, todayMs: number): Section[] {
  const folders = sortedFolders(list.folders).map((folder): Section => ({
    kind: 'folder',
    folder,
    chats: [],
  }));
  const byFolder = new Map(folders.map((section) => [section.folder?.id, section]));
  const pinned: Section = { kind: 'pinned', folder: null, chats: [] };
  const today: Section = { kind: 'today', folder: null, chats: [] };
  const earlier: Section = { kind: 'earlier', folder: null, chats: [] };
  for (const chat of list.chats) {
    const byDay = chat.updatedMs >= todayMs ? today : earlier;
    const section = chat.pinned ? pinned : (byFolder.get(chat.folder ?? undefined) ?? byDay);
    section.chats.push(chat);
  }
  // An empty folder stays, so that it can be used; other headings need something under them.
  return [pinned, ...folders, today, earlier].filter(
    ({ kind, chats }) => kind === 'folder' || chats.length > 0,
  );
}

/** The sections as they are drawn: closed folders without chats, long ones cut. */
export function shownSections(sections: Section[], { closedFolders, rows }: Shown): ShownSection[] {
  return sections.map((section) => {
    const { kind, folder, chats } = section;
    const key = folder === null ? kind : `folder-${folder.id}`;
    const isClosed = folder !== null && closedFolders.has(folder.id);
    const shown = isClosed ? [] : chats.slice(0, rows.get(key) ?? ROWS);
    return { ...section, key, isClosed, chats: shown, rest: isClosed ? 0 : chats.length - shown.length };
  });
}

/** The chat that takes the place of one that goes: the one below it, or above it at the end. */
export function neighbourOf(shown: number[], id: number): number | null {
  const at = shown.indexOf(id);
  return at < 0 ? null : (shown[at + 1] ?? shown[at - 1] ?? null);
}

/** When the day of `now` began, where the person is. */
export const dayBegin = (now: Date): number =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();

/** How long until the next day begins. */
export const untilMidnightMs = (now: Date): number =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1).getTime() - now.getTime();

function newestFirst(a: ChatSummary, b: ChatSummary): number {
  return b.updatedMs - a.updatedMs || b.id - a.id;
}
