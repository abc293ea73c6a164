// The German catalogue of the program's sentences, held to what the program's sources say.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inGerman, told } from './messages';
import { causes } from './strings.causes.de';
import { composed } from './strings.composed.de';
import { germanErrors } from './strings.errors.de';

const ROOT = join(import.meta.dirname, '../../..');
/** What the window links; the terminal's own words never reach it. */
const SOURCES = [
  'engine/kernels/src',
  'engine/model/src',
  'engine/kv/src',
  'engine/src',
  'engine/library/src',
  'src-tauri/src',
];

const TEXT = String.raw`"((?:[^"\\]|\\[\s\S])*)"`;
/** What makes sentences of the texts in it that a person reads. */
const MAKERS = [
  String.raw`#\[error\(`,
  String.raw`Failure::new\(`,
  String.raw`\bfault\(`,
  String.raw`\b(?:refused|Refused|Import|refuse|NoName)\(`,
  String.raw`\b(?:notices|troubles|notes|warnings)\s*\.push\(`,
  String.raw`\.note\(`,
  String.raw`Notice \{\s*message:`,
  String.raw`\blet warning =`,
];
const MAKER = new RegExp(String.raw`(?:${MAKERS.join('|')})\s*(?:format!\(\s*)?${TEXT}`, 'g');

