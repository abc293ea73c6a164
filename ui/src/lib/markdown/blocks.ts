// Splits a growing markdown text into its top-level blocks. Called with every piece that streams in.
//
// Blocks that later text cannot change are frozen: they keep their key and their object, so nothing is parsed or drawn
// again. Only the tail after them is read anew. Markdown decides a block's extent line by line, and every rule in use
// looks ahead at most to the end of the block it is in; so all blocks but the last of the text's *complete* lines are
// final. Invariant: the blocks' HTML put together equals the HTML of the whole text, however it was cut into pieces.
import type { Token } from 'markdown-it';
import { LruCache } from './cache';
import type { References, RenderEnv } from './env';
import { heal, withoutMarkerLine } from './heal';
import { markdown, renderMarkdown } from './render';

type Common = {
  /** Where the block begins in the text; the same for as long as the block exists. */
  readonly key: number;
  /** The block's markdown. */
  readonly source: string;
  /** Link targets that the whole text defines. */
  readonly references: References;
};

/** Code at the top level, without its fences. */
export type CodeBlock = Common & { readonly kind: 'code'; readonly info: string; readonly code: string };
/** Anything else. `open`: it is being written, so it may end in half a marker. */
export type ProseBlock = Common & { readonly kind: 'prose'; readonly open: boolean };
export type Block = CodeBlock | ProseBlock;

const NO_REFERENCES: References = Object.freeze({}) as References;

/** A text that grows. */
export class MarkdownStream {
  #text = '';
  #streaming = true;
  #frozen: Block[] = [];
  #blocks: readonly Block[] = [];
  /** Where the tail begins in the text. */
  #tailStart = 0;
  /** How much of the text was looked at for blocks to freeze. */
  #frozenUpTo = 0;
  /** Link targets defined before the tail, and those of the whole text. */
  #frozenReferences: References = NO_REFERENCES;
  #references: References = NO_REFERENCES;

