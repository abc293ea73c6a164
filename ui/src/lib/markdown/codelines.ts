// The lines of a code block as HTML, in chunks, so that a long block that grows touches only its last chunk.
import { openHighlight, type HighlightSession, type OnLines } from './highlight';
import { LruCache } from './cache';
import { escapeHtml, lineHtml, type Run } from './tokens';

/** Lines in a chunk. Every chunk but the last has exactly this many. */
export const CHUNK_LINES = 20;
/** Longer code stays plain: colouring it would take longer than anyone waits, and its spans would weigh the page down. */
const MAX_HIGHLIGHTED_LINES = 6_000;

type Open = (info: string, onLines: OnLines) => HighlightSession | null;

/** Coloured lines of finished blocks, for when they scroll into view again. */
const remembered = new LruCache<string, string[]>(4_000_000);

/**
 * The code of one block. `onChange` is called when colours arrive. Invariants: the chunks' text is always the code's
 * text, each line ended by a line break; a line is asked to be coloured once, when it is complete.
 */
export class CodeLines {
  readonly #onChange: () => void;
  readonly #open: Open;
  #info = '';
  #code = '';
  /** Null before the first code. */
  #growing: boolean | null = null;
  #lines: string[] = [];
  /** HTML of coloured lines, by line. */
  #coloured: string[] = [];
  #chunks: string[] = [];
  #session: HighlightSession | null = null;
  /** Lines that the worker was asked for. */
  #asked = 0;

  constructor(onChange: () => void, open: Open = openHighlight) {
    this.#onChange = onChange;
    this.#open = open;
  }

  /** The chunks' HTML, after the last `update` and all colours that came since. */
  get chunks(): readonly string[] {
    return this.#chunks;
  }

  /** Whether any line is coloured already, from when the same code was shown before. */
  get hasColours(): boolean {
    return this.#coloured.length > 0;
  }

  /** Takes the code as it is now. `growing`: its last line may not be complete. */
  update(info: string, code: string, growing: boolean): void {
    if (info === this.#info && code === this.#code && growing === this.#growing) return;
    if (info !== this.#info || !code.startsWith(this.#code)) this.#reset();
    this.#growing = growing;
    const firstChanged = Math.max(0, this.#lines.length - 1);
    const isNew = this.#lines.length === 0;
    this.#info = info;
    this.#code = code;
    this.#lines = code.split('\n');
    if (isNew && !growing) this.#recall();
    this.#ask(growing ? this.#lines.length - 1 : this.#lines.length);
    this.#rebuild(isNew ? 0 : firstChanged, this.#lines.length);
  }

  /** Drops what waits at the worker. */
  close(): void {
    this.#session?.close();
    this.#session = null;
  }

  #reset(): void {
    this.close();
    this.#lines = [];
    this.#coloured = [];
    this.#chunks = [];
    this.#asked = 0;
  }

  #recall(): void {
    const known = remembered.get(`${this.#info}\n${this.#code}`);
    if (known === undefined) return;
    this.#coloured = known.slice();
    this.#asked = this.#lines.length;
  }

  #ask(complete: number): void {
    const until = Math.min(complete, MAX_HIGHLIGHTED_LINES);
    if (until <= this.#asked) return;
    this.#session ??= this.#open(this.#info, (from, lines) => this.#colour(from, lines));
    this.#session?.append(this.#lines.slice(this.#asked, until));
    this.#asked = until;
  }

  #colour(from: number, lines: Run[][]): void {
    if (lines.length === 0) return;
    lines.forEach((runs, index) => {
      this.#coloured[from + index] = lineHtml(runs);
    });
    this.#rebuild(from, from + lines.length);
    if (this.#coloured.length === this.#lines.length) {
      remembered.set(`${this.#info}\n${this.#code}`, this.#coloured.slice(), this.#code.length * 4);
    }
    this.#onChange();
  }

  #rebuild(fromLine: number, toLine: number): void {
    const last = Math.ceil(toLine / CHUNK_LINES);
    for (let chunk = Math.floor(fromLine / CHUNK_LINES); chunk < last; chunk++) {
      let html = '';
      const end = Math.min((chunk + 1) * CHUNK_LINES, this.#lines.length);
      for (let line = chunk * CHUNK_LINES; line < end; line++) {
        html += (this.#coloured[line] ?? escapeHtml(this.#lines[line]!)) + '\n';
      }
      this.#chunks[chunk] = html;
    }
    this.#chunks.length = Math.ceil(this.#lines.length / CHUNK_LINES);
  }
}
