import { describe, expect, it } from 'vitest';
import { ariaChord, chordText, shortcutOf, shortcuts } from './shortcuts';

type Press = Parameters<typeof shortcutOf>[0];
const press = (change: Partial<Press>): Press => ({
  key: 'n',
  code: 'KeyN',
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  isComposing: false,
  keyCode: 78,
  ...change,
});

describe('shortcuts', () => {
  it.each([
    ['n', 'KeyN', 'newChat'],
    ['k', 'KeyK', 'search'],
    ['b', 'KeyB', 'sidebar'],
    ['j', 'KeyJ', 'panel'],
    [',', 'Comma', 'settings'],
  ])('Mod+%s', (key, code, id) => {
    expect(shortcutOf(press({ key, code, ctrlKey: true }), false)).toBe(id);
    expect(shortcutOf(press({ key, code, metaKey: true }), true)).toBe(id);
  });

  it('take the modifier of the machine and no other', () => {
    expect(shortcutOf(press({ metaKey: true }), false)).toBeNull();
    expect(shortcutOf(press({ ctrlKey: true }), true)).toBeNull();
    expect(shortcutOf(press({}), false)).toBeNull();
    expect(shortcutOf(press({ ctrlKey: true, altKey: true }), false)).toBeNull();
    expect(shortcutOf(press({ ctrlKey: true, shiftKey: true }), false)).toBeNull();
    expect(shortcutOf(press({ key: 'F2', code: 'F2', ctrlKey: true }), false)).toBeNull();
  });

  it('are not for an input method that composes', () => {
    expect(shortcutOf(press({ ctrlKey: true, isComposing: true }), false)).toBeNull();
    expect(shortcutOf(press({ ctrlKey: true, keyCode: 229 }), false)).toBeNull();
  });

  it('work with capitals locked and on layouts without Latin letters', () => {
    expect(shortcutOf(press({ key: 'N', ctrlKey: true }), false)).toBe('newChat');
    expect(shortcutOf(press({ key: 'т', code: 'KeyN', ctrlKey: true }), false)).toBe('newChat');
  });

  it('follow the letter, not its place, on Latin layouts', () => {
    // Dvorak: the letter n is where l is on a US keyboard, and the key KeyN writes b.
    expect(shortcutOf(press({ key: 'n', code: 'KeyL', ctrlKey: true }), false)).toBe('newChat');
    expect(shortcutOf(press({ key: 'b', code: 'KeyN', ctrlKey: true }), false)).toBe('sidebar');
  });

  it('are written as the machine writes them', () => {
    expect(chordText(shortcuts.newChat, false)).toBe('Ctrl+N');
    expect(chordText(shortcuts.newChat, true)).toBe('⌘N');
    expect(chordText(shortcuts.rename, true)).toBe('F2');
    expect(ariaChord(shortcuts.settings, false)).toBe('Control+,');
    expect(ariaChord(shortcuts.settings, true)).toBe('Meta+,');
  });
});
