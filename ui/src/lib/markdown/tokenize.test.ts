import { describe, expect, it } from 'vitest';
import { languageIds, languageName, languageOf } from './languages';
import { grammarIds, LineTokenizer } from './tokenize';

describe('coloured code', () => {
  it('has the text of the code and kinds of its parts', async () => {
    const [line] = await new LineTokenizer('rust').next(['let s: &str = "a"; // note']);
    expect(line!.map(([text]) => text).join('')).toBe('let s: &str = "a"; // note');
    expect(line).toContainEqual(['let ', 'keyword']);
    expect(line).toContainEqual(['"a"', 'string']);
    expect(line).toContainEqual(['// note', 'comment']);
  });

  it('goes on where the lines before ended', async () => {
    const tokenizer = new LineTokenizer('css');
    await tokenizer.next(['/* a comment']);
    const lines = await tokenizer.next(['that goes on', '', '*/ a {}']);
    expect(lines.slice(0, 2)).toEqual([[['that goes on', 'comment']], []]);
    expect(lines[2]).toContainEqual(['a ', 'tag']);
  });

  it('leaves a line of a thousand words of data plain', async () => {
    const data = `x = ${'1'.repeat(5_000)}`;
    expect(await new LineTokenizer('python').next([data])).toEqual([[[data, null]]]);
  });

  it('has a grammar for every language that it names', () => {
    expect([...grammarIds].sort()).toEqual([...languageIds].sort());
  });
});

describe('languages', () => {
  it('are found by the names people write', () => {
    expect(languageOf('ts')?.name).toBe('TypeScript');
    expect(languageOf('C++')?.id).toBe('cpp');
    expect(languageOf('Bash {1,3} title="x"')?.id).toBe('shellscript');
    expect(languageOf('python:main.py')?.id).toBe('python');
    expect(languageOf('brainfuck')).toBeNull();
    expect(languageOf('')).toBeNull();
    expect(languageOf('constructor')).toBeNull();
  });

  it('that are unknown keep the name they were given', () => {
    expect(languageName('brainfuck')).toBe('brainfuck');
    expect(languageName('x'.repeat(100))).toHaveLength(24);
  });
});
