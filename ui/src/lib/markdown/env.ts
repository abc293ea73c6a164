import type { StateInline } from 'markdown-it';

/** Link targets of a document by their normalised label, as markdown-it keeps them. */
export type References = Record<string, { href: string; title: string }>;

/** What one run of markdown-it carries along. */
export type RenderEnv = {
  references: References;
  /** More text may follow: a formula that the text ends in counts as one. */
  streaming: boolean;
  /** The level of the text's first heading; found when it is not given. */
  headingBase?: number | undefined;
  /** Links to `passage:N` are marks that name what the answer was given. */
  citations?: boolean | undefined;
  /** Delimiters that an inline text is known not to contain any more. */
  misses?: WeakMap<StateInline, Set<string>>;
};
