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
import { firstHeading, markdown, renderMarkdown, type Context } from './render';

type Common = {
  /** Where the block begins in the text; the same for as long as the block exists. */
  readonly key: number;
  /** The block's markdown. */
  readonly source: string;
  /** What the whole text says that this block may depend on. */
  readonly context: Context;
};

/** Code at the top level, without its fences. */
export type CodeBlock = Common & { readonly kind: 'code'; readonly info: string; readonly code: string };
/** Anything else. `open`: it is being written, so it may end in half a marker. */
export type ProseBlock = Common & { readonly kind: 'prose'; readonly open: boolean };
export type Block = CodeBlock | ProseBlock;

const NO_CONTEXT: Context = { references: {}, headingBase: undefined };

/** A text that grows. */
export class MarkdownStream {
  #text = '';
  #streaming = true;
  #frozen: Block[] = [];
  #blocks: readonly Block[] = [];
  /** Where the tail begins in the text. */
  #tailStart = 0;
  /** How much of the text was looked at for blocks that are final. */
  #readUpTo = 0;
  /** What the text before the tail says, and what the whole text does. */
  #frozenContext: Context = NO_CONTEXT;
  #context: Context = NO_CONTEXT;
  readonly #empty: Context;

  /** `citations`: links to `passage:N` are marks. */
  constructor(citations = false) {
    this.#empty = citations ? { ...NO_CONTEXT, citations } : NO_CONTEXT;
    this.#reset();
  }

