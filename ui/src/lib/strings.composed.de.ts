// What the program puts together out of pieces, and what the system and the database say in it: sentences that stand nowhere whole
// in the program. In German, by what they are in English.
import type { Sentences } from './strings.errors.de';

/** Remarks on the pages of a PDF, and where a passage stands. */
const places: Sentences = {
  '{place} could not be read and is left out': '{place}: nicht zu lesen und ausgelassen',
  'no text on {place}': 'kein Text: {place}',
  '{place} is a picture too large to be read': '{place}: ein Bild, das zum Lesen zu groß ist',
  'pictures whose text is not read on {place}; get the models for that with: {command}':
    'Bilder, deren Text nicht gelesen wird: {place}; holen Sie die Modelle dafür mit: {command}',
  'letters that do not tell which they are on {place}; get the models that recognise them with: {command}':
    'Buchstaben, die nicht sagen, welche sie sind: {place}; holen Sie die Modelle, die sie erkennen, mit: {command}',
  'text recognised in pictures (OCR) on {place}; letters may be wrong':
    'in Bildern erkannter Text (OCR): {place}; Buchstaben können falsch sein',
  'page {number}': 'Seite {number}',
  'pages {numbers}': 'Seiten {numbers}',
  'pages {numbers} and {more} more': 'Seiten {numbers} und {more} weitere',
  'line {number}': 'Zeile {number}',
  'lines {numbers}': 'Zeilen {numbers}',
  'paragraph {number}': 'Absatz {number}',
  'paragraphs {numbers}': 'Absätze {numbers}',
  'slide {number}': 'Folie {number}',
  'slides {numbers}': 'Folien {numbers}',
  'chapter {number}': 'Kapitel {number}',
  'chapters {numbers}': 'Kapitel {numbers}',
  'row {number}': 'Tabellenzeile {number}',
  'rows {numbers}': 'Tabellenzeilen {numbers}',
  '{sheet}, row {number}': '{sheet}, Zeile {number}',
  '{sheet}, rows {numbers}': '{sheet}, Zeilen {numbers}',
};

/** What a script may and may not do, by what the system can hold it to. */
const confinement: Sentences = {
  'use the network': 'ins Netz gehen',
  'change your files': 'Ihre Dateien ändern',
  'leave anything running': 'etwas laufen lassen',
  'use the network or change your files': 'ins Netz gehen oder Ihre Dateien ändern',
  'use the network or leave anything running': 'ins Netz gehen oder etwas laufen lassen',
  'change your files or leave anything running': 'Ihre Dateien ändern oder etwas laufen lassen',
  'use the network, change your files or leave anything running':
    'ins Netz gehen, Ihre Dateien ändern oder etwas laufen lassen',
  'read what you can read': 'lesen, was Sie lesen können',
  'read what you can read and use the network': 'lesen, was Sie lesen können, und ins Netz gehen',
  'read what you can read and change your files': 'lesen, was Sie lesen können, und Ihre Dateien ändern',
  'read what you can read and leave programs running behind it':
    'lesen, was Sie lesen können, und Programme laufen lassen',
  'read what you can read, use the network and change your files':
    'lesen, was Sie lesen können, ins Netz gehen und Ihre Dateien ändern',
  'read what you can read, use the network and leave programs running behind it':
    'lesen, was Sie lesen können, ins Netz gehen und Programme laufen lassen',
  'read what you can read, change your files and leave programs running behind it':
    'lesen, was Sie lesen können, Ihre Dateien ändern und Programme laufen lassen',
  'read what you can read, use the network, change your files and leave programs running behind it':
    'lesen, was Sie lesen können, ins Netz gehen, Ihre Dateien ändern und Programme laufen lassen',
  'It can {can}. This system cannot forbid it the network.':
    'Es kann {can}. Dieses System kann ihm das Netz nicht verbieten.',
};

/** What was tried and has more than one word, which a template would take for a part of the path. */
const tried: Sentences = {
  'cannot make the folder {path}: {source}': 'Der Ordner {path} kann nicht angelegt werden: {source}',
  'cannot make the folder {path}: {source}; check that the folder is there and may be written':
    'Der Ordner {path} kann nicht angelegt werden: {source}; prüfen Sie, ob der Ordner darüber da ist und geschrieben werden darf',
  'cannot copy the chats to {path}: {source}; check that the folder is there and may be written':
    'Die Chats können nicht nach {path} kopiert werden: {source}; prüfen Sie, ob der Ordner da ist und geschrieben werden darf',
  'cannot start a thread to watch {path}: {source}':
    'Ordner können nicht beobachtet werden ({path}): {source}',
  'cannot write into {path}: {source}; make it a folder of your own, or remove it':
    'In {path} kann nicht geschrieben werden: {source}; machen Sie einen eigenen Ordner daraus, oder entfernen Sie ihn',
  'cannot start the thread that writes into {path}: {source}; make it a folder of your own, or remove it':
    'In {path} kann nicht geschrieben werden: {source}; machen Sie einen eigenen Ordner daraus, oder entfernen Sie ihn',
  'cannot make private {path}: {source}; make it a folder of your own, or remove it':
    '{path} kann nicht vor anderen geschützt werden: {source}; machen Sie einen eigenen Ordner daraus, oder entfernen Sie ihn',
};

