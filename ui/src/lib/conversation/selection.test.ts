import { describe, expect, it } from 'vitest';
import { renderMarkdown } from '../markdown/render';
import { selectionText } from './selection';

function textOf(markdown: string): string {
  const root = document.createElement('div');
  root.innerHTML = renderMarkdown(markdown);
  return selectionText(root);
}

describe('a copied selection', () => {
  it('has paragraphs apart and lines together', () => {
    expect(textOf('# A\n\nb\nc\n\nd')).toBe('A\n\nb c\n\nd');
  });

  it('has the markers of lists', () => {
    expect(textOf('- a\n- b\n  - c\n\n3. d\n4. e')).toBe('- a\n- b\n  - c\n\n3. d\n4. e');
    expect(textOf('- [x] a\n- [ ] b')).toBe('- [x] a\n- [ ] b');
  });

  it('has tables as a spreadsheet takes them', () => {
    expect(textOf('| a | b |\n|---|---|\n| 1 | 2 |')).toBe('a\tb\n1\t2');
  });

  it('has code as it is, without its buttons', () => {
    expect(textOf('a\n\n```py\n  if x:\n    y\n\nz\n```\n\nb')).toBe('a\n\n  if x:\n    y\n\nz\n\nb');
  });

  it('has the source of formulas, once', () => {
    expect(textOf('a $x^2$ b\n\n$$\ny\n$$')).toBe('a $x^2$ b\n\n$$y$$');
  });
});
