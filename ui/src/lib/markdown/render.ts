// Markdown of an answer to HTML. What comes out is safe to put into the page: raw HTML in the text is shown as text,
// links are made inert unless they are web or mail addresses, images are never loaded, and the only markup is ours.
import MarkdownIt from 'markdown-it';
import type { StateBlock, StateCore, Token } from 'markdown-it';
import cjkFriendly from 'markdown-it-cjk-friendly';
import { conversationStrings } from '../strings.conversation';
import type { References, RenderEnv } from './env';
import { fenceWord, languageName } from './languages';
import { links } from './links';
import { math } from './math';
import { tasks } from './tasks';

/**
 * Quotes and lists nested deeper than this are shown as the text that they are. In markdown-it's levels, of which a list
 * takes two and a quote one; its own limit is 100, and drops what is deeper.
 */
const MAX_LEVEL = 80;

/** The one markdown-it instance; the splitter and the renderer share its rules, so that they agree on every block. */
export const markdown: MarkdownIt = createMarkdown();

/** What a text's HTML depends on, apart from the text. */
export type Context = {
  /** Link targets that the whole document defines. */
  readonly references: References;
  /** The level of the document's first heading, which is shown as the first below those of the page. */
  readonly headingBase: number | undefined;
  /** Links to `passage:N` are marks that name what the answer was given; else they are no links. */
  readonly citations?: boolean;
};

/** HTML of markdown text: a whole document, or a block of one in its context. */
export function renderMarkdown(text: string, context?: Context, streaming = false): string {
  // A run adds the definitions it finds to its environment; the caller's stay as they are.
  const env: RenderEnv = {
    references: { ...context?.references },
    headingBase: context?.headingBase,
    citations: context?.citations,
    streaming,
  };
  return markdown.render(text, env);
}

/** The level of the first heading among tokens. */
export function firstHeading(tokens: readonly Token[]): number | undefined {
  const heading = tokens.find((token) => token.type === 'heading_open');
  return heading === undefined ? undefined : Number(heading.tag.slice(1));
}

function createMarkdown(): MarkdownIt {
  const md = new MarkdownIt({ html: false, linkify: true, typographer: false });
  md.use(cjkFriendly);
  md.use(math);
  md.use(tasks);
  md.use(links);
  md.block.ruler.before('table', 'too_deep', tooDeepRule);
  md.core.ruler.push('shape', shape);
  md.renderer.rules.fence = codeHtml;
  md.renderer.rules.code_block = codeHtml;
  md.renderer.rules.code_inline = (tokens, index) =>
    `<code class="md-code" dir="ltr">${md.utils.escapeHtml(tokens[index]!.content)}</code>`;
  const label = md.utils.escapeHtml(conversationStrings.table);
  md.renderer.rules['table_open'] = () => `<div class="md-table md-scroll" data-label="${label}"><table>\n`;
  md.renderer.rules['table_close'] = () => '</table></div>\n';
  return md;
}

function tooDeepRule(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  if (silent || state.level < MAX_LEVEL) return false;
  state.line = endLine;
  state.push('paragraph_open', 'p', 1).map = [startLine, endLine];
  const inline = state.push('text', '', 0);
  inline.content = state.getLines(startLine, endLine, state.blkIndent, false);
  state.push('paragraph_close', 'p', -1);
  return true;
}

/** The page has an h1 and an h2 above every answer. */
const FIRST_HEADING = 3;
const WITH_DIRECTION = new Set(['paragraph', 'heading', 'list_item', 'td', 'th', 'blockquote']);

/** Directions by the text itself, and headings below those of the page. */
function shape(state: StateCore): void {
  const base = (state.env as RenderEnv).headingBase ?? firstHeading(state.tokens) ?? 1;
  for (let index = 0; index < state.tokens.length; index++) {
    const token = state.tokens[index]!;
    const [kind, side] = splitType(token.type);
    if (kind === 'heading') {
      if (side === 'open') token.attrJoin('class', `md-${token.tag}`);
      const level = FIRST_HEADING + Number(token.tag.slice(1)) - base;
      token.tag = `h${Math.min(6, Math.max(FIRST_HEADING, level))}`;
    }
    if (side !== 'open' || !WITH_DIRECTION.has(kind)) continue;
    // The first paragraph of an item or a quote takes its direction from it: an element with a direction of its own
    // would not count when the item's is found, and its marker would stand on the wrong side.
    const parent = kind === 'paragraph' ? state.tokens[index - 1]?.type : undefined;
    if (parent !== 'list_item_open' && parent !== 'blockquote_open') token.attrSet('dir', 'auto');
  }
}

function splitType(type: string): [kind: string, side: string] {
  const at = type.lastIndexOf('_');
  return [type.slice(0, at), type.slice(at + 1)];
}

/** Code inside of lists and quotes; at the top level a component takes its place. Both share their look. */
function codeHtml(tokens: Token[], index: number): string {
  const token = tokens[index]!;
  const { escapeHtml } = markdown.utils;
  const name = languageName(token.info);
  const label = escapeHtml(conversationStrings.codeRegion(name));
  const copyLabel = escapeHtml(conversationStrings.copyCode(name));
  const code = token.content.replace(/\n$/, '');
  return (
    `<div class="code" data-code><div class="code-head"><span class="code-lang">` +
    `${escapeHtml(name === '' ? conversationStrings.plainCode : name)}</span>` +
    `<button type="button" class="code-copy" aria-label="${copyLabel}">${escapeHtml(conversationStrings.copy)}</button></div>` +
    `<pre class="code-body md-scroll" data-label="${label}" dir="ltr"><code data-lang="${escapeHtml(fenceWord(token.info))}">` +
    `${escapeHtml(code)}\n</code></pre></div>\n`
  );
}
