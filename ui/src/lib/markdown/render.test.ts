import { describe, expect, it } from 'vitest';
import { blockHtml, finishedBlocks, MarkdownStream } from './blocks';
import { renderMarkdown } from './render';

/** The rendered markdown as elements. */
function dom(text: string): HTMLElement {
  const root = document.createElement('div');
  root.innerHTML = renderMarkdown(text);
  return root;
}

describe('what an answer must never do to the page', () => {
  it('shows raw HTML as text', () => {
    const root = dom(
      '<img src=x onerror=alert(1)> a <script>alert(1)</script>\n\n<div onclick="x()">b</div>\n\n<!-- c -->',
    );
    expect(root.querySelector('img, script, div, [onclick]')).toBeNull();
    expect(root.textContent).toContain('<script>alert(1)</script>');
    expect(root.textContent).toContain('<div onclick="x()">b</div>');
    expect(root.textContent).toContain('<!-- c -->');
  });

  it.each([
    '[a](javascript:alert(1))',
    '[a](JaVaScRiPt:alert(1))',
    '[a](<java\nscript:alert(1)>)',
    '[a](&#106;avascript:alert(1))',
    '[a](data:text/html,x)',
    '[a](file:///etc/passwd)',
    '[a](vbscript:x)',
    '[a](tauri://localhost)',
    '[a](asset://x)',
    '[a](docs/guide.md)',
    '[a](//evil.example)',
    '[a]\n\n[a]: javascript:alert(1)',
    '<javascript:alert(1)>',
    '![a](javascript:alert(1))',
  ])('makes no link of %j', (text) => {
    const root = dom(text);
    expect(root.querySelector('a, img, [href], [src]')).toBeNull();
    expect(root.textContent).toContain('a');
  });

  it('shows the text of what is no link, without its marks', () => {
    expect(dom('[a](docs/guide.md) [b](javascript:x)').textContent).toBe('a b\n');
  });

  it('links web and mail addresses, and tells nobody where from', () => {
    const root = dom('[a](https://a.org "T") <http://b.org> https://c.org/x_y [m](mailto:x@y.org)');
    const links = [...root.querySelectorAll('a')];
    expect(links.map((link) => link.getAttribute('href'))).toEqual([
      'https://a.org',
      'http://b.org',
      'https://c.org/x_y',
      'mailto:x@y.org',
    ]);
    for (const link of links) {
      expect(link).toHaveAttribute('rel', 'noopener noreferrer nofollow');
      expect(link).not.toHaveAttribute('target');
    }
    expect(links[0]).toHaveAttribute('title', 'T');
  });

  it('takes file names for no web sites', () => {
    expect(dom('See README.md, main.rs and a.b@c.org.').querySelector('a')).toBeNull();
  });

  it('loads no image: it is a link with its description', () => {
    const root = dom(
      '![a *cat*](https://a.org/cat.png) ![](https://a.org/b.png) [![in](https://a.org/c.png)](https://d.org)',
    );
    expect(root.querySelector('img, [src]')).toBeNull();
    const links = [...root.querySelectorAll('a')];
    expect(links.map((link) => link.textContent)).toEqual(['Image: a cat', 'Image', 'Image: in']);
    expect(links[2]).toHaveAttribute('href', 'https://d.org');
    expect(dom('![x](data:image/png;base64,AAAA)').textContent?.trim()).toBe('Image: x');
  });

  it('does not do what a formula asks for', () => {
    const root = dom(
      '$\\href{javascript:alert(1)}{x}$ $\\includegraphics{https://a.org/x.png}$ $\\htmlStyle{position:fixed}{x}$',
    );
    expect(root.querySelector('a, img')).toBeNull();
    expect(root.innerHTML).not.toContain('fixed"');
  });
});

