// What the library says of models, folders, skills and tools when something fails or is worth knowing. In German, by what it says
// in English.
import type { Sentences } from './strings.errors.de';

const models: Sentences = {
  'stopped; what is here stays, and the next time goes on there':
    'Angehalten; was hier ist, bleibt, und das nächste Mal geht es dort weiter',
  '{url} cannot be reached ({why}); check the connection and try again: it goes on where it was':
    '{url} ist nicht zu erreichen ({why}); prüfen Sie die Verbindung, und versuchen Sie es noch einmal: Es geht dort weiter, wo es war',
  '{url} is not given out (the server says {status}); get the file by hand from its page, and add it':
    '{url} wird nicht herausgegeben (der Server sagt {status}); holen Sie die Datei selbst von ihrer Seite, und fügen Sie sie hinzu',
  'what came from {url} is not the file that was meant: its checksum is {is} and not {wanted}; it was removed; try again, or get it by hand':
    'Was von {url} kam, ist nicht die gemeinte Datei: Ihre Prüfsumme ist {is} und nicht {wanted}; sie wurde entfernt; versuchen Sie es noch einmal, oder holen Sie sie selbst',
  'what came is no model, and was removed: {reason}': 'Was kam, ist kein Modell und wurde entfernt: {reason}',
  'cannot write {path}: {source}': '{path} kann nicht geschrieben werden: {source}',
  'the built-in model catalogue is broken: {why}': 'Das eingebaute Verzeichnis der Modelle ist kaputt: {why}',
  '{path}: {why}; mend the file, or delete it and add your models again':
    '{path}: {why}; bringen Sie die Datei in Ordnung, oder löschen Sie sie, und fügen Sie Ihre Modelle neu hinzu',
  'cannot {doing} {path}: {source}': '{path}: {doing} ging nicht: {source}',
  'the model {name} is not here yet; get it with: reprise models fetch {name}':
    'Das Modell {name} ist noch nicht hier; holen Sie es mit: reprise models fetch {name}',
  'the model {name} is not here; download {file} from {page} into {folder}{sum}, or use your copy with: reprise models add FILE':
    'Das Modell {name} ist nicht hier; laden Sie {file} von {page} nach {folder}{sum} herunter, oder benutzen Sie Ihre Kopie mit: reprise models add DATEI',
  'the file of {name} is gone from {path}; put it back, or forget it with: reprise models remove {name}':
    'Die Datei von {name} ist nicht mehr in {path}; legen Sie sie zurück, oder vergessen Sie sie mit: reprise models remove {name}',
  '{path} is a folder; name the GGUF file in it': '{path} ist ein Ordner; nennen Sie die GGUF-Datei darin',
  'no model is named {name} and there is no such file; see the names with: reprise models list':
    'Kein Modell heißt {name}, und eine solche Datei gibt es nicht; die Namen zeigt: reprise models list',
  'no added model is named {name}; see the names with: reprise models list':
    'Kein hinzugefügtes Modell heißt {name}; die Namen zeigt: reprise models list',
  '"{name}" cannot be a name: use letters, digits, dots and dashes (--name NAME)':
    '„{name}“ kann kein Name sein: Nehmen Sie Buchstaben, Ziffern, Punkte und Striche (--name NAME)',
  'the name {name} is taken; choose another with --name':
    'Der Name {name} ist vergeben; wählen Sie einen anderen mit --name',
};

/** The folders that the program works in. */
const folders: Sentences = {
  'no home directory is known; set HOME, or REPRISE_MODELS and REPRISE_HOME to folders of your choice':
    'Es ist kein Benutzerordner bekannt; setzen Sie HOME, oder REPRISE_MODELS und REPRISE_HOME auf Ordner Ihrer Wahl',
  'Reprise runs already with the chats in {folder}; use its window, or close it first':
    'Reprise läuft schon mit den Chats in {folder}; benutzen Sie sein Fenster, oder schließen Sie es zuerst',
  'cannot use the folder {folder}: {source}; set REPRISE_HOME to a folder of yours':
    'Der Ordner {folder} ist nicht zu gebrauchen: {source}; setzen Sie REPRISE_HOME auf einen Ordner von Ihnen',
  'cannot {act} {path}: {source}; make it a folder of your own, or remove it':
    '{path}: {act} ging nicht: {source}; machen Sie einen eigenen Ordner daraus, oder entfernen Sie ihn',
};

