// The KV pool as the panel draws it: pages gathered into cells, cells into one path for each look, owners into a legend.
// Nothing is counted here but the pages of the picture's own map.
import type { OwnerView, PoolView } from '../bindings';
import type { Look, Looks } from './looks';

/** More cells than this would be too small to tell apart: each then stands for a run of pages. */
export const MOST_CELLS = 512;
const FEWEST_COLUMNS = 16;
/** Units of the drawing across; one is about a pixel. */
export const MAP_WIDTH = 280;

/** A run of pages; in a small pool a single one. */
export type Cell = {
  /** Its first page, from 0. */
  first: number;
  /** Pages of each holder, the most first; null are those nobody holds. */
  holders: [owner: number | null, pages: number][];
};

/** How many pages a cell stands for. */
export const pagesPerCell = (pages: number): number => Math.max(1, Math.ceil(pages / MOST_CELLS));

/** The map's cells. */
export function cellsOf(map: PoolView['map']): Cell[] {
  const run = pagesPerCell(map.length);
  const cells: Cell[] = [];
  for (let first = 0; first < map.length; first += run) {
    const counts = new Map<number | null, number>();
    for (const owner of map.slice(first, first + run)) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    cells.push({ first, holders: [...counts].sort((a, b) => b[1] - a[1] || rank(a[0]) - rank(b[0])) });
  }
  return cells;
}

/** Of holders with as many pages the one the engine names first, and somebody before nobody. */
const rank = (owner: number | null): number => owner ?? Infinity;

/** Where cells lie: about two and a half times as wide as high, and wide enough for cells not to be huge. */
export type Grid = { columns: number; rows: number; pitch: number };

/** The grid for so many cells. */
export function gridOf(cells: number): Grid {
  const columns = Math.max(FEWEST_COLUMNS, Math.ceil(Math.sqrt(cells * 2.5)));
  return { columns, rows: Math.max(1, Math.ceil(cells / columns)), pitch: MAP_WIDTH / columns };
}

/** The cell at a point of the drawing. */
export function cellAt(cells: number, x: number, y: number): number | null {
  const { columns, pitch } = gridOf(cells);
  const [column, row] = [Math.floor(x / pitch), Math.floor(y / pitch)];
  const index = row * columns + column;
  return column >= 0 && column < columns && row >= 0 && index < cells ? index : null;
}

/** Squares of the grid as one path. */
export function pathOf(indices: number[], { columns, pitch }: Grid, inset: number): string {
  const side = round(pitch - 2 * inset);
  return indices
    .map((index) => {
      const x = round((index % columns) * pitch + inset);
      const y = round(Math.floor(index / columns) * pitch + inset);
      return `M${x} ${y}h${side}v${side}h-${side}z`;
    })
    .join('');
}

const round = (value: number): number => Math.round(value * 100) / 100;

/** How pages are held: by an active request, by what an ended one left, by nobody. */
export type Kind = 'active' | 'kept' | 'free';

/** Cells that are drawn alike. Free ones have no owner's look. */
export type Group = { key: string; kind: Kind; look: Look; path: string };

/** What is drawn: the same strings as long as the map is the same, so that the page has nothing to redraw. */
export function groupsOf(cells: Cell[], owners: OwnerView[], looks: Looks): Group[] {
  const grid = gridOf(cells.length);
  const gap = grid.pitch > 10 ? 1 : 0.5;
  // Half of the frame around what is kept lies outside its square.
  const insets = { active: gap, kept: gap + 0.5, free: grid.pitch / 3 };
  const groups = new Map<string, Omit<Group, 'path'> & { indices: number[] }>();
  cells.forEach(({ holders }, index) => {
    const owner = ownerAt(owners, holders[0]?.[0]);
    const kind = owner === null ? 'free' : owner.is_active ? 'active' : 'kept';
    const look = looks.get(owner?.name ?? '') ?? 'rest';
    const key = kind === 'free' ? kind : `${look} ${kind}`;
    const group = groups.get(key) ?? { key, kind, look, indices: [] };
    group.indices.push(index);
    groups.set(key, group);
  });
  return [...groups.values()]
    .map(({ indices, ...group }) => ({ ...group, path: pathOf(indices, grid, insets[group.kind]) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

const ownerAt = (owners: OwnerView[], index: number | null | undefined): OwnerView | null =>
  owners[index ?? -1] ?? null;

/** A line of the legend. */
export type LegendRow = {
  /** The same for the same owner in the next picture. */
  key: string;
  /** Its index in the picture. */
  index: number;
  owner: OwnerView;
  look: Look;
};

/** The legend: active owners first, then what was left last. */
export function legendOf(owners: OwnerView[], looks: Looks): LegendRow[] {
  const seen = new Map<string, number>();
  const rows = owners.map((owner, index) => {
    const kind = `${owner.is_active ? 'active' : 'kept'} ${owner.name}`;
    const count = (seen.get(kind) ?? 0) + 1;
    seen.set(kind, count);
    return { key: `${kind} ${count}`, index, owner, look: looks.get(owner.name) ?? 'rest' };
  });
  return rows.sort((a, b) => Number(b.owner.is_active) - Number(a.owner.is_active));
}

/** The cells in which this owner has a page that the map shows as its. */
export const cellsWith = (cells: Cell[], owner: number): number[] =>
  cells.flatMap(({ holders }, index) => (holders.some(([holder]) => holder === owner) ? [index] : []));

/** Neighbouring pages that the map shows as this owner's: first and last, from 0. */
export function runsOf(map: PoolView['map'], owner: number): [first: number, last: number][] {
  const runs: [number, number][] = [];
  map.forEach((holder, page) => {
    if (holder !== owner) return;
    const run = runs.at(-1);
    if (run !== undefined && run[1] === page - 1) run[1] = page;
    else runs.push([page, page]);
  });
  return runs;
}
