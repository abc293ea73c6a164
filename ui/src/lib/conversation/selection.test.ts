import { afterEach, describe, expect, it, vi } from 'vitest';
import { renderMarkdown } from '../markdown/render';
import { copySelection, selectionText } from './selection';

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

describe('copying', () => {
  const page = document.createElement('div');
  document.body.append(page);
  afterEach(() => getSelection()?.removeAllRanges());

  /** What is on the clipboard after a selection was copied; null when the browser does it its own way. */
  function copied(markdown: string, from: string, to: string): string | null {
    page.innerHTML = renderMarkdown(markdown);
    getSelection()!.setBaseAndExtent(textNode(from), 0, textNode(to), to.length);
    const setData = vi.fn();
    const preventDefault = vi.fn();
    copySelection({ clipboardData: { setData }, preventDefault, target: page } as unknown as ClipboardEvent);
    if (preventDefault.mock.calls.length === 0) return null;
    expect(setData).toHaveBeenCalledOnce();
    return setData.mock.calls[0]![1];
  }

  function textNode(text: string): Node {
    const walker = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.textContent?.startsWith(text)) return walker.currentNode;
    throw new Error(`no text ${text}`);
  }

  it('takes what is selected, and nothing else', () => {
    expect(copied('a\n\n- b\n- c\n\nd', 'b', 'd')).toBe('- b\n- c\n\nd');
  });

  it('takes the whole of a formula that is half selected', () => {
    expect(copied('a $x+y$ b', 'a', 'x')).toBe('a $x+y$');
  });

  it('leaves a piece of code to the browser, which keeps its spaces', () => {
    expect(copied('```\n  a\n```', '  a', '  a')).toBeNull();
  });

  it('leaves fields and nothing at all to the browser', () => {
    page.innerHTML = '<p>a</p>';
    const preventDefault = vi.fn();
    copySelection({ clipboardData: {}, preventDefault, target: page } as unknown as ClipboardEvent);
    expect(preventDefault).not.toHaveBeenCalled();
  });
});
