// A very long text in a field is laid out anew with every key that is pressed, which takes a second for a megabyte. So a
// long paste is kept beside the field, folded; the draft as the rest of the program knows it is both together.

/** Pastes and drafts longer than this are folded. */
export const FOLD_FROM_CHARS = 50_000;
/** Longer texts get their direction from us: browsers look for it in the whole text. */
const LONG_FOR_DIRECTION_CHARS = 5_000;

/** A draft: what is in the field, and what is folded after it. */
export type Draft = { readonly typed: string; readonly folded: string };

/** The draft as one text. */
export function joinDraft({ typed, folded }: Draft): string {
  return typed === '' || folded === '' ? typed + folded : `${typed}\n\n${folded}`;
}

/** A draft that comes as one text, as after a restart. */
export const splitDraft = (text: string): Draft =>
  text.length > FOLD_FROM_CHARS ? { typed: '', folded: text } : { typed: text, folded: '' };

/** The draft with a pasted text folded; null when it is short enough for the field. */
export function foldPaste({ typed, folded }: Draft, pasted: string): Draft | null {
  if (pasted.length <= FOLD_FROM_CHARS) return null;
  return { typed, folded: joinDraft({ typed: folded, folded: pasted }) };
}

/** What a field's `dir` should be: that of its first letter. */
export function directionOf(text: string): 'auto' | 'ltr' | 'rtl' {
  if (text.length <= LONG_FOR_DIRECTION_CHARS) return 'auto';
  const letter = /\p{L}/u.exec(text.slice(0, LONG_FOR_DIRECTION_CHARS))?.[0] ?? '';
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(letter) ? 'rtl' : 'ltr';
}