const skills: Sentences = {
  'the skill in {folder} cannot be used: {fault}': 'Der Skill in {folder} ist nicht zu gebrauchen: {fault}',
  'there is no skill {name}{near}; see them with: reprise skill list':
    'Einen Skill {name}{near} gibt es nicht; welche es gibt, zeigt: reprise skill list',
  'the skill {name} is disabled; enable it with: reprise skill enable {name}':
    'Der Skill {name} ist ausgeschaltet; einschalten lässt er sich mit: reprise skill enable {name}',
  'the skill {skill} has no {what} {file}; it has: {files}':
    'Der Skill {skill} hat {what} {file} nicht; er hat: {files}',
  '{file} of the skill {skill} cannot be read as text: {fault}':
    '{file} des Skills {skill} kann nicht als Text gelesen werden: {fault}',
  'the skill settings in {path} cannot be understood ({reason}); mend the file, or remove it to trust and enable anew':
    'Die Einstellungen der Skills in {path} sind nicht zu verstehen ({reason}); bringen Sie die Datei in Ordnung, oder entfernen Sie sie, um neu zu erlauben und einzuschalten',
  'there is no SKILL.md in it': 'Darin ist keine SKILL.md',
  'it is not UTF-8 text; save it as UTF-8': 'Das ist kein Text in UTF-8; speichern Sie ihn als UTF-8',
  'it has {bytes} bytes, and at most {limit} are read; make it shorter':
    'Das sind {bytes} Bytes, und höchstens {limit} werden gelesen; kürzen Sie es',
  'its front matter is not YAML that can be read ({why})':
    'Der Vorspann ist kein YAML, das gelesen werden kann ({why})',
  'it has no description; write one into the front matter: when is it of use, and what for?':
    'Die Beschreibung fehlt; schreiben Sie eine in den Vorspann: Wann ist er nützlich, und wofür?',
  '{name} is no name for a skill: 1 to 64 small letters, digits and hyphens are':
    '{name} ist kein Name für einen Skill: Erlaubt sind 1 bis 64 kleine Buchstaben, Ziffern und Bindestriche',
  "{path} is a link that leads out of the skill's folder; put the file itself there":
    '{path} ist ein Verweis, der aus dem Ordner des Skills herausführt; legen Sie die Datei selbst dorthin',
  'its folder has more than {limit} {what}; a skill is a small folder':
    'Der Ordner hat mehr als {limit} {what}; ein Skill ist ein kleiner Ordner',
  'its front matter has tabs; they count as two spaces':
    'Im Vorspann stehen Tabulatoren; sie zählen als zwei Leerzeichen',
  'its front matter is not YAML as it stands; values with a colon or the like were taken as plain text, put them in quotes':
    'Der Vorspann ist, wie er dasteht, kein YAML; Werte mit einem Doppelpunkt oder dergleichen wurden als reiner Text genommen, setzen Sie sie in Anführungszeichen',
  'its metadata is not a list of names and values; it is left out':
    'Die Angaben unter metadata sind keine Liste von Namen und Werten; sie werden ausgelassen',
  'its front matter has an unknown key {key}; it is left out':
    'Im Vorspann steht ein unbekannter Schlüssel {key}; er wird ausgelassen',
  'its description has {count} characters, more than {most}; the rest is left out':
    'Die Beschreibung hat {count} Zeichen, mehr als {most}; der Rest wird ausgelassen',
  'its name {name} was taken as {plain}': 'Der Name {name} wurde als {plain} genommen',
  "{name} is no name for a skill; the folder's is taken":
    '{name} ist kein Name für einen Skill; der des Ordners wird genommen',
  "it has no front matter; its name is the folder's, its description the first paragraph":
    'Der Vorspann fehlt; der Name ist der des Ordners, die Beschreibung der erste Absatz',
  "its name {name} differs from its folder's, {folder}":
    'Der Name {name} ist ein anderer als der des Ordners, {folder}',
};

/** Scripts, and servers of tools. */
const running: Sentences = {
  'nothing is known that runs {script}: give it a first line such as #!/usr/bin/env python3':
    'Es ist nichts bekannt, was {script} ausführt: Geben Sie dem Skript eine erste Zeile wie #!/usr/bin/env python3',
  '{script} could not be started: {reason}': '{script} konnte nicht gestartet werden: {reason}',
  '{script} was not started: {reason}; nothing runs less confined than you were told':
    '{script} wurde nicht gestartet: {reason}; nichts läuft mit weniger Schutz, als Ihnen gesagt wurde',
  'scripts of skills are not run on this system yet; run {script} yourself':
    'Skripte von Skills laufen auf diesem System noch nicht; führen Sie {script} selbst aus',
  'the tool servers in {path} cannot be understood ({reason}); mend the file':
    'Die Werkzeugserver in {path} sind nicht zu verstehen ({reason}); bringen Sie die Datei in Ordnung',
  'the tool server {server} was not started: it was not allowed':
    'Der Werkzeugserver {server} wurde nicht gestartet: Er war nicht erlaubt',
  'the tool server {server} could not be started: {reason}':
    'Der Werkzeugserver {server} konnte nicht gestartet werden: {reason}',
  '{tool} failed: {reason}': '{tool} ist gescheitert: {reason}',
  stopped: 'angehalten',
  'the tool server {name} is left out: a name has 1 to {most} letters, digits, - and _':
    'Der Werkzeugserver {name} wird ausgelassen: Ein Name hat 1 bis {most} Buchstaben, Ziffern, - und _',
  'the tool server {name} is left out: it has no command, and servers behind an address are not used':
    'Der Werkzeugserver {name} wird ausgelassen: Er hat keinen Befehl, und Server hinter einer Adresse werden nicht benutzt',
};

/** What the library says of models, folders, skills and tools, in German. */
export const skillErrors: Sentences = { ...models, ...folders, ...skills, ...running };
