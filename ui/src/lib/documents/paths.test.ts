import { describe, expect, it } from 'vitest';
import { nameOfCopy } from './paths';

const FINGERPRINT = '0f5af1c8a2218b7f3442a4f886a82dc0';

describe('the path of a document', () => {
  it.each([
    [`/home/someone/.local/share/reprise/attached/${FINGERPRINT}/handbook.md`, 'handbook.md'],
    [`C:\\Users\\someone\\reprise\\attached\\${FINGERPRINT}\\hand book.md`, 'hand book.md'],
    ['/home/someone/attached/handbook.md', null],
    [`/home/someone/attached/${FINGERPRINT}`, null],
    [`/home/someone/attached/${FINGERPRINT}/in/handbook.md`, null],
  ])('is that of a copy, or not: %s', (path, name) => {
    expect(nameOfCopy(path)).toBe(name);
  });
});
