// The theme on <html>. The last choice is kept by the web view as well, so that the window does not flash in the other
// theme before the program has told its settings.
import type { Theme } from './bindings';

const KEY = 'theme';

/** Shows a theme, from now on and at once at the next start. */
export function showTheme(theme: Theme): void {
  set(theme);
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the first moment follows the system.
  }
}

/** Shows the theme of the last time. */
export function recallTheme(): void {
  try {
    set(localStorage.getItem(KEY));
  } catch {
    set(null);
  }
}

function set(theme: string | null): void {
  const { dataset } = document.documentElement;
  if (theme === 'light' || theme === 'dark') dataset.theme = theme;
  else delete dataset.theme;
}
