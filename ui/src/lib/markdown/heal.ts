// Makes the end of a text that is still being written look like what it is going to be: half-open emphasis, code,
// links and formulas are closed, and a line that only begins with a marker waits. Finished text never passes here.
import remend from 'remend';
import { healFormula } from './math';

/** Closing looks at the whole text several times; a paragraph longer than this is shown as it is. */
const MAX_HEALED_CHARS = 16_000;

/** A last line of nothing but a marker: a list item, heading, fence, rule or table row that has just begun. */
const MARKER_LINE =
  /(?:^|\n)[ \t]*(?:>[ \t]*)*(?:[-*+_=]{1,3}|#{1,6}|`{1,3}|~{1,3}|\||\\|\$|\\\[|\$\$)?[ \t]*$/;

/** The open tail without a last line that is only a marker yet. Such a line would flicker as text or as a heading. */
export function withoutMarkerLine(tail: string): string {
  const lineStart = tail.lastIndexOf('\n') + 1;
  const line = tail.slice(lineStart);
  return line.trim() !== '' && line.length < 40 && MARKER_LINE.test(line) ? tail.slice(0, lineStart) : tail;
}

/** The last block's markdown with everything closed that is still open. */
export function heal(source: string): string {
  if (source.length > MAX_HEALED_CHARS) return source;
  // `[text](http://half` shows its text, `![alt](half` its description.
  const linked = source.replace(/!?\[([^[\]\n]*)\]\([^()\s]*$/, '$1');
  return remend(healInlineFormula(linked), {
    links: false,
    images: false,
    htmlTags: false,
    comparisonOperators: false,
    singleTilde: false,
    setextHeadings: false,
    katex: false,
  });
}

/** Closes the formula that the text ends in. A block that is a formula as a whole is the block rule's to close. */
function healInlineFormula(source: string): string {
  const dollars = source.lastIndexOf('$$');
  if (dollars > 0 && source.split('$$').length % 2 === 0) return closed(source, dollars, '$$');
  const parenthesis = source.lastIndexOf('\\(');
  if (parenthesis !== -1 && !source.includes('\\)', parenthesis)) return closed(source, parenthesis, '\\)');
  return source;
}

function closed(source: string, at: number, close: string): string {
  const tex = healFormula(source.slice(at + 2)).trimEnd();
  return tex === '' ? source.slice(0, at) : source.slice(0, at + 2) + tex + close;
}
