// What stands inside the sentences of the library and of the window: causes, kinds of things, small words. In German, by what it is
// in English.
import type { Sentences } from './strings.errors.de';

/** What is wrong with chats that are brought in, and what was saved of damaged ones. */
const chats: Sentences = {
  ' and a copy is in {path}': ', und eine Kopie liegt in {path}',
  'it is not a file': 'es ist keine Datei',
  'it is not text, as a chat that Reprise exported as JSON is':
    'es ist kein Text, wie ein Chat, den Reprise als JSON exportiert hat',
  'there is nothing in it': 'es ist leer',
  'it cannot be read ({error})': 'es kann nicht gelesen werden ({error})',
  'it has more than {most} MiB': 'es hat mehr als {most} MiB',
  'it is not a chat that Reprise exported as JSON ({error})':
    'es ist kein Chat, den Reprise als JSON exportiert hat ({error})',
  'it says it is “{found}”, and a chat says “{wanted}”':
    'es nennt sich „{found}“, und ein Chat nennt sich „{wanted}“',
  'it has version {found}, and this Reprise reads up to version {known}; update Reprise':
    'es hat die Version {found}, und dieses Reprise liest bis Version {known}; erneuern Sie Reprise',
  'a part of it is missing or wrong ({error})': 'ein Teil davon fehlt oder ist falsch ({error})',
  'it has more than {most} turns': 'es hat mehr als {most} Beiträge',
  'the turn it should show is not in it': 'der Beitrag, den es zeigen soll, ist nicht darin',
  'the time it was made is not a time': 'die Zeit, zu der es entstand, ist keine Zeit',
  'turn {number} {fault}': 'Beitrag {number} {fault}',
  'follows a turn that does not come before it': 'folgt auf einen Beitrag, der nicht vor ihm kommt',
  'is a question that follows a question': 'ist eine Frage, die auf eine Frage folgt',
  'is an answer that follows an answer': 'ist eine Antwort, die auf eine Antwort folgt',
  'is an answer without a question': 'ist eine Antwort ohne Frage',
  'is a question in a state that only answers have':
    'ist eine Frage in einem Zustand, den nur Antworten haben',
  'has a time that is not a time': 'hat eine Zeit, die keine ist',
  'Nothing could be saved from it.': 'Nichts davon war zu retten.',
  'Saved from it: {saved}.': 'Gerettet: {saved}.',
  '{chats} chat(s) with {turns} question(s) and answer(s)':
    '{chats} Chat(s) mit {turns} Fragen und Antworten',
  'the copy is not the same as the original': 'die Kopie ist nicht gleich dem Original',
};

