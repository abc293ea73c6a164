import { describe, expect, it, vi } from 'vitest';
import { CHUNK_LINES, CodeLines } from './codelines';
import type { OnLines } from './highlight';
import { lineHtml, type Run } from './tokens';

/** A highlighter that records what it is asked for; `answer` colours the next lines as keywords. */
function fakeHighlighter() {
  const asked: string[] = [];
  let onLines: OnLines | undefined;
  let answered = 0;
  let closed = 0;
  return {
    asked,
    get closed() {
      return closed;
    },
    open: (_info: string, listener: OnLines) => {
      onLines = listener;
      answered = asked.length;
      return { append: (lines: string[]) => void asked.push(...lines), close: () => void (closed += 1) };
    },
    answer(count: number) {
      const lines = asked.slice(answered, answered + count).map((line): Run[] => [[line, 'keyword']]);
      onLines?.(answered, lines);
      answered += count;
    },
  };
}

const text = (lines: CodeLines): string => {
  const element = document.createElement('pre');
  element.innerHTML = lines.chunks.join('');
  return element.textContent ?? '';
};

describe('lines of code', () => {
  it('show the code as it is, whatever is in it', () => {
    const lines = new CodeLines(
      () => {},
      () => null,
    );
    lines.update('x', '<b>&amp;"\n\n  y', false);
    expect(text(lines)).toBe('<b>&amp;"\n\n  y\n');
    expect(lines.chunks.join('')).not.toContain('<b>');
  });

  it('ask for each complete line once, while the code grows', () => {
    const highlighter = fakeHighlighter();
    const lines = new CodeLines(() => {}, highlighter.open);
    for (const code of ['a', 'a\nb', 'a\nbb', 'a\nbb\n', 'a\nbb\nc']) lines.update('ts', code, true);
    expect(highlighter.asked).toEqual(['a', 'bb']);
    lines.update('ts', 'a\nbb\nc', false);
    expect(highlighter.asked).toEqual(['a', 'bb', 'c']);
  });

  it('keep their colours while more comes', () => {
    const highlighter = fakeHighlighter();
    const onChange = vi.fn();
    const lines = new CodeLines(onChange, highlighter.open);
    lines.update('ts', 'let\nx', true);
    highlighter.answer(1);
    expect(onChange).toHaveBeenCalledOnce();
    lines.update('ts', 'let\nxy\nz', true);
    expect(lines.chunks.join('')).toBe('<span class="tok-keyword">let</span>\nxy\nz\n');
  });

  it('touch only the last chunk when a long code grows', () => {
    const lines = new CodeLines(
      () => {},
      () => null,
    );
    const code = Array.from({ length: CHUNK_LINES * 3 }, (_, line) => `line ${line}`).join('\n');
    lines.update('ts', code, true);
    const before = [...lines.chunks];
    lines.update('ts', `${code} more\nand more`, true);
    expect(lines.chunks.slice(0, 2)).toEqual(before.slice(0, 2));
    expect(lines.chunks).toHaveLength(4);
    expect(text(lines)).toBe(`${code} more\nand more\n`);
  });

  it('begin anew with other code, and want nothing of the old', () => {
    const highlighter = fakeHighlighter();
    const lines = new CodeLines(() => {}, highlighter.open);
    lines.update('ts', 'old\nlines', false);
    lines.update('ts', 'new', false);
    expect(highlighter.closed).toBe(1);
    expect(text(lines)).toBe('new\n');
  });

  it('have their colours at once when the same code is shown again', () => {
    const highlighter = fakeHighlighter();
    const first = new CodeLines(() => {}, highlighter.open);
    first.update('ts', 'shown\nagain', false);
    highlighter.answer(2);
    const second = new CodeLines(
      () => {},
      () => null,
    );
    second.update('ts', 'shown\nagain', false);
    expect(second.chunks).toEqual(first.chunks);
  });
});

it('escapes code inside of colours', () => {
  expect(
    lineHtml([
      ['<"&>', 'string'],
      ['<', null],
    ]),
  ).toBe('<span class="tok-string">&lt;&quot;&amp;&gt;</span>&lt;');
});
