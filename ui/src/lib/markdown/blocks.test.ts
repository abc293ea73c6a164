import { describe, expect, it } from 'vitest';
import { blockHtml, finishedBlocks, MarkdownStream, type Block } from './blocks';
import { renderMarkdown } from './render';

const join = (blocks: readonly Block[]): string => blocks.map(blockHtml).join('');

/** Documents that put a block's end, a definition or a half-open marker where a naive splitter goes wrong. */
const SAMPLES: Record<string, string> = {
  'paragraphs and emphasis': 'One *two* **three**\nfour `five`\n\n**中文。**后面\n\nlast',
  'heading, rule, setext': '# A\ntext\n===\n\nb\n---\n***\n\nend\n- - -\n',
  fences: 'a\n```ts\nconst x = 1;\n\n# no heading\n```\nb\n~~~~\n~~~\n~~~~\n\n```',
  'fences that nearly close':
    '````js\n```\n~~~~\n ````x\n    ````\n\n   `````  \nafter\n\n~~~\n~~\n```\n~~~ \n```\n~~~\n',
  'fences with nothing after': '```\n\n\n',
  'fence in a list': '- a\n\n  ```js\n  x\n\n  y\n  ```\n- b\n\n      code\n\nafter',
  'loose and tight lists': '- a\n- b\n\n- c\n\n\n1. x\n2. y\n\n3. z\n\ntext\n* q\n+ r\n1) s\n',
  'ordered list after a paragraph of a digit': '1. a\n\n2. b\n\n10. c\n\n7\n\n8. d',
  'quotes with lazy lines': '> a\nb\n> - c\nd\n\n> e\n\n    code\n\n    more\ntext',
  tables: 'text\na | b\n--|:-:\n1 | 2\n3 | 4\n\n| x |\n|---|x\n\nc | d\n- | -\n5 | 6\nafter',
  'definitions before and after':
    '[a] and [b][c] and [d]\n\n> [d]: /quote\n\n[a]: http://a.org "T"\n[c]: <http://c.org>\n\n- [a]\n',
  'a definition whose title comes late': "para\n\n[foo]: http://x.org\n'title\nmore'\n\n[foo]\n",
  'a definition whose title never ends': "para\n\n[foo]: http://x.org\n'title\nmore\n\n[foo]\n",
  'definition that is redefined': '[a]\n\n[a]: http://one.org\n\n[a]: http://two.org\n\n[a]',
  'raw html': '<div>\n*a*\n\n</div>\n<script>alert(1)</script>\n\n<b>x</b>',
  formulas: 'a\n$$\nx^2\n$$\nb $y$ c\n\n\\[\nz\n\\]\n\n\\(w\\) and $$v$$\n\n$$ u $$\n\nis $$\nq\n$$\n',
  'formulas that never end': 'a\n$$\nx\n# h\n\nb\n\n\\[\ny\n\nc\n\n$$ $ costs\n- d\n\n$5 and $10\n\n$$\nend',
  'formula block with text after its end': '$$\n# a\n$$ b\n\n$$x$$ c\n\n\\[x\\] d\n',
  'quoted and listed formulas': '> $$\n> x\n> $$\n\n- $$\n  y\n  $$\n- \\[\n  z\n',
  'task lists': '- [ ] a\n- [x] b\n\n  [ ] no\n- [y] c\n',
  'line breaks of all kinds': 'a\r\nb\r\rc\n\r\n- d\r\n\r\n```\r\ne\r\n```\r\nf\r',
  'indented code and tabs': 'a\n\n\tcode\n\n\tmore\n  \n- x\n\n\ty\n\n    z\n',
  'headings that begin low': 'a\n\n> ### b\n\n#### c\n\n# d\n\ne\n---\n',
  'empty things': '\n\n   \n>\n\n-\n\n#\n\n```\n```\n\n***\n',
};

