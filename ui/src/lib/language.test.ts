import { afterEach, beforeEach, expect, it, vi } from 'vitest';

/** The module as a page that is loaded now has it. */
async function load(system = 'en-GB', remembered: string | null = null) {
  vi.resetModules();
  vi.spyOn(navigator, 'language', 'get').mockReturnValue(system);
  if (remembered !== null) localStorage.setItem('reprise.language', remembered);
  return import('./language');
}

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});
afterEach(() => vi.restoreAllMocks());

it.each([
  ['en-GB', null, 'english'],
  ['de', null, 'german'],
  ['de-AT', null, 'german'],
  ['fr-FR', null, 'english'],
  ['de-DE', 'english', 'english'],
  ['en-US', 'german', 'german'],
  ['en-US', 'klingon', 'english'],
])('a system in %s with %s remembered speaks %s', async (system, remembered, spoken) => {
  expect((await load(system, remembered)).language).toBe(spoken);
});

it('a choice that is another one is remembered, and the page loaded anew once', async () => {
  const before = await load();
  expect(before.adoptLanguage('german')).toBe(true);
  const after = await load();
  expect(after.language).toBe('german');
  expect(after.adoptLanguage('german')).toBe(false);
});

it('a page that cannot remember is not loaded again and again', async () => {
  const { adoptLanguage } = await load();
  expect(adoptLanguage('german')).toBe(true);
  // It came back and speaks English still.
  localStorage.clear();
  const again = await load();
  expect(again.adoptLanguage('german')).toBe(false);
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new Error('no storage');
  });
  expect((await load()).adoptLanguage('german')).toBe(false);
});

it('“System” is what the system speaks', async () => {
  const { adoptLanguage, rememberLanguage, spokenFor } = await load('de-DE', 'english');
  expect(spokenFor('system')).toBe('german');
  expect(rememberLanguage('english')).toBe(false);
  expect(adoptLanguage('system')).toBe(true);
});

it('numbers and the page’s own mark follow the language', async () => {
  const { showLanguage } = await load('de-DE');
  const { formatInteger } = await import('./format');
  const { strings } = await import('./strings');
  showLanguage();
  expect(document.documentElement.lang).toBe('de');
  expect(formatInteger(12_400)).toBe('12.400');
  expect(strings.chats.newChat).toBe('Neuer Chat');
});
