// Formulas in markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`, set by KaTeX.
//
// The rules are our own because answers arrive in pieces: whether a line begins a formula block must not depend on
// text that is not there yet, and a price ("$5 and $10") must never become a formula. A block of a formula holds no
// blank line (TeX allows none either), which bounds how far a rule looks ahead to the block that is still open.
import katex from 'katex';
import type { MarkdownIt, StateBlock, StateInline } from 'markdown-it';
import { conversationStrings } from '../strings.conversation';
import { LruCache } from './cache';
import type { RenderEnv } from './env';

type Delimiter = { open: string; close: string };
const DOLLARS: Delimiter = { open: '$$', close: '$$' };
const BRACKETS: Delimiter = { open: '\\[', close: '\\]' };
const PARENTHESES: Delimiter = { open: '\\(', close: '\\)' };

/** Longer formulas are shown as their source: KaTeX builds a deep tree for each, on the page's thread. */
const MAX_FORMULA_CHARS = 5_000;
/** A formula that did not end by then is none. Bounds what every opener costs. */
const MAX_FORMULA_LINES = 200;
const rendered = new LruCache<string, string | null>(2_000_000);

/** A formula as HTML, or null when KaTeX does not understand it. Never runs what a formula names (trust is off). */
export function formulaHtml(tex: string, display: boolean): string | null {
  if (tex.length > MAX_FORMULA_CHARS) return null;
  const key = (display ? 'd' : 'i') + tex;
  const known = rendered.get(key);
  if (known !== undefined) return known;
  let html: string | null = null;
  try {
    html = katex.renderToString(tex, {
      displayMode: display,
      throwOnError: true,
      strict: 'ignore',
      trust: false,
      maxExpand: 500,
      maxSize: 20,
      output: 'htmlAndMathml',
    });
  } catch {
    // A parse error, or nesting too deep for the stack: the source is shown instead.
  }
  rendered.set(key, html, key.length + (html?.length ?? 0));
  return html;
}

/**
 * A formula that is still being written, closed so that KaTeX can set it: a half-written command goes, open groups,
 * `\left` and environments are ended. The result may still be no formula; then its source is shown.
 */
