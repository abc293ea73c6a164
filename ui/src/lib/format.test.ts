import { expect, it } from 'vitest';
import { formatBytes, formatInteger, formatPercent, plural } from './format';

it('numbers have separators and sizes a unit that fits', () => {
  expect(formatInteger(12400)).toBe('12,400');
  expect(formatPercent(0.8)).toBe('80%');
  expect([0, 999, 98_000_000, 1_117_000_000].map(formatBytes)).toEqual([
    '0 byte',
    '999 byte',
    '98 MB',
    '1.1 GB',
  ]);
});

it('plurals follow the language', () => {
  const forms = { one: 'turn', other: 'turns' };
  expect([0, 1, 2].map((count) => plural(count, forms))).toEqual(['turns', 'turn', 'turns']);
});
