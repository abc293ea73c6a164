// What is being picked while a message is typed: a document after an `@` that begins a word, or a skill after a `/` that
// begins the message.

/** Something that is being picked: from the sign, at `start`, to the cursor, at `end`. */
export type Mention = { kind: 'document' | 'skill'; query: string; start: number; end: number };

/** Nobody types a name this long to find something; a line that begins with an `@` may be this long. */
const MOST_CHARS = 60;

// A word may follow an opening bracket or quote. An address such as a@b is none: its sign is within a word.
const DOCUMENT = /(?:^|[\s([{"'“‘«„])@([^\s@]*)$/u;
const SKILL = /^\/([\p{L}\p{N}_-]*)$/u;

/** What is being picked where the cursor is, if anything. */
export function mentionAt(text: string, cursor: number): Mention | null {
  const before = text.slice(Math.max(0, cursor - MOST_CHARS - 2), cursor);
  const query = cursor <= MOST_CHARS ? SKILL.exec(text.slice(0, cursor))?.[1] : undefined;
  if (query !== undefined) return { kind: 'skill', query, start: 0, end: cursor };
  const name = DOCUMENT.exec(before)?.[1];
  if (name === undefined || name.length > MOST_CHARS) return null;
  return { kind: 'document', query: name, start: cursor - name.length - 1, end: cursor };
}

/** The text without what was typed to pick something, and without the second of two spaces that are left there. */
export function withoutMention(text: string, { start, end }: Mention): string {
  const before = text.slice(0, start);
  const after = text.slice(end);
  return before + (/(?:^|\s)$/.test(before) ? after.replace(/^ /, '') : after);
}

/** The text with a sign that begins a mention at the cursor, or for skills at its beginning; and where the cursor goes. */
export function withSign(
  text: string,
  cursor: number,
  kind: Mention['kind'],
): { text: string; cursor: number } {
  if (kind === 'skill') return { text: `/${text}`, cursor: 1 };
  const before = text.slice(0, cursor);
  const sign = before === '' || /\s$/.test(before) ? '@' : ' @';
  // What follows must not become a part of the name.
  const after = text.slice(cursor);
  return {
    text: before + sign + (after === '' || /^\s/.test(after) ? after : ` ${after}`),
    cursor: cursor + sign.length,
  };
}
