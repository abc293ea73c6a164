import { describe, expect, it } from 'vitest';
import { mentionAt, withoutMention, withSign } from './mentions';

/** The mention where a bar stands in the text. */
const at = (marked: string) => mentionAt(marked.replace('|', ''), marked.indexOf('|'));

describe('what is being picked', () => {
  it.each([
    ['@|', 'document', ''],
    ['See @gar|', 'document', 'gar'],
    ['(@gar|den) x', 'document', 'gar'],
    ['a\n@b.pdf|', 'document', 'b.pdf'],
    ['/|', 'skill', ''],
    ['/tidy-n| this', 'skill', 'tidy-n'],
  ])('in %j', (text, kind, query) => {
    expect(at(text)).toMatchObject({ kind, query });
  });

  it.each(['|', 'a@b|', 'mail a@b.org|', '@a b|', 'x /tidy|', '/usr/bin|', ' /tidy|', `@${'a'.repeat(80)}|`])(
    'is nothing in %j',
    (text) => {
      expect(at(text)).toBeNull();
    },
  );
});

it('what was typed to pick something goes when it was picked', () => {
  expect(withoutMention('See @gar now', at('See @gar| now')!)).toBe('See now');
  expect(withoutMention('/tidy this', at('/tidy| this')!)).toBe('this');
});

it('a sign from the menu begins a word', () => {
  expect(withSign('See', 3, 'document')).toEqual({ text: 'See @', cursor: 5 });
  expect(withSign('See now', 4, 'document')).toEqual({ text: 'See @ now', cursor: 5 });
  expect(withSign('now', 3, 'skill')).toEqual({ text: '/now', cursor: 1 });
});
