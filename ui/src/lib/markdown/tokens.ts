// How highlighted code travels from the worker to the page, and its HTML.

/** Kinds of code that have a colour of their own (`--syntax-…`). */
export const TOKEN_KINDS = [
  'keyword',
  'string',
  'number',
  'comment',
  'function',
  'type',
  'variable',
  'punctuation',
  'constant',
  'tag',
  'attribute',
  'inserted',
  'deleted',
] as const;
export type TokenKind = (typeof TOKEN_KINDS)[number];

/** A stretch of a line; without a kind it has the text's colour. */
export type Run = [text: string, kind: TokenKind | null];

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text as HTML that shows exactly that text. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => ESCAPES[character]!);

/** A highlighted line as HTML: text in spans whose class names its kind. */
export const lineHtml = (runs: readonly Run[]): string =>
  runs
    .map(([text, kind]) =>
      kind === null ? escapeHtml(text) : `<span class="tok-${kind}">${escapeHtml(text)}</span>`,
    )
    .join('');

/** Page to worker. Lines of a session are appended in order; `close` forgets the session and what waits of it. */
export type HighlightRequest =
  { kind: 'append'; session: number; language: string; lines: string[] } | { kind: 'close'; session: number };

/**
 * Worker to page: lines `from…` of a session. `given` says how many of the lines asked for are dealt with: more than
 * those coloured, when the rest is too much work and stays plain.
 */
export type HighlightAnswer = { session: number; from: number; lines: Run[][]; given: number };
