import { describe, expect, it } from 'vitest';
import { busy, large } from '../../test/snapshots';
import { looksOf } from './looks';
import {
  cellAt,
  cellsOf,
  cellsWith,
  gridOf,
  groupsOf,
  legendOf,
  MAP_WIDTH,
  MOST_CELLS,
  pagesPerCell,
  pathOf,
  runsOf,
} from './pool';

const pages = (count: number, owner: number | null = null): (number | null)[] =>
  Array.from({ length: count }, () => owner);

describe('cells', () => {
  it('are pages while there are few', () => {
    const cells = cellsOf([0, null, 1]);
    expect(cells).toEqual([
      { first: 0, holders: [[0, 1]] },
      { first: 1, holders: [[null, 1]] },
      { first: 2, holders: [[1, 1]] },
    ]);
    expect(pagesPerCell(MOST_CELLS)).toBe(1);
  });

  it('are runs of pages when there are many, and all pages are in one', () => {
    const map = pages(MOST_CELLS * 2 + 1);
    expect(pagesPerCell(map.length)).toBe(3);
    const cells = cellsOf(map);
    expect(cells.length).toBeLessThanOrEqual(MOST_CELLS);
    expect(cells.flatMap(({ holders }) => holders).reduce((sum, [, count]) => sum + count, 0)).toBe(
      map.length,
    );
  });

  it('belong to whoever has most of their pages, and somebody before nobody', () => {
    const map = pages(MOST_CELLS * 2);
    map.splice(0, 6, 1, 1, 0, null, 2, 1);
    expect(cellsOf(map).slice(0, 3)).toEqual([
      { first: 0, holders: [[1, 2]] },
      {
        first: 2,
        holders: [
          [0, 1],
          [null, 1],
        ],
      },
      {
        first: 4,
        holders: [
          [1, 1],
          [2, 1],
        ],
      },
    ]);
  });

  it('of an empty pool are none', () => {
    expect(cellsOf([])).toEqual([]);
    expect(groupsOf([], [], new Map())).toEqual([]);
  });
});

describe('the grid', () => {
  it('is never so fine that a cell cannot be seen, nor so coarse that few fill the panel', () => {
    for (const count of [1, 33, 264, MOST_CELLS]) {
      const { columns, rows, pitch } = gridOf(count);
      expect(columns * rows).toBeGreaterThanOrEqual(count);
      expect(columns * (rows - 1)).toBeLessThan(count);
      expect(pitch).toBeGreaterThan(7);
      expect(pitch).toBeLessThan(18);
    }
  });

  it('knows which cell a point is on', () => {
    const { columns, pitch } = gridOf(40);
    expect(cellAt(40, 1, 1)).toBe(0);
    expect(cellAt(40, MAP_WIDTH - 1, 1)).toBe(columns - 1);
    expect(cellAt(40, 1, pitch + 1)).toBe(columns);
    expect(cellAt(40, MAP_WIDTH - 1, pitch * 2 + 1)).toBeNull();
    expect(cellAt(40, -1, 1)).toBeNull();
    expect(cellAt(40, MAP_WIDTH + 1, 1)).toBeNull();
  });

  it('draws squares as one path', () => {
    expect(pathOf([0, 2], { columns: 2, rows: 2, pitch: 10 }, 1)).toBe('M1 1h8v8h-8zM1 11h8v8h-8z');
  });
});

describe('what is drawn', () => {
  it('is a path for each look, apart for what is in use, what is kept and what is free', () => {
    const { pool } = busy();
    const groups = groupsOf(cellsOf(pool.map), pool.owners, looksOf(new Map(), pool.owners));
    expect(groups.map(({ key }) => key)).toEqual([
      '1 active',
      '1 kept',
      '2 active',
      '3 active',
      '4 active',
      '5 kept',
      'free',
    ]);
    const squares = groups.map(({ path }) => path.split('M').length - 1);
    expect(squares).toEqual([12, 8, 5, 3, 2, 6, 30]);
  });

  it('is the same text while the map is the same', () => {
    const draw = () => {
      const { pool } = busy();
      return groupsOf(cellsOf(pool.map), pool.owners, looksOf(new Map(), pool.owners));
    };
    expect(draw()).toEqual(draw());
  });

  it('stays small in a large pool', () => {
    const { pool } = large();
    const groups = groupsOf(cellsOf(pool.map), pool.owners, looksOf(new Map(), pool.owners));
    expect(groups.length).toBeLessThan(10);
    expect(groups.reduce((sum, { path }) => sum + path.length, 0)).toBeLessThan(20_000);
  });
});

describe('the legend', () => {
  it('lists what is active first, then what was left last, with keys that last', () => {
    const { pool } = busy();
    const rows = legendOf([...pool.owners].reverse(), looksOf(new Map(), pool.owners));
    expect(rows.map(({ owner, index }) => [owner.name.slice(0, 6), owner.is_active, index])).toEqual([
      ['notes.', true, 2],
      ['Soup', true, 3],
      ['Letter', true, 4],
      ['Garden', true, 5],
      ['Holida', false, 0],
      ['Garden', false, 1],
    ]);
    expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
    expect(rows.map(({ key }) => key)).toContain('kept Garden 1');
  });

  it('finds an owner’s cells and runs', () => {
    const { pool } = busy();
    expect(cellsWith(cellsOf(pool.map), 2)).toEqual([20, 21, 22]);
    expect(runsOf([0, 0, null, 0, 1], 0)).toEqual([
      [0, 1],
      [3, 3],
    ]);
    expect(runsOf([0], 5)).toEqual([]);
  });
});
