// A theme whose "colours" are numbers of token kinds. Shiki gives every run of code a colour; ours say which class the
// run gets, and the colours themselves stay in the page's style sheet, where light and dark are.
import type { ThemeRegistration } from 'shiki/core';
import { TOKEN_KINDS, type TokenKind } from './tokens';

const SCOPES: Record<TokenKind, string[]> = {
  keyword: [
    'keyword',
    'storage',
    'storage.type',
    'keyword.operator.new',
    'keyword.operator.expression',
    'keyword.operator.word',
    'variable.language',
    'keyword.other.unit',
  ],
  string: [
    'string',
    'punctuation.definition.string',
    'markup.inline.raw',
    'markup.fenced_code',
    'string.regexp',
  ],
  number: ['constant.numeric'],
  comment: ['comment', 'punctuation.definition.comment', 'markup.quote'],
  function: [
    'entity.name.function',
    'support.function',
    'meta.function-call.generic',
    'entity.name.section',
    'markup.heading',
  ],
  type: [
    'entity.name.type',
    'entity.name.class',
    'entity.name.namespace',
    'entity.other.inherited-class',
    'support.type',
    'support.class',
    'storage.type.java',
    'storage.type.cs',
    'entity.name.scope-resolution',
  ],
  variable: ['variable', 'meta.definition.variable', 'support.variable'],
  punctuation: ['punctuation', 'keyword.operator', 'meta.brace', 'storage.type.function.arrow'],
  constant: [
    'constant.language',
    'constant.character',
    'constant.other',
    'variable.other.enummember',
    'support.constant',
  ],
  tag: ['entity.name.tag', 'support.type.property-name.json', 'support.type.property-name.toml'],
  attribute: [
    'entity.other.attribute-name',
    'support.type.property-name',
    'support.type.vendored.property-name',
    'meta.attribute',
    'meta.decorator',
    'punctuation.decorator',
  ],
  inserted: ['markup.inserted', 'punctuation.definition.inserted'],
  deleted: ['markup.deleted', 'punctuation.definition.deleted'],
};

const colourOf = (kind: TokenKind): string =>
  `#${(TOKEN_KINDS.indexOf(kind) + 1).toString(16).padStart(6, '0')}`;

/** The kind behind a run's colour. */
export const kindOf = (colour: string | undefined): TokenKind | null =>
  TOKEN_KINDS[Number.parseInt(colour?.slice(1, 7) ?? '', 16) - 1] ?? null;

export const kindsTheme: ThemeRegistration = {
  name: 'kinds',
  type: 'dark',
  fg: '#ffffff',
  bg: '#000000',
  settings: [
    { settings: { foreground: '#ffffff', background: '#000000' } },
    ...TOKEN_KINDS.map((kind) => ({ scope: SCOPES[kind], settings: { foreground: colourOf(kind) } })),
  ],
};
