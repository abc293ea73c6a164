// The sidebar's list of chats: its order, its groups and what changes them. Pure; the clock is passed in.
import type { ChatList, ChatSummary, Folder } from '../bindings';
import { locale } from '../format';

/** A folder with its chats. */
export type FolderGroup = { folder: Folder; chats: ChatSummary[] };

/** The chats as the sidebar shows them. Each chat is in one group: pinned goes before folder, folder before day. */
export type ChatGroups = {
  pinned: ChatSummary[];
  folders: FolderGroup[];
  today: ChatSummary[];
  earlier: ChatSummary[];
};

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

/** The list in groups; `todayMs` is when the day began, where the person is. */
export function groupChats(list: ChatList, todayMs: number): ChatGroups {
  const folders = sortedFolders(list.folders).map((folder): FolderGroup => ({ folder, chats: [] }));
  const chatsOf = new Map(folders.map(({ folder, chats }) => [folder.id, chats]));
  const groups: ChatGroups = { pinned: [], folders, today: [], earlier: [] };
  for (const chat of list.chats) {
    const inFolder = chat.folder === null ? undefined : chatsOf.get(chat.folder);
    if (chat.pinned) groups.pinned.push(chat);
    else if (inFolder !== undefined) inFolder.push(chat);
    else if (chat.updatedMs >= todayMs) groups.today.push(chat);
    else groups.earlier.push(chat);
  }
  return groups;
}

/** The chats from top to bottom as shown; those in closed folders are not. */
export function shownChats(groups: ChatGroups, closedFolders: ReadonlySet<number>): number[] {
  const open = groups.folders.filter(({ folder }) => !closedFolders.has(folder.id));
  return [groups.pinned, ...open.map(({ chats }) => chats), groups.today, groups.earlier]
    .flat()
    .map((chat) => chat.id);
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
