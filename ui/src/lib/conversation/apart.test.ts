import { describe, expect, it } from 'vitest';
import { foldersApart } from './apart';

describe('files of one name', () => {
  it('need no folder where each has a name of its own, or all are one', () => {
    expect(foldersApart(['/a/x.md', '/a/y.md', '/a/x.md'])).toEqual(new Map());
  });

  it('are told apart by as much of their folders as that takes', () => {
    const paths = [
      '/home/ada/2024/notes/read.md',
      '/home/ada/2025/notes/read.md',
      '/home/ada/letters/read.md',
    ];
    expect(foldersApart([...paths, '/home/ada/other.md'])).toEqual(
      new Map([
        ['/home/ada/2024/notes/read.md', '2024/notes'],
        ['/home/ada/2025/notes/read.md', '2025/notes'],
        ['/home/ada/letters/read.md', 'letters'],
      ]),
    );
  });

  it('may be in a folder and in one below it, and on Windows', () => {
    expect(foldersApart(['/notes/a.md', '/b/notes/a.md'])).toEqual(
      new Map([
        ['/notes/a.md', 'notes'],
        ['/b/notes/a.md', 'b/notes'],
      ]),
    );
    expect(foldersApart(['C:\\x\\a.md', 'C:\\y\\a.md']).get('C:\\x\\a.md')).toBe('x');
  });
});