describe('a text that streams in', () => {
  for (const [name, text] of Object.entries(SAMPLES)) {
    it(`equals the whole text, cut anywhere: ${name}`, () => {
      const whole = renderMarkdown(text);
      expect(join(finishedBlocks(text))).toBe(whole);
      for (let cut = 0; cut <= text.length; cut++) {
        const stream = new MarkdownStream();
        stream.update(text.slice(0, cut), true);
        expect(join(stream.update(text, false)), `cut at ${cut}`).toBe(whole);
      }
      const stream = new MarkdownStream();
      for (let end = 0; end <= text.length; end++) stream.update(text.slice(0, end), true);
      expect(join(stream.update(text, false)), 'one character at a time').toBe(whole);
    });
  }

  it('equals the whole text for random documents in random pieces', () => {
    const random = generator(7);
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
    const lines = Object.values(SAMPLES).flatMap((text) => text.split('\n'));
    for (let round = 0; round < 400; round++) {
      const text = Array.from({ length: 2 + Math.floor(random() * 14) }, () => pick(lines)).join('\n');
      const stream = new MarkdownStream();
      for (let end = 0; end < text.length; end += 1 + Math.floor(random() * 9))
        stream.update(text.slice(0, end), true);
      expect(join(stream.update(text, false)), JSON.stringify(text)).toBe(renderMarkdown(text));
    }
  });

  it('keeps finished blocks as they are', () => {
    const stream = new MarkdownStream();
    const before = stream.update('# One\n\nTwo\n\nThree', true);
    const after = stream.update('# One\n\nTwo\n\nThree and more\n\nFour', true);
    expect(after.map((block) => block.source)).toEqual(['# One\n', 'Two\n', 'Three and more\n', 'Four']);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).toBe(before[1]);
    expect(after.map((block) => block.key)).toEqual([0, 7, 12, 28]);
  });

  it('draws a block again when a later line defines its link, and no other block', () => {
    const stream = new MarkdownStream();
    const before = stream.update('See [docs].\n\nPlain.\n\nMore.\n', true);
    expect(blockHtml(before[0]!)).not.toContain('<a');
    const after = stream.update('See [docs].\n\nPlain.\n\nMore.\n\n[docs]: https://x.org\n', true);
    expect(blockHtml(after[0]!)).toContain('href="https://x.org"');
    expect(after[1]).toBe(before[1]);
  });

  it('takes a half-open fence as code', () => {
    const [block] = new MarkdownStream().update('```py\nprint(1)\nx', true);
    expect(block).toMatchObject({ kind: 'code', info: 'py', code: 'print(1)\nx' });
  });

  it('is the same at every piece of a code that grows', () => {
    const text = 'a\n\n```py\nx\n\n`` `\n    ```\n  y\n```\nb\n\n~~~\n```\n~~~~\n';
    const shown = (blocks: readonly Block[]) =>
      blocks.map((block) => (block.kind === 'code' ? [block.key, block.info, block.code] : blockHtml(block)));
    const stream = new MarkdownStream();
    for (let end = 1; end <= text.length; end++) {
      const piece = text.slice(0, end);
      const anew = new MarkdownStream().update(piece, true);
      expect(shown(stream.update(piece, true)), JSON.stringify(piece)).toEqual(shown(anew));
    }
  });

  it('does not show the beginning of a closing fence as code', () => {
    const [block] = new MarkdownStream().update('```py\nprint(1)\n``', true);
    expect(block).toMatchObject({ kind: 'code', code: 'print(1)' });
  });

  it('starts anew when the text is another one', () => {
    const stream = new MarkdownStream();
    stream.update('# One\n\nTwo\n\nThree', true);
    expect(join(stream.update('Other', false))).toBe(renderMarkdown('Other'));
  });

  it('heals the open end while streaming only', () => {
    const html = (text: string, streaming: boolean) => join(new MarkdownStream().update(text, streaming));
    expect(html('a **b', true)).toContain('<strong>b</strong>');
    expect(html('a **b', false)).toContain('**b');
    expect(html('a `b', true)).toContain('<code class="md-code" dir="ltr">b</code>');
    expect(html('see [text](https://exa', true)).toBe('<p dir="auto">see text</p>\n');
    expect(html('x $$y^2', true)).toContain('class="katex"');
    expect(html('$$\n\\frac{a}{b', true)).toContain('class="katex"');
    expect(html('so \\(y^2', true)).toContain('class="katex"');
    expect(html('2 * 3 and snake_case', true)).toBe('<p dir="auto">2 * 3 and snake_case</p>\n');
  });

  it('holds back a line that is only a marker', () => {
    const html = (text: string) => join(new MarkdownStream().update(text, true));
    expect(html('para\n-')).toBe('<p dir="auto">para</p>\n');
    expect(html('para\n\n##')).toBe('<p dir="auto">para</p>\n');
    expect(html('para\n\n``')).toBe('<p dir="auto">para</p>\n');
    expect(html('- a\n- ')).toBe(html('- a\n'));
  });
});

/** A small repeatable random source. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}
