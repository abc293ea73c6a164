// What of the window's three columns is on show. In a wide window sidebar and panel stand beside the conversation and
// their state is a setting; in a narrow one each is a sheet over it, open for the moment.
import { MediaQuery } from 'svelte/reactivity';

/** The columns beside the conversation. */
export type Column = 'sidebar' | 'panel';

/** Which columns are open, and how. */
export class Layout {
  /** The sheet that is open in a narrow window. */
  sheet = $state<Column | null>(null);
  #sidebarNarrow = new MediaQuery('(max-width: 768px)');
  #panelNarrow = new MediaQuery('(max-width: 900px)');
  #wanted: (column: Column) => boolean;
  #want: (column: Column, open: boolean) => void;

  /** `wanted` and `want` read and write what a wide window shows. */
  constructor(wanted: (column: Column) => boolean, want: (column: Column, open: boolean) => void) {
    this.#wanted = wanted;
    this.#want = want;
  }

  /** Whether the column is a sheet at the window's present width. */
  isSheet(column: Column): boolean {
    return column === 'sidebar' ? this.#sidebarNarrow.current : this.#panelNarrow.current;
  }

  /** Whether the column is on show. */
  isOpen(column: Column): boolean {
    return this.isSheet(column) ? this.sheet === column : this.#wanted(column);
  }

  /** Opens or closes a column. */
  toggle(column: Column): void {
    if (this.isSheet(column)) this.sheet = this.sheet === column ? null : column;
    else this.#want(column, !this.#wanted(column));
  }

  /** The sheet that covers the conversation now. */
  get covering(): Column | null {
    return this.sheet !== null && this.isSheet(this.sheet) ? this.sheet : null;
  }

  /** Closes the sheet, if one is open. */
  closeSheet(): void {
    this.sheet = null;
  }
}
