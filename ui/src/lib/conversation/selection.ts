// What a selection in the conversation is as text: formulas as TeX, lists with their markers, tables with tabs, code as
// it is, and none of the buttons and footers.

const BLOCKS = new Set(['P', 'DIV', 'UL', 'OL', 'LI', 'BLOCKQUOTE', 'PRE', 'TABLE', 'TR', 'HR', 'ARTICLE']);
const SPACED = new Set(['P', 'UL', 'OL', 'BLOCKQUOTE', 'PRE', 'TABLE', 'HR', 'ARTICLE']);
const HEADING = /^H[1-6]$/;
/** Elements whose text is only the space between their parts. */
const STRUCTURE = new Set(['UL', 'OL', 'TABLE', 'THEAD', 'TBODY', 'TR', 'BLOCKQUOTE', 'DIV', 'ARTICLE']);
const SKIPPED =
  '.code-head, .katex-html, .turn-actions, footer, button, progress, [aria-live], [role="status"]';
/** Text that is shown as it was written, spaces and line breaks included. */
const VERBATIM = 'pre, [data-plain]';

/** Marks in the written text: a new line, a blank line. A run of them counts once. */
const LINE = '\u0001';
const BLANK = '\u0002';
/** A list's indentation, which must outlive the gap that it follows. */
const INDENT = '\u0003';

/** A selected piece of the conversation as plain text. */
export function selectionText(root: DocumentFragment | Element): string {
  return write(root, null)
    .replace(/(?:[ \t]*[\u0001\u0002])+/g, (gap) => (gap.includes(BLANK) ? '\n\n' : '\n'))
    .replaceAll(INDENT, '  ')
    .replace(/^\n+|\n+$/g, '');
}

/** Puts the selection on the clipboard as plain text, when it is more than a piece of text that is fine as it is. */
export function copySelection(event: ClipboardEvent): void {
  const selection = getSelection();
  if (selection === null || selection.isCollapsed || event.clipboardData === null) return;
  if (event.target instanceof Element && event.target.closest('textarea, input') !== null) return;
  const range = selection.getRangeAt(0).cloneRange();
  if (elementOf(range.commonAncestorContainer)?.closest(VERBATIM) != null) return;
  // Half a formula has no source.
  const first = elementOf(range.startContainer)?.closest('.katex');
  const last = elementOf(range.endContainer)?.closest('.katex');
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  event.clipboardData.setData('text/plain', selectionText(range.cloneContents()));
  event.preventDefault();
}

const elementOf = (node: Node): Element | null => (node instanceof Element ? node : node.parentElement);

type List = { ordered: boolean; next: number; depth: number };

function write(node: Node, list: List | null): string {
  if (node.nodeType === Node.TEXT_NODE) return writeText(node);
  if (!(node instanceof Element)) return writeChildren(node, list);
  if (node.matches('.katex')) return formulaSource(node);
  if (node.matches(SKIPPED)) return '';
  if (node.matches('.citation')) return `[${writeChildren(node, list)}]`;
  switch (node.tagName) {
    case 'BR':
      return LINE;
    case 'INPUT':
      return (node as HTMLInputElement).checked ? '[x]' : '[ ]';
    case 'PRE': {
      const gap = list === null ? BLANK : LINE;
      return gap + writeChildren(node, list).replace(/\n$/, '') + gap;
    }
    case 'TD':
    case 'TH':
      return writeChildren(node, list).trim() + (node.nextElementSibling === null ? '' : '\t');
    case 'UL':
    case 'OL': {
      const next = Number(node.getAttribute('start') ?? 1);
      const inner = { ordered: node.tagName === 'OL', next, depth: list === null ? 0 : list.depth + 1 };
      const gap = list === null ? BLANK : LINE;
      return gap + writeChildren(node, inner) + gap;
    }
    case 'LI': {
      if (list === null) break;
      const marker = list.ordered ? `${list.next++}. ` : '- ';
      return LINE + INDENT.repeat(list.depth) + marker + trimmed(writeChildren(node, list)) + LINE;
    }
  }
  const inner = writeChildren(node, list);
  if (!BLOCKS.has(node.tagName) && !HEADING.test(node.tagName)) return inner;
  const gap = list === null && (SPACED.has(node.tagName) || HEADING.test(node.tagName)) ? BLANK : LINE;
  return gap + inner + gap;
}

const writeChildren = (node: Node, list: List | null): string =>
  [...node.childNodes].map((child) => write(child, list)).join('');

const trimmed = (text: string): string => text.replace(/^[\s\u0001\u0002]+|[\s\u0001\u0002]+$/g, '');

function writeText(node: Node): string {
  const text = (node.textContent ?? '').replace(/[\u0001-\u0003]/g, '');
  const parent = node.parentElement;
  if (parent?.closest(VERBATIM) != null) return text;
  if (text.trim() === '' && (parent === null || STRUCTURE.has(parent.tagName))) return '';
  // A line break in prose is only where the source was wrapped.
  return text.replace(/\s+/g, ' ');
}

function formulaSource(formula: Element): string {
  const tex = formula.querySelector('annotation[encoding="application/x-tex"]')?.textContent ?? '';
  if (tex === '') return '';
  return formula.querySelector('math[display="block"]') === null ? `$${tex}$` : `$$${tex}$$`;
}