/** Kinds of files, what is wrong with them, and what becomes of an index. */
const documents: Sentences = {
  'PDF, HTML, Markdown, plain text, source code, CSV, Word (docx), PowerPoint (pptx), Excel (xlsx), e-books (EPUB), mail (eml), pictures':
    'PDF, HTML, Markdown, reiner Text, Quelltext, CSV, Word (docx), PowerPoint (pptx), Excel (xlsx), E-Books (EPUB), Mails (eml), Bilder',
  'an e-book': 'ein E-Book',
  'a mail': 'eine Mail',
  'a picture': 'ein Bild',
  'a Word document': 'ein Word-Dokument',
  'an Excel workbook': 'eine Excel-Mappe',
  'a PowerPoint presentation': 'eine PowerPoint-Präsentation',
  'a PDF': 'ein PDF',
  'a CSV table': 'eine CSV-Tabelle',
  'a zip archive': 'ein Zip-Archiv',
  'an empty zip archive': 'ein leeres Zip-Archiv',
  'a gzip archive': 'ein Gzip-Archiv',
  'a 7z archive': 'ein 7z-Archiv',
  'a RAR archive': 'ein RAR-Archiv',
  'a model file (use it with -m)': 'eine Modelldatei (sie gehört unter Modelle)',
  'a rich text document (save it as docx or PDF)': 'ein RTF-Dokument (speichern Sie es als docx oder PDF)',
  'a program': 'ein Programm',
  'a database': 'eine Datenbank',
  'a film, or a photo in a newer format (save it as JPEG)':
    'ein Film oder ein Foto in einem neueren Format (speichern Sie es als JPEG)',
  'an Office file': 'eine Office-Datei',
  'a text file': 'eine Textdatei',
  'a binary file': 'eine Binärdatei',
  'an OpenDocument text (save it as docx or PDF)':
    'ein OpenDocument-Text (speichern Sie ihn als docx oder PDF)',
  'an OpenDocument spreadsheet (save it as xlsx)': 'eine OpenDocument-Tabelle (speichern Sie sie als xlsx)',
  'an OpenDocument file (save it as PDF)': 'eine OpenDocument-Datei (speichern Sie sie als PDF)',
  'an old Word document (save it as docx)': 'ein altes Word-Dokument (speichern Sie es als docx)',
  'an old Excel workbook (save it as xlsx)': 'eine alte Excel-Mappe (speichern Sie sie als xlsx)',
  'an old PowerPoint presentation (save it as pptx)':
    'eine alte PowerPoint-Präsentation (speichern Sie sie als pptx)',
  'an Outlook message (save it as eml)': 'eine Outlook-Nachricht (speichern Sie sie als eml)',
  'an old Office document': 'ein altes Office-Dokument',
  'a scan: {count} of its {all} page(s) are pictures': 'ein Scan: {count} von {all} Seiten sind Bilder',
  'a PDF whose letters do not tell which they are, on {count} of its {all} page(s)':
    'ein PDF, dessen Buchstaben nicht sagen, welche sie sind, auf {count} von {all} Seiten',
  'what it should be made of is not in it': 'was darin sein sollte, ist nicht darin',
  'it has more than {most} parts': 'es hat mehr als {most} Teile',
  'its part {name} is missing': 'sein Teil {name} fehlt',
  'it does not name its contents': 'es nennt seinen Inhalt nicht',
  'its structure cannot be followed': 'der Aufbau ist nicht zu verstehen',
  'it has no header': 'es hat keinen Kopf',
  'it does not start like a PDF': 'es beginnt nicht wie ein PDF',
  'its encryption is not understood: {error}': 'die Verschlüsselung ist nicht bekannt: {error}',
  'it has no pages': 'es hat keine Seiten',
  'none of its pages can be read': 'keine seiner Seiten kann gelesen werden',
  'its pages are pictures too large to be read': 'seine Seiten sind Bilder, die zum Lesen zu groß sind',
  'at byte {at}: {error}': 'bei Byte {at}: {error}',
  'its parts are nested more than {depth} deep': 'seine Teile sind mehr als {depth}-fach verschachtelt',
  'it has no text': 'es hat keinen Text',
  'this is a folder; name the files in it': 'das ist ein Ordner; nennen Sie die Dateien darin',
  'What was in it is not known any more: add your files again.':
    'Was darin war, ist nicht mehr bekannt: Fügen Sie Ihre Dateien neu hinzu.',
  'What you added is read again by the next update.':
    'Was Sie hinzugefügt haben, wird beim nächsten Mal neu gelesen.',
  'The {count} files and folders you added are read again by the next update.':
    'Die {count} Dateien und Ordner, die Sie hinzugefügt haben, werden beim nächsten Mal neu gelesen.',
  'it was made by another version': 'es wurde von einer anderen Version gemacht',
  '{name} is not what was written': '{name} ist nicht, was geschrieben wurde',
  'the detector failed: {error}': 'das Finden von Text ist gescheitert: {error}',
  'the detector gave something else than a map': 'das Finden von Text gab etwas anderes als eine Karte',
  'the recogniser failed: {error}': 'das Erkennen ist gescheitert: {error}',
  'the recogniser gave something else than columns': 'das Erkennen gab etwas anderes als Spalten',
  'the recogniser knows {classes} characters and its list has {count}':
    'das Erkennen kennt {classes} Zeichen, und die Liste hat {count}',
  'the server gave another part than was asked for': 'der Server gab einen anderen Teil, als verlangt war',
  'the server says {status}': 'der Server sagt {status}',
  'the server has fallen silent': 'der Server schweigt',
  'the server broke off after {done} of {total} bytes': 'der Server brach nach {done} von {total} Bytes ab',
  'it names no default model': 'es nennt kein voreingestelltes Modell',
};