describe('text', () => {
  it('emphasises next to Chinese, Japanese and Korean marks', () => {
    expect(dom('**中文。**后').querySelector('strong')?.textContent).toBe('中文。');
    expect(dom('これは**「強調」**です').querySelector('strong')?.textContent).toBe('「強調」');
    expect(dom('**한국어(괄호)**를').querySelector('strong')?.textContent).toBe('한국어(괄호)');
  });

  it('finds its direction block by block, and keeps code left to right', () => {
    const root = dom('# a\n\nb `c`\n\n> d\n\n- e\n\n  f\n\n| g |\n|---|\n| h |\n\n```\ni\n```\n');
    for (const tag of ['h3', 'p', 'blockquote', 'li', 'th', 'td']) {
      expect(root.querySelector(tag), tag).toHaveAttribute('dir', 'auto');
    }
    // Its own direction would keep it out of the item's.
    expect(root.querySelector('blockquote > p')).not.toHaveAttribute('dir');
    expect(root.querySelector('li > p')).not.toHaveAttribute('dir');
    expect(root.querySelector('li > p + p')).toHaveAttribute('dir', 'auto');
    for (const code of root.querySelectorAll('pre, p > code')) expect(code).toHaveAttribute('dir', 'ltr');
  });

  it('puts headings below those of the page', () => {
    const root = dom('# 1\n## 2\n### 3\n#### 4\n##### 5\n###### 6\n\nsetext\n===');
    const tags = [...root.querySelectorAll('h1, h2, h3, h4, h5, h6')].map((heading) => heading.tagName);
    expect(tags).toEqual(['H3', 'H4', 'H5', 'H6', 'H6', 'H6', 'H3']);
  });

  it('begins with the same heading wherever an answer begins, and skips none', () => {
    const tags = (text: string) =>
      [...dom(text).querySelectorAll('h1, h2, h3, h4, h5, h6')].map(({ tagName }) => tagName);
    expect(tags('### a\n\n#### b\n\n### c')).toEqual(['H3', 'H4', 'H3']);
    expect(tags('## a\n\n# b')).toEqual(['H3', 'H3']);
  });

  it('shows tasks as checkboxes that cannot be changed and have a name', () => {
    const root = dom('- [ ] open\n- [x] **done**\n- [z] none\n- [ ]none');
    const boxes = [...root.querySelectorAll('input')];
    expect(boxes.map((box) => [box.type, box.disabled, box.checked, box.getAttribute('aria-label')])).toEqual(
      [
        ['checkbox', true, false, 'Not done'],
        ['checkbox', true, true, 'Done'],
      ],
    );
    expect(root.querySelectorAll('li')[1]?.textContent?.trim()).toBe('done');
  });

  it('puts tables into a place that can scroll and has a name', () => {
    const place = dom('| a | b |\n|---|--:|\n| 1 | 2 |').querySelector('.md-scroll');
    expect(place).toHaveAttribute('data-label', 'Table');
    expect(place?.querySelectorAll('table td')).toHaveLength(2);
  });

  it('keeps typographic marks as they were written', () => {
    expect(dom('"a" -- (c) ...').textContent).toBe('"a" -- (c) ...\n');
  });

  it('gives nested code a name, a copy button and its language', () => {
    const root = dom('- a\n\n  ```c++ title=x\n  <b>\n  ```\n');
    expect(root.querySelector('.code-lang')?.textContent).toBe('C++');
    expect(root.querySelector('button')).toHaveAttribute('aria-label', 'Copy C++ code');
    expect(root.querySelector('pre')).toHaveAttribute('data-label', 'Code, C++');
    expect(root.querySelector('code')?.textContent).toBe('<b>\n');
  });
});

