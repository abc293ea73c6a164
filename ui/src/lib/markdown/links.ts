// Links and images. An answer is text from a model: only web and mail addresses are links, and nothing is ever loaded
// because an answer names it, so an image is a link to it with its description. Where the program has put in marks that
// name what the answer was given, as links to `passage:N`, they become buttons of the page.
import type { MarkdownIt, StateCore, Token } from 'markdown-it';
import { conversationStrings } from '../strings.conversation';
import type { RenderEnv } from './env';

/** Whether a link may be offered to the person. */
export const isAllowedLink = (href: string): boolean => /^(?:https?:\/\/|mailto:)[^\s]/i.test(href.trim());

/** Which of the things that were given a mark names; null for every other link. */
const citedBy = (href: string): string | null => /^passage:(\d{1,6})$/.exec(href)?.[1] ?? null;

/** Adds the rules for links and images to a markdown-it instance. */
export function links(md: MarkdownIt): void {
  // Everything parses as a link; what is no allowed one is made inert below, rather than shown as raw markdown.
  md.validateLink = () => true;
  // Only addresses with a scheme: "main.rs" and "README.md" are not web sites.
  md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  md.linkify.add('ftp:', null).add('//', null);
  md.core.ruler.after('linkify', 'links', (state) => {
    for (const token of state.tokens) if (token.children !== null) rewrite(state, token.children);
  });
}

function rewrite(state: StateCore, tokens: Token[]): void {
  const inert: boolean[] = [];
  let insideLink = 0;
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index]!;
    if (token.type === 'link_open') {
      const href = String(token.attrGet('href') ?? '');
      const cited = (state.env as RenderEnv).citations === true ? citedBy(href) : null;
      inert.push(cited === null && !isAllowedLink(href));
      insideLink++;
      if (cited !== null) setCitation(token, cited);
      else if (isAllowedLink(href)) setLink(token, href);
      else setInert(token, href);
    } else if (token.type === 'link_close') {
      insideLink--;
      if (inert.pop()) token.tag = 'span';
    } else if (token.type === 'image') {
      const replacement = imageTokens(state, token, insideLink > 0);
      tokens.splice(index, 1, ...replacement);
      index += replacement.length - 1;
    }
  }
}

function setLink(token: Token, href: string): void {
  const title = token.attrGet('title');
  token.attrs = [
    ['class', 'md-link'],
    ['href', href],
    ['rel', 'noopener noreferrer nofollow'],
  ];
  if (title !== null) token.attrSet('title', title);
}

function setCitation(token: Token, given: string): void {
  token.attrs = [
    ['class', 'citation'],
    ['href', '#'],
    ['data-passage', given],
  ];
}

function setInert(token: Token, href: string): void {
  token.tag = 'span';
  token.attrs = [
    ['class', 'md-inert-link'],
    ['title', href.slice(0, 200)],
  ];
}

function imageTokens(state: StateCore, image: Token, insideLink: boolean): Token[] {
  const href = String(image.attrGet('src') ?? '');
  const text = new state.Token('text', '', 0);
  text.content = conversationStrings.image(plainText(image.children ?? []).trim());
  const open = new state.Token('link_open', 'a', 1);
  const close = new state.Token('link_close', 'a', -1);
  if (!insideLink && isAllowedLink(href)) setLink(open, href);
  else {
    setInert(open, href);
    close.tag = 'span';
  }
  open.attrJoin('class', 'md-image');
  return [open, text, close];
}

const plainText = (tokens: Token[]): string =>
  tokens.map((token) => (token.children !== null ? plainText(token.children) : token.content)).join('');
