// The themes as they are shipped, measured: every text on every background it is used on, and marks against theirs.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

// Read as a file, because style sheets are empty in tests; tests run from the folder of package.json.
const css = readFileSync('src/theme.css', 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');

/** The variables of the block that begins with a selector. */
function variables(selector: string): Map<string, string> {
  const at = css.indexOf(selector);
  expect(at, selector).toBeGreaterThanOrEqual(0);
  const begin = css.indexOf('{', at) + 1;
  const block = css.slice(begin, css.indexOf('}', begin));
  const pairs = [...block.matchAll(/--([\w-]+):\s*([^;]+);/g)];
  return new Map(pairs.map(([, name, value]) => [name ?? '', (value ?? '').trim().replace(/\s+/g, ' ')]));
}

/** The relative luminance of WCAG. */
function luminance(hex: string): number {
  const digits = /^#([0-9a-f]{6})$/.exec(hex)?.[1];
  if (digits === undefined) throw new Error(`${hex} is not a colour of six digits`);
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) => {
    const share = Number.parseInt(digits.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a: string, b: string): number {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

const light = variables(':root {');
const darkBySystem = variables(":root:not([data-theme='light'])");
const darkBySetting = variables(":root[data-theme='dark']");

const pages = ['bg', 'bg-raised', 'bg-sunken'];
const texts: [string, string[]][] = [
  ['text', [...pages, 'bg-hover', 'bubble', 'code-bg', 'selection', 'mark']],
  ['text-muted', [...pages, 'bg-hover', 'bubble', 'code-bg']],
  ['accent', [...pages, 'bg-hover']],
  ['accent-text', ['accent', 'accent-hover']],
  ['danger', [...pages, 'bg-hover']],
  ['warning', pages],
  ['success', pages],
  ...[...light.keys()]
    .filter((name) => name.startsWith('syntax-'))
    .map((name): [string, string[]] => [name, ['code-bg', 'bg']]),
];
const marks: [string, string[]][] = [
  ['focus', [...pages, 'bg-hover', 'bubble']],
  ...[...light.keys()]
    .filter((name) => name.startsWith('owner-'))
    .map((name): [string, string[]] => [name, ['bg']]),
];

describe.each([
  ['light', light],
  ['dark', darkBySystem],
])('the %s theme', (_, theme) => {
  const colour = (name: string): string => theme.get(name) ?? `(no --${name})`;

  it.each(texts)('%s can be read', (text, backgrounds) => {
    for (const background of backgrounds) {
      const ratio = contrast(colour(text), colour(background));
      expect(ratio, `--${text} on --${background}`).toBeGreaterThanOrEqual(4.5);
    }
  });

  it.each(marks)('%s can be seen', (mark, backgrounds) => {
    for (const background of backgrounds) {
      const ratio = contrast(colour(mark), colour(background));
      expect(ratio, `--${mark} on --${background}`).toBeGreaterThanOrEqual(3);
    }
  });
});

it('has all colours of the syntax', () => {
  const names = 'keyword string number comment function type variable punctuation constant tag attribute';
  for (const name of names.split(' ')) expect(light.has(`syntax-${name}`), name).toBe(true);
});

it('is the same dark theme by the system and by the setting', () => {
  expect([...darkBySetting]).toEqual([...darkBySystem]);
});

it('changes every colour with the theme', () => {
  const inBoth = [...light.keys()].filter((name) => !/^(radius|font-)/.test(name));
  expect([...darkBySystem.keys()]).toEqual(inBoth);
});
