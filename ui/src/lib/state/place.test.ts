import { expect, it } from 'vitest';
import { hashOf, placeOf, type Place } from './place';

it.each<[string, Place]>([
  ['', { view: 'chat', chat: null }],
  ['#chat-12', { view: 'chat', chat: 12 }],
  ['#documents', { view: 'documents', chat: null }],
  ['#skills,chat-3', { view: 'skills', chat: 3 }],
])('the address %j is a place, and the place that address', (hash, place) => {
  expect(placeOf(hash)).toEqual(place);
  expect(hashOf(place)).toBe(hash);
});

it.each(['#nowhere', '#chat-', '#chat-x', '#constructor,chat-1x'])('%j is a new chat', (hash) => {
  expect(placeOf(hash)).toEqual({ view: 'chat', chat: null });
});