  /** The blocks of `text`. Cheap when it begins with the text of the call before; otherwise all is read anew. */
  update(text: string, streaming: boolean): readonly Block[] {
    if (text === this.#text && streaming === this.#streaming) return this.#blocks;
    if (!text.startsWith(this.#text)) this.#reset();
    this.#text = text;
    this.#streaming = streaming;
    this.#freeze();

    const raw = text.slice(this.#tailStart);
    const tail = streaming ? withoutMarkerLine(raw) : raw;
    const parsed = parse(tail, this.#frozenReferences, streaming);
    this.#setReferences(parsed.references);
    const last = parsed.groups.length - 1;
    const open = parsed.groups.map((group, index) =>
      this.#block(tail, this.#tailStart, group, streaming && index === last),
    );
    this.#blocks = [...this.#frozen, ...this.#reuse(open)];
    return this.#blocks;
  }

  #reset(): void {
    this.#text = '';
    this.#frozen = [];
    this.#blocks = [];
    this.#tailStart = 0;
    this.#frozenUpTo = 0;
    this.#frozenReferences = NO_REFERENCES;
    this.#references = NO_REFERENCES;
  }

  #freeze(): void {
    // A carriage return at the very end may be the first half of a line break.
    const end =
      Math.max(this.#text.lastIndexOf('\n'), this.#text.lastIndexOf('\r', this.#text.length - 2)) + 1;
    if (end <= this.#frozenUpTo) return;
    this.#frozenUpTo = end;

    const tail = this.#text.slice(this.#tailStart, end);
    const { groups, lineStarts } = parse(tail, this.#frozenReferences, true);
    const last = groups.at(-1);
    if (last === undefined || groups.length === 1) return;
    // Definitions just before the last block may still take its first line as their title: they stay in the tail.
    const previous = groups.at(-2)!;
    const gap = tail.slice(lineStarts[previous.endLine], lineStarts[last.startLine]);
    const cut = gap.trim() === '' ? lineStarts[last.startLine]! : lineStarts[previous.endLine]!;

    const done = tail.slice(0, cut);
    if (done.includes(']:')) {
      this.#frozenReferences = parse(done, this.#frozenReferences, true).references;
      this.#setReferences(this.#frozenReferences);
    }
    const blocks = groups.slice(0, -1).map((group) => this.#block(tail, this.#tailStart, group, false));
    this.#frozen.push(...this.#reuse(blocks));
    this.#tailStart += cut;
  }

  #block(tail: string, offset: number, group: Group, open: boolean): Block {
    const common = {
      key: offset + group.start,
      source: tail.slice(group.start, group.end),
      references: this.#references,
    };
    const { token } = group;
    if (token.type !== 'fence' && token.type !== 'code_block') return { ...common, kind: 'prose', open };
    const code = token.content.replace(/\n$/, '');
    return {
      ...common,
      kind: 'code',
      info: token.info,
      code: open ? withoutFenceStart(code, token.markup) : code,
    };
  }

  /** Takes the objects of the blocks before where nothing changed, so that they are not drawn again. */
  #reuse(blocks: Block[]): Block[] {
    const before = new Map(this.#blocks.slice(this.#frozen.length).map((block) => [block.key, block]));
    return blocks.map((block) => {
      const old = before.get(block.key);
      return old !== undefined && isSame(old, block) ? old : block;
    });
  }

  /** Blocks that may name a link target are drawn again when a later line defines one. */
  #setReferences(references: References): void {
    if (sameReferences(this.#references, references)) return;
    this.#references = references;
    this.#frozen = this.#frozen.map((block) =>
      block.source.includes('[') ? { ...block, references } : block,
    );
  }
}

const finished = new LruCache<string, readonly Block[]>(8_000_000);

/** The blocks of a finished text; a text seen lately is not read again. */
export function finishedBlocks(text: string): readonly Block[] {
  const known = finished.get(text);
  if (known !== undefined) return known;
  const blocks = new MarkdownStream().update(text, false);
  rememberFinished(text, blocks);
  return blocks;
}

/** Keeps the blocks that a stream ended with for the next time the text is shown. */
export function rememberFinished(text: string, blocks: readonly Block[]): void {
  // The HTML that is going to hang on the blocks is about three times the text.
  finished.set(text, blocks, text.length * 5 + 200);
}

const html = new WeakMap<Block, string>();

/** A block's HTML, made once for each block object. */
export function blockHtml(block: Block): string {
  let known = html.get(block);
  if (known === undefined) {
    const source = block.kind === 'prose' && block.open ? heal(block.source) : block.source;
    known = renderMarkdown(source, block.references, block.kind === 'prose' && block.open);
    html.set(block, known);
  }
  return known;
}

/** A top-level block of a parse: the token that opens it, its lines and its place in the text. */
type Group = { token: Token; startLine: number; endLine: number; start: number; end: number };

function parse(
  text: string,
  references: References,
  streaming: boolean,
): { groups: Group[]; lineStarts: number[]; references: References } {
  const env: RenderEnv = { references: { ...references }, streaming };
  const tokens: Token[] = [];
  const normalised = text.replace(/\r\n?|\n/g, '\n').replace(/\0/g, '\ufffd');
  markdown.block.parse(normalised, markdown, env, tokens);
  const lineStarts = startsOfLines(text);
  const groups: Group[] = [];
  for (const token of tokens) {
    if (token.level !== 0 || token.nesting === -1 || token.map === null) continue;
    const [startLine, endLine] = token.map;
    const start = lineStarts[startLine]!;
    groups.push({ token, startLine, endLine, start, end: lineStarts[endLine] ?? text.length });
  }
  return { groups, lineStarts, references: env.references };
}

/** Offsets of all lines; the one past the last line is the text's length. */
function startsOfLines(text: string): number[] {
  const starts = [0];
  for (const match of text.matchAll(/\r\n?|\n/g)) starts.push(match.index + match[0].length);
  starts.push(text.length);
  return starts;
}

/** Code that is being written, without a last line that may become its closing fence. */
function withoutFenceStart(code: string, markup: string): string {
  const lineStart = code.lastIndexOf('\n') + 1;
  const line = code.slice(lineStart).trim();
  const isFenceStart =
    markup !== '' && line !== '' && line.split('').every((character) => character === markup[0]);
  return isFenceStart ? code.slice(0, Math.max(0, lineStart - 1)) : code;
}

function isSame(a: Block, b: Block): boolean {
  if (a.source !== b.source || a.kind !== b.kind || a.references !== b.references) return false;
  if (a.kind === 'prose') return b.kind === 'prose' && a.open === b.open;
  return b.kind === 'code' && a.code === b.code && a.info === b.info;
}

function sameReferences(a: References, b: References): boolean {
  const labels = Object.keys(b);
  return (
    Object.keys(a).length === labels.length &&
    labels.every((label) => a[label]?.href === b[label]!.href && a[label]?.title === b[label]!.title)
  );
}
