import { expect, it } from 'vitest';
import { LruCache } from './cache';

it('drops what was not used for the longest time, and never holds more than it may', () => {
  const cache = new LruCache<string, number>(10);
  cache.set('a', 1, 4);
  cache.set('b', 2, 4);
  expect(cache.get('a')).toBe(1);
  cache.set('c', 3, 4);
  expect(cache.get('b')).toBeUndefined();
  expect([cache.get('a'), cache.get('c'), cache.size]).toEqual([1, 3, 8]);
});

it('counts an entry once when it is set again', () => {
  const cache = new LruCache<string, number>(10);
  cache.set('a', 1, 8);
  cache.set('a', 2, 3);
  expect([cache.get('a'), cache.size]).toEqual([2, 3]);
});

it('does not keep what is larger than all of it', () => {
  const cache = new LruCache<string, number>(10);
  cache.set('a', 1, 4);
  cache.set('b', 2, 11);
  expect([cache.get('a'), cache.get('b'), cache.size]).toEqual([1, undefined, 4]);
});
