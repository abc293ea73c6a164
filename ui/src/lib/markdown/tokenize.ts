// Code to coloured lines, one session for each code block. Runs in the worker.
import { createHighlighterCore, type HighlighterCore } from 'shiki/core';
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript';
import type { GrammarState, LanguageInput } from 'shiki/types';
import { kindOf, kindsTheme } from './theme';
import type { Run } from './tokens';

/** Grammars by language id, each its own file that is loaded when it is first needed. */
const GRAMMARS: Record<string, LanguageInput> = {
  typescript: () => import('shiki/langs/typescript.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  jsx: () => import('shiki/langs/jsx.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  svelte: () => import('shiki/langs/svelte.mjs'),
  vue: () => import('shiki/langs/vue.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  cpp: () => import('shiki/langs/cpp.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  php: () => import('shiki/langs/php.mjs'),
  ruby: () => import('shiki/langs/ruby.mjs'),
  shellscript: () => import('shiki/langs/shellscript.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  lua: () => import('shiki/langs/lua.mjs'),
  r: () => import('shiki/langs/r.mjs'),
};

/** Longer lines are shown plain (minified code, data). */
const MAX_LINE_CHARS = 2_000;
/**
 * The most time one line may take, in milliseconds; its rest is plain then. Generous, because a grammar's patterns are
 * compiled when a line first needs them: the first line of TypeScript takes 0.25 s in Chromium and more than 1 s in
 * WebKitGTK on two busy cores.
 */
const LINE_LIMIT_MS = 5_000;

let core: Promise<HighlighterCore> | undefined;

/** The highlighter with this language's grammar; rejects for a language without one. */
async function highlighterFor(language: string): Promise<HighlighterCore> {
  const grammar = GRAMMARS[language];
  if (grammar === undefined) throw new Error(`no grammar for ${language}`);
  // `forgiving`: a pattern that a JavaScript regular expression cannot say never matches, instead of failing all.
  core ??= createHighlighterCore({
    themes: [kindsTheme],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
  const highlighter = await core;
  if (!highlighter.getLoadedLanguages().includes(language)) await highlighter.loadLanguage(grammar);
  return highlighter;
}

/** Reads the lines of one code block in order; what a line is depends on those before it. */
export class LineTokenizer {
  readonly #language: string;
  #state: GrammarState | undefined;

  constructor(language: string) {
    this.#language = language;
  }

  /** The next lines, coloured. */
  async next(lines: readonly string[]): Promise<Run[][]> {
    const highlighter = await highlighterFor(this.#language);
    const { tokens, grammarState } = highlighter.codeToTokens(lines.join('\n'), {
      lang: this.#language,
      theme: kindsTheme.name!,
      tokenizeMaxLineLength: MAX_LINE_CHARS,
      tokenizeTimeLimit: LINE_LIMIT_MS,
      ...(this.#state === undefined ? {} : { grammarState: this.#state }),
    });
    this.#state = grammarState;
    return tokens.map((line) => merge(line.map(({ content, color }): Run => [content, kindOf(color)])));
  }
}

/** Neighbours of one kind become one run. */
function merge(runs: Run[]): Run[] {
  const merged: Run[] = [];
  for (const run of runs) {
    const last = merged.at(-1);
    if (last !== undefined && (last[1] === run[1] || run[0].trim() === '')) last[0] += run[0];
    else merged.push(run);
  }
  return merged;
}

/** Ids of all grammars there are. */
export const grammarIds: readonly string[] = Object.keys(GRAMMARS);
