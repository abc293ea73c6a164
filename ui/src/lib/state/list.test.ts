import { describe, expect, it } from 'vitest';
import { summary } from '../../test/values';
import type { ChatList } from '../bindings';
import {
  dayBegin,
  neighbourOf,
  ROWS,
  sectionsOf,
  shownSections,
  sortList,
  untilMidnightMs,
  withFolder,
  withoutFolder,
  withSummary,
} from './list';

const ids = (list: ChatList) => list.chats.map(({ id }) => id);
const listOf = (...chats: ReturnType<typeof summary>[]): ChatList => ({ chats, folders: [] });

describe('the order of the list', () => {
  it('is newest first, and the newer chat first when both changed at once', () => {
    const list = listOf(
      summary({ id: 1, updatedMs: 5 }),
      summary({ id: 2, updatedMs: 9 }),
      summary({ id: 3, updatedMs: 5 }),
    );
    expect(ids(sortList(list))).toEqual([2, 3, 1]);
  });

  it('puts a changed chat where it belongs, once', () => {
    const list = listOf(
      summary({ id: 3, updatedMs: 9 }),
      summary({ id: 2, updatedMs: 5 }),
      summary({ id: 1, updatedMs: 1 }),
    );
    expect(ids(withSummary(list, summary({ id: 1, updatedMs: 7 })))).toEqual([3, 1, 2]);
    expect(ids(withSummary(list, summary({ id: 4, updatedMs: 0 })))).toEqual([3, 2, 1, 4]);
    expect(ids(withSummary(list, summary({ id: 4, updatedMs: 99 })))).toEqual([4, 3, 2, 1]);
  });
});

describe('sections', () => {
  const noon = new Date(2026, 4, 20, 12, 0);
  const midnight = dayBegin(noon);
  const sections = (list: ChatList) =>
    sectionsOf(list, midnight).map(({ kind, folder, chats }) => [
      folder?.name ?? kind,
      ...chats.map(({ id }) => id),
    ]);

  it('part today from earlier at midnight', () => {
    const list = listOf(
      summary({ id: 1, updatedMs: noon.getTime() }),
      summary({ id: 2, updatedMs: midnight }),
      summary({ id: 3, updatedMs: midnight - 1 }),
    );
    expect(sections(list)).toEqual([
      ['today', 1, 2],
      ['earlier', 3],
    ]);
  });

  it('show a pinned chat once, at the top, whatever its folder', () => {
    const list: ChatList = {
      chats: [summary({ id: 1, pinned: true, folder: 5 }), summary({ id: 2, folder: 5 })],
      folders: [{ id: 5, name: 'Work' }],
    };
    expect(sections(list)).toEqual([
      ['pinned', 1],
      ['Work', 2],
    ]);
  });

  it('keep empty folders, by name', () => {
    const folders = [
      { id: 1, name: 'Part 10' },
      { id: 2, name: 'apples' },
      { id: 3, name: 'Part 9' },
    ];
    expect(sections({ chats: [], folders })).toEqual([['apples'], ['Part 9'], ['Part 10']]);
  });

  it('put a chat whose folder is gone under its day', () => {
    expect(sections(listOf(summary({ id: 1, folder: 99, updatedMs: midnight })))).toEqual([['today', 1]]);
  });

  it('are empty without chats and folders', () => {
    expect(sections(listOf())).toEqual([]);
  });

  it('know how long the day still is', () => {
    expect(untilMidnightMs(new Date(2026, 4, 20, 23, 59, 59))).toBe(1000);
    expect(dayBegin(new Date(2026, 4, 20, 0, 0))).toBe(midnight);
  });
});

describe('what is drawn', () => {
  const many = Array.from({ length: ROWS + 30 }, (_, id) => summary({ id, folder: 1 }));
  const sections = sectionsOf({ chats: many, folders: [{ id: 1, name: 'All' }] }, 0);

  it('is cut where a section is long, and says how many are left', () => {
    const [cut] = shownSections(sections, { closedFolders: new Set(), rows: new Map() });
    expect([cut?.chats.length, cut?.rest]).toEqual([ROWS, 30]);
    const [whole] = shownSections(sections, {
      closedFolders: new Set(),
      rows: new Map([['folder-1', ROWS * 2]]),
    });
    expect([whole?.chats.length, whole?.rest]).toEqual([ROWS + 30, 0]);
  });

  it('is nothing of a closed folder', () => {
    const [closed] = shownSections(sections, { closedFolders: new Set([1]), rows: new Map() });
    expect([closed?.chats.length, closed?.rest, closed?.isClosed]).toEqual([0, 0, true]);
  });
});

describe('folders', () => {
  it('are renamed in place of being added twice', () => {
    const list = withFolder(withFolder(listOf(), { id: 1, name: 'A' }), { id: 1, name: 'B' });
    expect(list.folders).toEqual([{ id: 1, name: 'B' }]);
  });

  it('go without their chats', () => {
    const list: ChatList = { chats: [summary({ folder: 1 })], folders: [{ id: 1, name: 'A' }] };
    expect(withoutFolder(list, 1)).toEqual({ chats: [summary({ folder: null })], folders: [] });
  });
});

describe('the neighbour of a chat that goes', () => {
  it('is the one below, above at the end, and none when it was alone', () => {
    expect(neighbourOf([1, 2, 3], 2)).toBe(3);
    expect(neighbourOf([1, 2, 3], 3)).toBe(2);
    expect(neighbourOf([1], 1)).toBeNull();
    expect(neighbourOf([1], 9)).toBeNull();
  });
});
