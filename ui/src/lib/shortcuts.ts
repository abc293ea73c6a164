// Which keys do what. Mod is Cmd on a Mac and Ctrl elsewhere. A key pressed while an input method composes a character
// belongs to the input method and is never a shortcut.

/** What a shortcut of the whole window does. */
export type ShortcutId = 'newChat' | 'search' | 'sidebar' | 'panel' | 'settings' | 'rename' | 'notices';

/** A key, with Mod or without. `code` is its place on the keyboard, for layouts without Latin letters. */
export type Chord = { key: string; code: string; mod: boolean };

/** Every shortcut of the window, in the order in which the settings list them. */
export const shortcuts: Readonly<Record<ShortcutId, Chord>> = {
  newChat: { key: 'n', code: 'KeyN', mod: true },
  search: { key: 'k', code: 'KeyK', mod: true },
  sidebar: { key: 'b', code: 'KeyB', mod: true },
  panel: { key: 'j', code: 'KeyJ', mod: true },
  settings: { key: ',', code: 'Comma', mod: true },
  rename: { key: 'F2', code: 'F2', mod: false },
  notices: { key: 'F6', code: 'F6', mod: false },
};

type Key = Pick<
  KeyboardEvent,
  'key' | 'code' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey' | 'isComposing' | 'keyCode'
>;

/** Whether an input method is composing; WebKit says so by the key code alone on the key that ends it. */
export const isComposing = (event: Pick<KeyboardEvent, 'isComposing' | 'keyCode'>): boolean =>
  event.isComposing || event.keyCode === 229;

/** The shortcut that a key press means, if any. */
export function shortcutOf(event: Key, isMac: boolean): ShortcutId | null {
  if (isComposing(event) || event.altKey || event.shiftKey) return null;
  const mod = isMac ? event.metaKey : event.ctrlKey;
  const other = isMac ? event.ctrlKey : event.metaKey;
  if (other) return null;
  for (const id of Object.keys(shortcuts) as ShortcutId[]) {
    const chord = shortcuts[id];
    if (chord.mod === mod && isKey(event, chord)) return id;
  }
  return null;
}

/** How a person reads the shortcut: "Ctrl+N" or "⌘N". */
export function chordText({ key, mod }: Chord, isMac: boolean): string {
  const name = key.length === 1 ? key.toUpperCase() : key;
  if (!mod) return name;
  return isMac ? `⌘${name}` : `Ctrl+${name}`;
}

/** The shortcut as `aria-keyshortcuts` takes it. */
export function ariaChord({ key, mod }: Chord, isMac: boolean): string {
  const name = key.length === 1 ? key.toUpperCase() : key;
  return mod ? `${isMac ? 'Meta' : 'Control'}+${name}` : name;
}

function isKey(event: Key, chord: Chord): boolean {
  // A layout that has Latin letters says which one was meant; others are read by the key's place.
  const isLatin = /^[\x20-\x7e]$|^F\d+$/.test(event.key);
  return isLatin ? event.key.toLowerCase() === chord.key.toLowerCase() : event.code === chord.code;
}