/** Skills, scripts and tools: what is asked before, how it ended, what was wrong with a call. */
const skills: Sentences = {
  ' (did you mean {name}?)': ' (meinen Sie {name}?)',
  'it is not a list of names and values': 'er ist keine Liste von Namen und Werten',
  'failed with exit code {code}': 'mit Code {code} gescheitert',
  'ended by signal {signal}, as when it takes more than it may':
    'durch das Signal {signal} beendet, wie wenn es mehr nimmt, als es darf',
  'ended after {seconds} s: it took too long': 'nach {seconds} s beendet: Es dauerte zu lange',
  'ended: it wrote without end': 'beendet: Es schrieb ohne Ende',
  'what was to start it ended without a word {how}': 'was es starten sollte, endete ohne ein Wort {how}',
  'the system no longer gives it namespaces of its own': 'das System gibt ihm keine eigenen Namensräume mehr',
  'the system holds it to less than it did before': 'das System schützt weniger als vorher',
  'no program is named': 'kein Programm ist genannt',
  'it does not say what tools it has': 'er sagt nicht, welche Werkzeuge er hat',
  'no answer within {seconds} s': 'keine Antwort innerhalb von {seconds} s',
  'it said nothing within {seconds} s': 'er sagte {seconds} s lang nichts',
  '{error}; it said: {line}': '{error}; er sagte: {line}',
  'there is no such tool': 'ein solches Werkzeug gibt es nicht',
  'it is longer than any call should be': 'er ist länger, als ein Aufruf sein sollte',
  'it names no tool': 'er nennt kein Werkzeug',
  'its arguments are no object': 'was er mitgibt, ist kein Objekt',
  'the call names no skill': 'der Aufruf nennt keinen Skill',
  'the skill {name} was not chosen': 'der Skill {name} wurde nicht gewählt',
  'the instructions of {name} are above already; follow them now':
    'die Anweisungen von {name} stehen schon oben; sie sind jetzt zu befolgen',
  'the person did not allow the script to run; go on without it':
    'das Skript durfte nicht laufen; es geht ohne weiter',
  'there is no tool {name}; call one of those you were told of':
    'ein Werkzeug {name} gibt es nicht; aufzurufen ist eines der genannten',
  'the same call was made before and its result is above; do not call it again, write the answer now':
    'derselbe Aufruf wurde schon gemacht, und sein Ergebnis steht oben; statt noch einmal aufzurufen, ist jetzt zu antworten',
  'too many calls at once; this one was not done':
    'zu viele Aufrufe auf einmal; dieser wurde nicht ausgeführt',
  'The skill {name} wants to run: {line}\nIn {folder}. {can}':
    'Der Skill {name} möchte ausführen: {line}\nIn {folder}. {can}',
  'The tool server {name} wants to start: {line}\nIt is a program like any other: it can do what you can do.':
    'Der Werkzeugserver {name} möchte starten: {line}\nEr ist ein Programm wie jedes andere: Er kann, was Sie können.',
  'It can {can}.': 'Es kann {can}.',
  'It cannot {cannot}. {can}': 'Es kann nicht {cannot}. {can}',
  'all scripts of this skill, until a file of it changes':
    'alle Skripte dieses Skills, bis sich eine Datei von ihm ändert',
  'this command, until it changes': 'dieser Befehl, bis er sich ändert',
};

/** What was being done, what something is, how it must be: small words that are told apart by where they stand. */
const words: Sentences = {
  read: 'Lesen',
  write: 'Schreiben',
  find: 'Finden',
  make: 'Anlegen',
  remove: 'Entfernen',
  rename: 'Umbenennen',
  move: 'Verschieben',
  open: 'Öffnen',
  create: 'Anlegen',
  lock: 'Sperren',
  sync: 'Sichern',
  use: 'Benutzen',
  watch: 'Beobachten',
  chat: 'Ein Chat',
  turn: 'Ein Beitrag',
  folder: 'Ein Ordner',
  reference: 'die Datei',
  script: 'das Skript',
  asset: 'das Material',
  files: 'Dateien',
  bytes: 'Bytes',
  kind: 'die Art',
  name: 'der Name',
  answering: 'Das Beantworten',
  'loading the model': 'Das Laden des Modells',
  temperature: 'Temperatur',
  'top p': 'Top-p',
  'repetition penalty': 'Abzug für Wiederholung',
  'most tokens of an answer': 'Längste Antwort',
  window: 'Fenster',
  threads: 'Rechenfäden',
  'memory for context': 'Speicher für Kontext',
  'memory limit': 'Speichergrenze',
  'share that is computed again': 'Neu berechneter Anteil',
  'disk for what was read': 'Platz auf der Platte',
  'system prompt': 'Systemprompt',
  'from 0 to 10': 'von 0 bis 10',
  'from 1 to 1,048,576': 'von 1 bis 1.048.576',
  'from 256 to what the model was trained for': 'von 256 bis zu dem, wofür das Modell trainiert wurde',
  'from 1 to {most} on this machine': 'auf diesem Gerät von 1 bis {most}',
  'from 16 to 1,048,576 MB': 'von 16 bis 1.048.576 MB',
  'from 256 to 1,048,576 MB': 'von 256 bis 1.048.576 MB',
  '0, or from 100 to 10,000,000 MB': '0 oder von 100 bis 10.000.000 MB',
  'of at most 100,000 bytes': 'höchstens 100.000 Bytes',
  'no space left on the disk; free some space and try again':
    'auf der Platte ist kein Platz mehr; schaffen Sie Platz, und versuchen Sie es noch einmal',
};

/** What stands inside what the library and the window say, in German. */
export const libraryCauses: Sentences = { ...chats, ...documents, ...skills, ...words };