/** A text of the sources or of the catalogue, with nothing said of what stands in its places. */
const plain = (text: string): string =>
  text
    .replace(/\\\n\s*/g, '')
    .replace(/\\n/g, '\n')
    .replace(/\\(["'\\])/g, '$1')
    .replace(/\{\{|\}\}|\{[^{}]*\}/g, (found) => (found === '{{' ? '{' : found === '}}' ? '}' : '{}'));

/** The sources without their tests and comments. */
function sources(): string[] {
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.rs') && !/(^|[/\\])tests([/\\.]|$)/.test(file))
      .map((file) => readFileSync(join(ROOT, folder, file), 'utf8')),
  );
  return files.map((text) =>
    (text.split('\n#[cfg(test)]\nmod tests {')[0] ?? '')
      .replace(/^\s*\/\/.*$/gm, '')
      // What would be taken for the beginning or the end of a text.
      .replace(/'\\?"'|r(#+)"[\s\S]*?"\1/g, ''),
  );
}

const all = sources();
const found = (pattern: RegExp): Set<string> =>
  new Set(all.flatMap((text) => Array.from(text.matchAll(pattern), ([, said = '']) => plain(said))));

const said = found(MAKER);
const everything = found(new RegExp(TEXT, 'g'));
const sentences = { ...germanErrors, ...causes };
const catalogue = { ...sentences, ...composed };

/** What is said and has no German, and why it needs none. */
const WITHOUT_GERMAN = new Map([
  ['{}', 'hands on another sentence'],
  ['{}{}{}', 'is put together out of pieces; `composed` has what comes of them'],
]);

describe('the German of what the program says', () => {
  it('has every sentence of the sources', () => {
    expect(said.size).toBeGreaterThan(200);
    const known = new Set(Object.keys(catalogue).map(plain));
    const missing = [...said].filter((text) => !known.has(text) && !WITHOUT_GERMAN.has(text));
    expect(missing).toEqual([]);
  });

  it('has every note on a model that is known by name', () => {
    const notes = readFileSync(join(ROOT, 'models/catalogue.toml'), 'utf8').matchAll(/^note = "(.*)"$/gm);
    const missing = Array.from(notes, ([, note = '']) => note).filter((note) => inGerman(note) === note);
    expect(missing).toEqual([]);
  });

  it('has none that the sources do not say any more', () => {
    expect(Object.keys(sentences).filter((english) => !everything.has(plain(english)))).toEqual([]);
    expect([...WITHOUT_GERMAN.keys()].filter((text) => !said.has(text))).toEqual([]);
  });

  it('has each sentence once', () => {
    const parts = [germanErrors, causes, composed].flatMap((part) => Object.keys(part).map(plain));
    expect(parts.filter((english, index) => parts.indexOf(english) !== index)).toEqual([]);
  });

  it('has places for the same values in both languages', () => {
    const places = (text: string): string[] => [...new Set(text.match(/\{[^{}]*\}/g))].sort();
    for (const [english, german] of Object.entries(catalogue))
      expect(places(german), english).toEqual(places(english));
  });

  it('has German quotes', () => {
    for (const german of Object.values(catalogue)) expect(/["”]|\.\.\./.test(german), german).toBe(false);
  });
});

it.each([
  ['this document is not in the index (any more)', 'Dieses Dokument ist nicht (mehr) im Verzeichnis'],
  [
    'there is no chat with the number 7; it may have been deleted',
    'Ein Chat mit der Nummer 7 ist nicht da; vielleicht inzwischen gelöscht',
  ],
  // What the system said, with its number and without.
  ['cannot lock ~/a b: Permission denied', '~/a b: Sperren ging nicht: keine Berechtigung'],
  [
    'cannot make the folder ~/a: File exists; check that the folder is there and may be written',
    'Der Ordner ~/a kann nicht angelegt werden: die Datei gibt es schon; prüfen Sie, ob der Ordner darüber da ist und geschrieben werden darf',
  ],
  ['cannot read ~/a: b.pdf: Permission denied', '~/a kann nicht gelesen werden: b.pdf: keine Berechtigung'],
  [
    '/m.gguf: cannot be read: No such file or directory (os error 2)',
    '/m.gguf kann nicht gelesen werden: Datei oder Ordner gibt es nicht (Systemfehler 2)',
  ],
  // Causes within causes.
  [
    'a.docx cannot be asked about: this is a Word document, but it is broken or cut short (its part word/document.xml is missing); open it in its own program and save it again',
    'Nach a.docx kann nicht gefragt werden: Das ist ein Word-Dokument, aber kaputt oder abgeschnitten (sein Teil word/document.xml fehlt); öffnen Sie die Datei in ihrem eigenen Programm, und speichern Sie sie noch einmal',
  ],
  [
    'memory is short: the machine has 1.5 GB free, and 800 MB stay free for other programs; close other programs, choose a smaller model, or raise the limit, and try again',
    'Der Speicher ist knapp: auf diesem Gerät sind 1,5 GB frei, und 800 MB bleiben für andere Programme frei; schließen Sie andere Programme, wählen Sie ein kleineres Modell, oder heben Sie die Grenze an, und versuchen Sie es noch einmal',
  ],
  [
    "cannot write /s/1.chunk: No space left on device (os error 28); free space on the disk or lower the store's budget",
    '/s/1.chunk kann nicht geschrieben werden: auf der Platte ist kein Platz mehr (Systemfehler 28); schaffen Sie Platz auf der Platte, oder lassen Sie weniger behalten',
  ],
  [
    'the window must be from 256 to what the model was trained for',
    'Fenster: Erlaubt ist nur von 256 bis zu dem, wofür das Modell trainiert wurde',
  ],
  [
    'The skill tidy wants to run: a.py "x y"\nIn ~/skills. It cannot use the network or change your files. It can read what you can read and leave programs running behind it.',
    'Der Skill tidy möchte ausführen: a.py "x y"\nIn ~/skills. Es kann nicht ins Netz gehen oder Ihre Dateien ändern. Es kann lesen, was Sie lesen können, und Programme laufen lassen.',
  ],
  [
    'the skill chat is disabled; enable it with: reprise skill enable chat',
    'Der Skill chat ist ausgeschaltet; einschalten lässt er sich mit: reprise skill enable chat',
  ],
  [
    'text recognised in pictures (OCR) on pages 1, 2; letters may be wrong',
    'in Bildern erkannter Text (OCR): Seiten 1, 2; Buchstaben können falsch sein',
  ],
])('%s', (english, german) => {
  expect(inGerman(english)).toBe(german);
});

it('what is not known stays as it is, also inside of what is', () => {
  expect(inGerman('Failed to fetch dynamically imported module')).toBe(
    'Failed to fetch dynamically imported module',
  );
  expect(inGerman('cannot read a.txt: the moon is full')).toBe(
    'a.txt kann nicht gelesen werden: the moon is full',
  );
  expect(inGerman('')).toBe('');
});

it('a long message that nearly fits takes no time', () => {
  const begun = performance.now();
  const long = `${'x: " is  of tokens (and ; '.repeat(350)}!`;
  expect(inGerman(long)).toContain('x: ');
  expect(inGerman('a'.repeat(1_000_000))).toHaveLength(1_000_000);
  expect(performance.now() - begun).toBeLessThan(1000);
});

it('a page in English shows them as they are', () => {
  expect(told('this document is not in the index (any more)')).toBe(
    'this document is not in the index (any more)',
  );
});
