// What a selection in an answer is as text: formulas as TeX, lists with their markers, tables with tabs, code as it is,
// and none of the buttons.

const BLOCKS = new Set([
  'P',
  'DIV',
  'UL',
  'OL',
  'LI',
  'BLOCKQUOTE',
  'PRE',
  'TABLE',
  'TR',
  'HR',
  'H1',
  'H2',
  'H3',
  'H4',
  'H5',
  'H6',
  'ARTICLE',
  'SECTION',
]);
const SPACED = new Set([
  'P',
  'UL',
  'OL',
  'BLOCKQUOTE',
  'PRE',
  'TABLE',
  'H1',
  'H2',
  'H3',
  'H4',
  'H5',
  'H6',
  'ARTICLE',
]);
const SKIPPED = '.code-head, .katex-html, button, progress, [aria-hidden="true"], [data-nocopy]';

/** A selected piece of an answer as plain text. */
export function selectionText(fragment: DocumentFragment | Element): string {
  const text = write(fragment, { list: null }).join('');
  return text
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+|\n+$/g, '');
}

type Place = { list: { ordered: boolean; next: number; depth: number } | null };

function write(node: Node, place: Place): string[] {
  if (node.nodeType === Node.TEXT_NODE) {
    const text = node.textContent ?? '';
    const isCode = node.parentElement?.closest('pre') !== null && node.parentElement !== null;
    // A line break in prose is where the source was wrapped.
    return [isCode || isPreWrapped(node.parentElement) ? text : text.replace(/\s+/g, ' ')];
  }
  if (!(node instanceof Element)) return [...node.childNodes].flatMap((child) => write(child, place));
  if (node.matches('.katex')) return [formulaSource(node)];
  if (node.matches(SKIPPED)) return [];
  if (node.tagName === 'BR') return ['\n'];
  if (node.tagName === 'INPUT') return [(node as HTMLInputElement).checked ? '[x] ' : '[ ] '];
  if (node.tagName === 'TD' || node.tagName === 'TH')
    return [...children(node, place), node.nextElementSibling ? '\t' : ''];
  if (node.tagName === 'UL' || node.tagName === 'OL') {
    const next = Number(node.getAttribute('start') ?? 1);
    const list = { ordered: node.tagName === 'OL', next, depth: (place.list?.depth ?? -1) + 1 };
    return ['\n', ...children(node, { list }), place.list === null ? '\n\n' : ''];
  }
  if (node.tagName === 'LI' && place.list !== null) {
    const marker = place.list.ordered ? `${place.list.next++}. ` : '- ';
    const inner = children(node, place)
      .join('')
      .replace(/^\s+|\s+$/g, '');
    return ['\n', '  '.repeat(place.list.depth), marker, inner];
  }
  const inner = children(node, place);
  if (!BLOCKS.has(node.tagName)) return inner;
  const gap = SPACED.has(node.tagName) ? '\n\n' : '\n';
  return [gap, ...inner, gap];
}

const children = (node: Node, place: Place): string[] =>
  [...node.childNodes].flatMap((child) => write(child, place));

const isPreWrapped = (element: Element | null): boolean => element?.closest('[data-plain]') != null;

function formulaSource(formula: Element): string {
  const tex = formula.querySelector('annotation[encoding="application/x-tex"]')?.textContent ?? '';
  if (tex === '') return '';
  return formula.closest('.math-block') !== null || formula.querySelector('math[display="block"]') !== null
    ? `$$${tex}$$`
    : `$${tex}$`;
}
