import { describe, expect, it } from 'vitest';
import { shownPath } from './paths';

describe('the path of a document', () => {
  it.each([
    [
      '/home/someone/.local/share/reprise/attached/0f5a/handbook.md',
      true,
      'handbook.md, a copy of a dropped file',
    ],
    [
      'C:\\Users\\someone\\reprise\\attached\\0f5a\\hand book.md',
      true,
      'hand book.md, a copy of a dropped file',
    ],
    ['/home/someone/attached/0f5a/handbook.md', false, '/home/someone/attached/0f5a/handbook.md'],
  ])('is shown, or the name of a copy: %s', (path, isCopy, shown) => {
    expect(shownPath({ path, isCopy })).toBe(shown);
  });
});