/** The notes on models that are known by name. */
const models: Sentences = {
  'The default: tiny and quick, English; good for trying things out, often wrong about facts.':
    'Das voreingestellte: winzig und schnell, Englisch; gut zum Ausprobieren, bei Tatsachen oft falsch.',
  'A step up from the default, still quick; English.':
    'Eine Stufe über dem voreingestellten, noch schnell; Englisch.',
  'Good everyday answers in English.': 'Gute Antworten für jeden Tag, auf Englisch.',
  'Small, many languages; thinks aloud before it answers.':
    'Klein, viele Sprachen; denkt laut, bevor es antwortet.',
  'Many languages; a fair balance on a laptop.': 'Viele Sprachen; ausgewogen auf einem Laptop.',
  'The best answers in this list; wants 4 GB of free memory and patience.':
    'Die besten Antworten in dieser Liste; will 4 GB freien Speicher und Geduld.',
  'Long window, eight languages.': 'Langes Fenster, acht Sprachen.',
  'Long window, eight languages, careful answers.': 'Langes Fenster, acht Sprachen, sorgfältige Antworten.',
  'Code, small and quick.': 'Quelltext, klein und schnell.',
  'Code; clearly better than 0.5B and half as fast.':
    'Quelltext; deutlich besser als 0.5B und halb so schnell.',
  'Tiny, many languages.': 'Winzig, viele Sprachen.',
  'Many languages; sliding window keeps long chats cheap.':
    'Viele Sprachen; ein gleitendes Fenster hält lange Chats billig.',
};

/** What the system says, with and without its number. */
const system: Sentences = {
  '{cause} (os error {number})': '{cause} (Systemfehler {number})',
  "{cause}; free space on the disk or lower the store's budget":
    '{cause}; schaffen Sie Platz auf der Platte, oder lassen Sie weniger behalten',
  '{cause}; the store needs a folder it may write':
    '{cause}; dafür braucht es einen Ordner, der geschrieben werden darf',
  '{cause}; see whether the disk is full or failing':
    '{cause}; sehen Sie nach, ob die Platte voll oder kaputt ist',
  'at least {count}': 'mindestens {count}',
  '{name} (did you mean {other}?)': '{name} (meinen Sie {other}?)',
  'No such file or directory': 'Datei oder Ordner gibt es nicht',
  'Permission denied': 'keine Berechtigung',
  'Operation not permitted': 'das ist nicht erlaubt',
  'No space left on device': 'auf der Platte ist kein Platz mehr',
  'Disk quota exceeded': 'der zugeteilte Platz auf der Platte ist voll',
  'File too large': 'die Datei ist zu groß',
  'File exists': 'die Datei gibt es schon',
  'File name too long': 'der Dateiname ist zu lang',
  'Is a directory': 'das ist ein Ordner',
  'is a directory': 'das ist ein Ordner',
  'not a directory': 'das ist kein Ordner',
  'Not a directory': 'das ist kein Ordner',
  'Directory not empty': 'der Ordner ist nicht leer',
  'Read-only file system': 'der Datenträger kann nur gelesen werden',
  'Input/output error': 'der Datenträger liest oder schreibt nicht',
  'Too many open files': 'zu viele offene Dateien',
  'Too many open files in system': 'zu viele offene Dateien',
  'Too many levels of symbolic links': 'zu viele Verweise hintereinander',
  'Cannot allocate memory': 'es ist kein Speicher frei',
  'Resource temporarily unavailable': 'das System kann das gerade nicht geben',
  'Device or resource busy': 'wird gerade benutzt',
  'Text file busy': 'wird gerade benutzt',
  'Exec format error': 'das ist kein ausführbares Programm',
  'Invalid argument': 'das nimmt das System nicht an',
  'Broken pipe': 'die Verbindung ist abgebrochen',
  'Connection refused': 'die Verbindung wurde abgelehnt',
  'Connection reset by peer': 'die Verbindung wurde von der Gegenseite abgebrochen',
  'Connection timed out': 'die Verbindung antwortet nicht',
  'Network is unreachable': 'das Netz ist nicht zu erreichen',
  'Stale file handle': 'die Datei ist nicht mehr da',
  'entity not found': 'das gibt es nicht',
  'permission denied': 'keine Berechtigung',
  'timed out': 'das dauerte zu lange',
  'failed to fill whole buffer': 'die Datei ist kürzer als erwartet',
  'database is locked': 'die Datenbank ist gesperrt',
  'database or disk is full': 'die Platte ist voll',
  'attempt to write a readonly database': 'die Datenbank kann nur gelesen werden',
  'unable to open database file': 'die Datenbank kann nicht geöffnet werden',
  'disk I/O error': 'die Platte liest oder schreibt nicht',
  'database disk image is malformed': 'die Datenbank ist beschädigt',
  'file is not a database': 'die Datei ist keine Datenbank',
};

/** What stands nowhere whole in the program, in German. */
export const composed: Sentences = { ...places, ...confinement, ...tried, ...models, ...system };