export function healFormula(tex: string): string {
  const text = tex.replace(/\\[a-zA-Z]*$/, '').replace(/\\(?:begin|end|left|right)\s*\{[a-zA-Z*]*$/, '');
  const open: string[] = [];
  for (const match of text.matchAll(/\\(begin|end)\{([a-zA-Z*]+)\}|\\(left|right)(?![a-zA-Z])|\\.|[{}]/gs)) {
    const [whole, environment, name, side] = match;
    if (whole === '{') open.push('}');
    else if (environment === 'begin') open.push(`\\end{${name}}`);
    else if (side === 'left') open.push('\\right.');
    else if (whole === '}' || environment === 'end' || side === 'right') open.pop();
  }
  return text + open.reverse().join('');
}

/** Adds the formula rules and their look to a markdown-it instance. */
export function math(md: MarkdownIt): void {
  md.inline.ruler.before('escape', 'math_backslash', backslashRule);
  md.inline.ruler.after('escape', 'math_dollar', dollarRule);
  md.block.ruler.before('fence', 'math_block', blockRule, {
    alt: ['paragraph', 'reference', 'blockquote', 'list'],
  });

  const { escapeHtml } = md.utils;
  const source = (text: string): string => `<code class="math-source" dir="ltr">${escapeHtml(text)}</code>`;

  md.renderer.rules['math_inline'] = (tokens, index) => {
    const token = tokens[index]!;
    const display = token.markup === '$$' || token.markup === '\\[';
    const html = formulaHtml(token.content, display);
    if (html === null) return source(token.meta.source);
    return `<span class="${display ? 'math-display' : 'math-inline'}" dir="ltr">${html}</span>`;
  };
  md.renderer.rules['math_block'] = (tokens, index) => {
    const token = tokens[index]!;
    const tex = token.meta.open ? healFormula(token.content) : token.content;
    const html = tex === '' ? '' : formulaHtml(tex, true);
    if (html === null) return `<p dir="ltr">${source(token.meta.source)}</p>\n`;
    return `<div class="math-block md-scroll" data-label="${escapeHtml(conversationStrings.formula)}" dir="ltr">${html}</div>\n`;
  };
}

/** Where the closing delimiter begins, or -1. Remembers misses, so that a thousand openers cost one search. */
function findClose(state: StateInline, close: string, from: number): number {
  const misses = ((state.env as RenderEnv).misses ??= new WeakMap());
  let missed = misses.get(state);
  if (missed === undefined) misses.set(state, (missed = new Set()));
  if (missed.has(close)) return -1;
  const at = state.src.indexOf(close, from);
  if (at === -1) missed.add(close);
  return at === -1 || at + close.length > state.posMax ? -1 : at;
}

function pushInline(state: StateInline, delimiter: Delimiter, end: number): void {
  const token = state.push('math_inline', 'math', 0);
  token.markup = delimiter.open;
  token.content = state.src.slice(state.pos + delimiter.open.length, end).trim();
  token.meta = { source: state.src.slice(state.pos, end + delimiter.close.length) };
}

function backslashRule(state: StateInline, silent: boolean): boolean {
  if (state.src.charCodeAt(state.pos) !== 0x5c) return false;
  const next = state.src[state.pos + 1];
  const delimiter = next === '(' ? PARENTHESES : next === '[' ? BRACKETS : null;
  if (delimiter === null) return false;
  const end = findClose(state, delimiter.close, state.pos + 2);
  if (end === -1) return false;
  const content = state.src.slice(state.pos + 2, end);
  // `\[1\]` and `\[x\]` with nothing but a word are brackets that someone escaped.
  if (content.trim() === '' || (delimiter === BRACKETS && /^[\p{L}\d ,.-]*$/u.test(content))) return false;
  if (!silent) pushInline(state, delimiter, end);
  state.pos = end + 2;
  return true;
}

function dollarRule(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  if (src.charCodeAt(pos) !== 0x24) return false;
  if (src.startsWith('$$', pos)) {
    const end = findClose(state, '$$', pos + 2);
    if (end !== -1 && src.slice(pos + 2, end).trim() !== '') {
      if (!silent) pushInline(state, DOLLARS, end);
      state.pos = end + 2;
      return true;
    }
    if (!silent) state.pending += '$$';
    state.pos += 2;
    return true;
  }
  const end = findDollarClose(state);
  if (end === -1) {
    if (!silent) state.pending += '$';
    state.pos += 1;
    return true;
  }
  if (!silent) pushInline(state, { open: '$', close: '$' }, end);
  state.pos = end + 1;
  return true;
}

/** The `$` that ends the formula begun at `state.pos`, or -1 when what stands there is money or a shell variable. */
function findDollarClose(state: StateInline): number {
  const { src, pos } = state;
  if (/[A-Za-z0-9]/.test(src[pos - 1] ?? '') || /[\s$]/.test(src[pos + 1] ?? ' ')) return -1;
  let end = pos;
  do {
    end = findClose(state, '$', end + 1);
    if (end === -1) return -1;
  } while (isEscaped(src, end));
  const content = src.slice(pos + 1, end);
  const after = src[end + 1] ?? '';
  if (/\s$/.test(content) || /[0-9]/.test(after)) return -1;
  // "$5 for one and 10$", "$HOME/$USER".
  if (/^[\d.,]+\s+[A-Za-z]{2}/.test(content)) return -1;
  if (/[A-Za-z_]/.test(after) && /^[A-Z_]{2}/.test(content)) return -1;
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

const lineText = (state: StateBlock, line: number): string =>
  state.src.slice(state.bMarks[line]! + state.tShift[line]!, state.eMarks[line]);

/** What may follow a closing delimiter for the formula to stand on its own: nothing, or the sentence's mark. */
const TRAILING = /^\s*[.,;:]?\s*$/;

function blockRule(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  if (state.sCount[startLine]! - state.blkIndent >= 4) return false;
  const first = lineText(state, startLine);
  const delimiter = first.startsWith('$$') ? DOLLARS : first.startsWith('\\[') ? BRACKETS : null;
  if (delimiter === null) return false;
  const rest = first.slice(2);
  const closeInFirst = rest.indexOf(delimiter.close);

  if (closeInFirst !== -1) {
    const content = rest.slice(0, closeInFirst);
    const trailing = rest.slice(closeInFirst + 2);
    if (content.trim() === '' || !TRAILING.test(trailing)) return false;
    if (delimiter === BRACKETS && /^[\p{L}\d ,.-]*$/u.test(content)) return false;
    if (!silent) pushBlock(state, delimiter, startLine, startLine + 1, content + trailing.trim(), false);
    return true;
  }
  // Only an opener alone on its line ends a paragraph, and not where it closes a formula begun within that paragraph.
  // That is known from the lines before it, so later text cannot change it.
  if (silent) return rest.trim() === '' && !closesParagraphFormula(state, startLine, delimiter);

  const lines = [rest];
  for (let line = startLine + 1; line < endLine; line++) {
    if (lines.length > MAX_FORMULA_LINES) return false;
    if (state.isEmpty(line) || state.sCount[line]! < state.blkIndent) return false;
    const text = lineText(state, line);
    const close = text.indexOf(delimiter.close);
    if (close === -1) {
      lines.push(text);
      continue;
    }
    const trailing = text.slice(close + 2);
    if (!TRAILING.test(trailing)) return false;
    lines.push(text.slice(0, close) + trailing.trim());
    pushBlock(state, delimiter, startLine, line + 1, lines.join('\n'), false);
    return true;
  }
  // The text ends within the formula. While more is to come it is one; a finished text shows what it says.
  if (!(state.env as RenderEnv).streaming || endLine < state.bMarks.length - 1) return false;
  pushBlock(state, delimiter, startLine, endLine, lines.join('\n'), true);
  return true;
}

function closesParagraphFormula(state: StateBlock, line: number, delimiter: Delimiter): boolean {
  if (delimiter !== DOLLARS) return false;
  const before = state.src.slice(state.bMarks[state.line], state.bMarks[line]);
  return before.split('$$').length % 2 === 0;
}

function pushBlock(
  state: StateBlock,
  delimiter: Delimiter,
  startLine: number,
  endLine: number,
  content: string,
  open: boolean,
): void {
  state.line = endLine;
  const token = state.push('math_block', 'math', 0);
  token.block = true;
  token.content = content.trim();
  token.map = [startLine, endLine];
  token.markup = delimiter.open;
  token.meta = { open, source: state.getLines(startLine, endLine, state.blkIndent, false) };
}