  /** The blocks of `text`. Cheap when it begins with the text of the call before; otherwise all is read anew. */
  update(text: string, streaming: boolean): readonly Block[] {
    if (text === this.#text && streaming === this.#streaming) return this.#blocks;
    if (!text.startsWith(this.#text)) this.#reset();
    else if (this.#growFence(text, streaming)) return this.#blocks;
    this.#text = text;
    this.#streaming = streaming;

    const tailBefore = new Map(this.#blocks.slice(this.#frozen.length).map((block) => [block.key, block]));
    const final = this.#advance();
    const tail = text.slice(this.#tailStart);
    let parsed = parse(tail, this.#tailStart, this.#frozenContext, streaming);
    // In code such a line is code, or the beginning of the closing fence.
    if (streaming && parsed.groups.at(-1)?.token.type !== 'fence') {
      const shown = withoutMarkerLine(tail);
      if (shown !== tail) parsed = parse(shown, this.#tailStart, this.#frozenContext, streaming);
    }
    this.#setContext(parsed.context);

    const last = parsed.groups.length - 1;
    const open = parsed.groups.map((group, index) => this.#block(group, streaming && index === last));
    this.#frozen.push(
      ...reuse(
        tailBefore,
        final.map((group) => this.#block(group, false)),
      ),
    );
    this.#blocks = [...this.#frozen, ...reuse(tailBefore, open)];
    return this.#blocks;
  }

  #reset(): void {
    this.#text = '';
    this.#frozen = [];
    this.#blocks = [];
    this.#tailStart = 0;
    this.#readUpTo = 0;
    this.#frozenContext = this.#empty;
    this.#context = this.#empty;
  }

  /**
   * The short way for code, which may be long: while a fence at the line's beginning is open and no line closes it, all
   * that comes is code. Whether it was.
   */
  #growFence(text: string, streaming: boolean): boolean {
    const last = this.#blocks.at(-1);
    if (!streaming || !this.#streaming || last?.kind !== 'code') return false;
    if (last.key + last.source.length !== this.#text.length) return false;
    const fence = /^(`{3,}|~{3,})[^\r\n]*\n/.exec(last.source);
    if (fence === null || text.includes('\r', last.key) || text.includes('\0', last.key)) return false;
    const markup = fence[1]!;
    const code = text.slice(last.key + fence[0].length);
    // Lines before the last one were looked at in the call before.
    const from = Math.max(0, last.source.lastIndexOf('\n') + 1 - fence[0].length);
    // The last of the lines before, too: a fence that was closed already does not grow.
    const lineBefore = code.lastIndexOf('\n', from - 2) + 1;
    const lines = code.slice(lineBefore).split('\n');
    if (lines.some((line) => closesFence(line, markup)) || /^[ \t]+$/.test(lines.at(-1)!)) return false;

    const grown = withoutFenceStart(code.replace(/\n$/, ''), markup);
    this.#text = text;
    this.#blocks = this.#blocks.with(-1, { ...last, source: text.slice(last.key), code: grown });
    return true;
  }

  /** Moves the tail's beginning behind the blocks that are final now, and returns them. */
  #advance(): Group[] {
    const end = Math.max(this.#text.lastIndexOf('\n'), this.#text.lastIndexOf('\r')) + 1;
    if (end <= this.#readUpTo) return [];
    this.#readUpTo = end;

    const tail = this.#text.slice(this.#tailStart, end);
    const { groups } = parse(tail, this.#tailStart, this.#frozenContext, true);
    const last = groups.at(-1);
    const previous = groups.at(-2);
    if (last === undefined || previous === undefined) return [];
    // Definitions just before the last block may still take its first line as their title: they stay in the tail.
    const isGapBlank = this.#text.slice(previous.end, last.start).trim() === '';
    const cut = isGapBlank ? last.start : previous.end;
    const done = this.#text.slice(this.#tailStart, cut);
    this.#frozenContext = parse(done, this.#tailStart, this.#frozenContext, true).context;
    this.#tailStart = cut;
    return groups.slice(0, -1);
  }

  #block({ token, start, end }: Group, open: boolean): Block {
    const common = { key: start, source: this.#text.slice(start, end), context: this.#context };
    if (token.type !== 'fence' && token.type !== 'code_block') return { ...common, kind: 'prose', open };
    const code = token.content.replace(/\n$/, '');
    return {
      ...common,
      kind: 'code',
      info: token.info,
      code: open ? withoutFenceStart(code, token.markup) : code,
    };
  }

  /** Blocks that may name a link target are drawn again when a later line defines one. */
  #setContext(context: Context): void {
    // Blocks before the first heading have none; for those after it the level is known and stays.
    if (sameReferences(this.#context.references, context.references)) {
      if (this.#context.headingBase !== context.headingBase) this.#context = context;
      return;
    }
    this.#context = context;
    this.#frozen = this.#frozen.map((block) => (block.source.includes('[') ? { ...block, context } : block));
  }
}

const finished = new LruCache<string, readonly Block[]>(8_000_000);

/** The blocks of a finished text, with marks or without; a text seen lately is not read again. */
export function finishedBlocks(text: string, citations = false): readonly Block[] {
  // No text of an answer has this sign.
  const key = citations ? `\0${text}` : text;
  const known = finished.get(key);
  if (known !== undefined) return known;
  const blocks = new MarkdownStream(citations).update(text, false);
  rememberFinished(key, blocks);
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
    known = renderMarkdown(source, block.context, block.kind === 'prose' && block.open);
    html.set(block, known);
  }
  return known;
}

/** A top-level block of a parse: the token that opens it and its place in the whole text. */
type Group = { token: Token; start: number; end: number };

/** Takes the objects of the blocks before where nothing changed, so that they are not drawn again. */
function reuse(before: ReadonlyMap<number, Block>, blocks: Block[]): Block[] {
  return blocks.map((block) => {
    const old = before.get(block.key);
    return old !== undefined && isSame(old, block) ? old : block;
  });
}

function parse(
  text: string,
  offset: number,
  before: Context,
  streaming: boolean,
): { groups: Group[]; context: Context } {
  const env: RenderEnv = { references: { ...before.references }, streaming };
  const tokens: Token[] = [];
  const normalised = text.replace(/\r\n?|\n/g, '\n').replace(/\0/g, '\ufffd');
  markdown.block.parse(normalised, markdown, env, tokens);
  const lineStarts = startsOfLines(text);
  const groups: Group[] = [];
  for (const token of tokens) {
    if (token.level !== 0 || token.nesting === -1 || token.map === null) continue;
    const [first, end] = token.map;
    groups.push({
      token,
      start: offset + lineStarts[first]!,
      end: offset + (lineStarts[end] ?? text.length),
    });
  }
  const headingBase = before.headingBase ?? firstHeading(tokens);
  return { groups, context: { ...before, references: env.references, headingBase } };
}

/** Offsets of all lines; the one past the last line is the text's length. */
function startsOfLines(text: string): number[] {
  const starts = [0];
  for (const match of text.matchAll(/\r\n?|\n/g)) starts.push(match.index + match[0].length);
  starts.push(text.length);
  return starts;
}

function closesFence(line: string, markup: string): boolean {
  const fence = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
  return fence !== undefined && fence[0] === markup[0] && fence.length >= markup.length;
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
  if (a.source !== b.source || a.kind !== b.kind || a.context !== b.context) return false;
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
