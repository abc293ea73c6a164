import { expect, it } from 'vitest';
import type { OwnerView } from '../bindings';
import { looks, looksOf, type Looks } from './looks';

const none: Looks = new Map();
const owner = (name: string, isActive = false): OwnerView => ({
  name,
  is_active: isActive,
  pages: 1,
  tokens: 1,
});
const seven = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

it('every name has a look of its own while there are enough, and what is left shares one', () => {
  const given = looksOf(
    none,
    seven.map((name) => owner(name)),
  );
  expect([...given.values()]).toEqual(looks);
  expect(looksOf(none, [owner('a'), owner('a', true)]).size).toBe(1);
});

it('a name keeps its look while others come and go', () => {
  const before = looksOf(none, [owner('a'), owner('b'), owner('c')]);
  const after = looksOf(before, [owner('d', true), owner('c'), owner('b')]);
  expect(after.get('b')).toBe('2');
  expect(after.get('c')).toBe('3');
  expect(after.get('d')).toBe('1');
});

it('the same names are the same object, so that nothing is drawn again', () => {
  const before = looksOf(none, [owner('a'), owner('b')]);
  expect(looksOf(before, [owner('b', true), owner('a')])).toBe(before);
});

it('what is active takes the look of what ended longest ago, and never one of what is active', () => {
  const before = looksOf(none, [owner('a', true), ...seven.slice(1, 6).map((name) => owner(name))]);
  const after = looksOf(before, [
    owner('a', true),
    owner('x', true),
    ...seven.slice(1, 6).map((name) => owner(name)),
  ]);
  expect(after.get('a')).toBe('1');
  expect(after.get('x')).toBe(before.get('f'));
  expect(after.get('f')).toBe('rest');
});

it('a look that comes free goes to one who had none', () => {
  const before = looksOf(
    none,
    seven.map((name) => owner(name)),
  );
  expect(before.get('g')).toBe('rest');
  expect(
    looksOf(
      before,
      seven.slice(1).map((name) => owner(name)),
    ).get('g'),
  ).toBe('1');
});
