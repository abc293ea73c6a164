// Which language the window speaks. It is decided once, when the page's modules are loaded, for the catalogue is made of
// constants; another choice is remembered and the page loaded anew.
import type { Language } from './bindings';

/** A language of the catalogue. */
export type Spoken = Exclude<Language, 'system'>;

const KEY = 'reprise.language';
/** Says, for as long as the window lives, which language the page was loaded anew for. */
const RELOADED = 'reprise.language.reloaded';
const codes = { english: 'en', german: 'de' } satisfies Record<Spoken, string>;

/** The language that a choice means on this machine. */
export function spokenFor(choice: Language): Spoken {
  if (choice !== 'system') return choice;
  return /^de\b/i.test(navigator.language) ? 'german' : 'english';
}

/** The language of this page. */
export const language: Spoken = recalled() ?? spokenFor('system');

/** Its code, as `lang` and Intl take it. */
export const locale = codes[language];

/** Of two catalogues the one in the page's language. English is the one that says what there is to say. */
export const inLanguage = <Words>(english: Words, german: Words): Words =>
  language === 'german' ? german : english;

/** Tells the browser and screen readers what language this is. */
export function showLanguage(): void {
  document.documentElement.lang = locale;
}

/** Remembers a choice; whether the page has to be loaded anew to speak it. */
export function rememberLanguage(choice: Language): boolean {
  const wanted = spokenFor(choice);
  try {
    localStorage.setItem(KEY, wanted);
  } catch {
    // Without a memory the page would come back as it is.
    return false;
  }
  return wanted !== language;
}

/** Remembers what the program says was chosen; whether to load the page anew, which is never told twice for the same. */
export function adoptLanguage(choice: Language): boolean {
  if (!rememberLanguage(choice)) {
    forgetReload();
    return false;
  }
  const wanted = spokenFor(choice);
  if (sessionStorage.getItem(RELOADED) === wanted) return false;
  sessionStorage.setItem(RELOADED, wanted);
  return true;
}

function forgetReload(): void {
  try {
    sessionStorage.removeItem(RELOADED);
  } catch {
    // Nothing was remembered either.
  }
}

function recalled(): Spoken | null {
  try {
    const known = localStorage.getItem(KEY);
    return known === 'english' || known === 'german' ? known : null;
  } catch {
    return null;
  }
}