describe('formulas', () => {
  const formulas = (text: string) =>
    [...dom(text).querySelectorAll('annotation')].map((annotation) => annotation.textContent);

  it('reads all four delimiters', () => {
    expect(formulas('a $x^2$ b')).toEqual(['x^2']);
    expect(formulas('a \\(x^2\\) b')).toEqual(['x^2']);
    expect(formulas('a $$x^2$$ b')).toEqual(['x^2']);
    expect(formulas('a \\[x^2\\] b')).toEqual(['x^2']);
    expect(formulas('$$\nx^2\n$$')).toEqual(['x^2']);
    expect(formulas('\\[\n  x^2 + y\n\\].')).toEqual(['x^2 + y\n.']);
    expect(formulas('text\n$$\nx\n$$\ntext')).toEqual(['x']);
    expect(formulas('- a\n  $$\n  x\n  $$\n\n> \\[\n> y\n> \\]')).toEqual(['x', 'y']);
    expect(formulas('the $n$th and $x$-axis, ($y$), $5$')).toEqual(['n', 'x', 'y', '5']);
  });

  it('ends a paragraph for a formula, but not in the middle of one', () => {
    expect(formulas('It is $$\nx\n$$')).toEqual(['x']);
    expect(formulas('It is\n$$x$$\nso')).toEqual(['x']);
    expect(dom('a\n$$ b\nc').querySelectorAll('p')).toHaveLength(1);
  });

  it.each([
    'It costs $5 and $10.',
    'From $5 to $10, or 15$.',
    '$5, $6 or $7',
    '$5 for one and 10$ for two',
    'US$5 and US$10',
    '$10/$20',
    '$1,000.50 - $2,000',
    'a $ b $ c',
    'echo $HOME/$USER and $PATH:$HOME',
    '\\$x\\$',
    '`$x$` and `\\(y\\)`',
    'escaped \\[1\\] and \\[see below\\]',
    'a $$ b',
    '$$$$',
    '\\\\(x)',
  ])('finds none in %j', (text) => {
    expect(formulas(text)).toEqual([]);
  });

  it('shows the source of what is no formula', () => {
    const root = dom('a $\\frac{1$ b\n\n$$\n\\nonsense{\n$$');
    expect(root.querySelector('.katex')).toBeNull();
    expect([...root.querySelectorAll('.math-source')].map((code) => code.textContent)).toEqual([
      '$\\frac{1$',
      '$$\n\\nonsense{\n$$',
    ]);
  });

  it('shows a block without its end as the text that it is', () => {
    expect(dom('$$\nx\n\nb').textContent).toBe('$$\nx\nb\n');
  });
});

describe('hostile text', () => {
  const N = 100_000;
  const deep = (unit: string) => unit.repeat(10_000);
  // Each of these once took minutes, or the stack, in some parser. Here they must come to an end and lose nothing.
  it.each<[string, string, string]>([
    ['a paragraph without end', 'word '.repeat(N / 5), 'word word'],
    ['a word without end', 'a'.repeat(N), 'aaaa'],
    ['quotes in quotes', deep('> ') + 'inside', 'inside'],
    ['lists in lists', deep('- ') + 'inside', 'inside'],
    ['both', deep('> 1. ') + 'inside', 'inside'],
    ['brackets', deep('['), '[[['],
    ['images', deep('!['), '![!['],
    ['stars', deep('**a '), '**a'],
    ['emphasis in emphasis', deep('*_'), '_'],
    ['backticks of every length', Array.from({ length: 400 }, (_, n) => '`'.repeat(n + 1)).join('a'), 'a'],
    ['dollars', deep('$a '), '$a'],
    ['formula openers', deep('\\(a'), '(a'],
    ['formula block openers', deep('\\[\n'), '['],
    ['dollar lines', deep('a\n$$ b\n'), 'b'],
    ['groups in groups', `$${'{'.repeat(4000)}$`, '{{{'],
    ['macros that multiply', '$$\\def\\a{\\b\\b}\\def\\b{\\a\\a}\\a$$', '\\a'],
    ['addresses', deep('http://'), 'http'],
    ['table cells', `${'|a'.repeat(3000)}\n${'|-'.repeat(3000)}\n${'|b\n'.repeat(1000)}`, 'b'],
    ['definitions', deep('[a]: '), 'a'],
  ])('comes to an end: %s', (_name, text, expected) => {
    const html = finishedBlocks(text).map(blockHtml).join('');
    expect(html).toContain(expected);
    const stream = new MarkdownStream();
    stream.update(text.slice(0, -1), true).forEach(blockHtml);
    expect(stream.update(text, false).map(blockHtml).join('')).toBe(html);
  });
});
