// What the library says of chats and documents when something fails or is worth knowing. In German, by what it says in English.
import type { Sentences } from './strings.errors.de';

const chats: Sentences = {
  'there is no {what} with the number {id}; it may have been deleted':
    '{what} mit der Nummer {id} ist nicht da; vielleicht inzwischen gelöscht',
  'this cannot be imported: {reason}': 'Das kann nicht eingelesen werden: {reason}',
  'the chats in {folder} were written by a newer Reprise (format {found}, this one knows {known}); update Reprise, or move the file away to start without these chats':
    'Die Chats in {folder} hat ein neueres Reprise geschrieben (Format {found}, dieses kennt {known}); erneuern Sie Reprise, oder schieben Sie die Datei weg, um ohne diese Chats zu beginnen',
  'the chats in {folder} could not be brought from format {from} to {to} ({reason}); the file is as it was{backup}; use the version of Reprise you had before and report this':
    'Die Chats in {folder} konnten nicht von Format {from} auf {to} gebracht werden ({reason}); die Datei ist, wie sie war{backup}; benutzen Sie die Fassung von Reprise, die Sie vorher hatten, und melden Sie das',
  'the chats in {folder} are damaged; quit Reprise and start it again: it then saves what can be saved and keeps the damaged file':
    'Die Chats in {folder} sind beschädigt; beenden Sie Reprise, und starten Sie es neu: Dann rettet es, was zu retten ist, und behält die beschädigte Datei',
  'the disk with {folder} is full and the last change was not kept; free some space and try again':
    'Die Platte mit {folder} ist voll, und die letzte Änderung wurde nicht behalten; schaffen Sie Platz, und versuchen Sie es noch einmal',
  "{path} cannot be written; give yourself the right to write this file and its folder, or choose another folder for Reprise's data":
    '{path} kann nicht geschrieben werden; geben Sie sich das Recht, diese Datei und ihren Ordner zu schreiben, oder wählen Sie einen anderen Ordner für die Daten von Reprise',
  '{path} is in use by another program; close it (it may be a second Reprise) and try again':
    '{path} benutzt gerade ein anderes Programm; schließen Sie es (vielleicht ein zweites Reprise), und versuchen Sie es noch einmal',
  'cannot {doing} {path}: {source}; check that the folder is there and may be written':
    '{path}: {doing} ging nicht: {source}; prüfen Sie, ob der Ordner da ist und geschrieben werden darf',
  'deleted chats are gone, but traces of them may still be in the file: {reason} (this is tried again)':
    'Gelöschte Chats sind weg, aber Spuren von ihnen können noch in der Datei sein: {reason} (das wird noch einmal versucht)',
  'the chats in {folder} cannot be used ({source}); if quitting and starting again does not help, report this':
    'Die Chats in {folder} sind nicht zu gebrauchen ({source}); wenn Beenden und neu Starten nicht hilft, melden Sie das',
  "the last message with the system prompt, and what the answer has so far, are {tokens} tokens; the model's window takes {window}; shorten the message, or choose a larger window in the settings":
    'Die letzte Nachricht mit dem Systemprompt und dem, was die Antwort schon hat, sind {tokens} Tokens; das Fenster des Modells fasst {window}; kürzen Sie die Nachricht, oder wählen Sie in den Einstellungen ein größeres Fenster',
  'stopped: the KV memory it used was needed for other chats':
    'Angehalten: Der KV-Speicher, den sie benutzte, wurde für andere Chats gebraucht',
  "a folder's name cannot be empty; type at least one character":
    'Ein Ordner braucht einen Namen; schreiben Sie mindestens ein Zeichen',
  "a folder's name has at most {most} characters; type a shorter one":
    'Der Name eines Ordners hat höchstens {most} Zeichen; schreiben Sie einen kürzeren',
  'there is a folder named “{name}” already; choose another name':
    'Einen Ordner mit dem Namen „{name}“ gibt es schon; wählen Sie einen anderen Namen',
  "a chat's title cannot be empty; type at least one character":
    'Ein Chat braucht einen Titel; schreiben Sie mindestens ein Zeichen',
  "a chat's title has at most {most} characters; type a shorter one":
    'Der Titel eines Chats hat höchstens {most} Zeichen; schreiben Sie einen kürzeren',
  'the chat cannot be written as JSON ({error}); this is a fault in Reprise':
    'Der Chat kann nicht als JSON geschrieben werden ({error}); das ist ein Fehler in Reprise',
  'a question can be given {most} passages at most, and these are {count}; choose fewer':
    'Eine Frage kann höchstens {most} Textstellen mitbekommen, und das sind {count}; wählen Sie weniger',
  'where {label} comes from cannot be written ({error}); this is a fault in Reprise':
    'Woher {label} kommt, kann nicht geschrieben werden ({error}); das ist ein Fehler in Reprise',
  'calls of tools belong to an answer, and this is a question':
    'Aufrufe von Werkzeugen gehören zu einer Antwort, und das ist eine Frage',
  'only a question can be given passages, and this is an answer':
    'Nur eine Frage kann Textstellen mitbekommen, und das ist eine Antwort',
  "the chats in {folder} cannot be copied before they are brought to a new format, because the folder's name is not valid Unicode; rename the folder":
    'Die Chats in {folder} können nicht kopiert werden, bevor sie auf ein neues Format gebracht werden, weil der Name des Ordners kein gültiges Unicode ist; benennen Sie den Ordner um',
  'step {number} leaves a reference to nothing': 'Schritt {number} hinterlässt einen Verweis ins Leere',
  'the setting “{key}” in {path} cannot be read ({error}); set it again':
    'Die Einstellung „{key}“ in {path} kann nicht gelesen werden ({error}); stellen Sie sie neu ein',
  'only an answer makes steps, and this is a question':
    'Nur eine Antwort macht Schritte, und das ist eine Frage',
  'a step cannot be written ({error}); this is a fault in Reprise':
    'Ein Schritt kann nicht geschrieben werden ({error}); das ist ein Fehler in Reprise',
  'only a question can be answered, and this turn is an answer':
    'Nur eine Frage kann beantwortet werden, und dieser Beitrag ist eine Antwort',
  'an answer cannot end in the state of being written':
    'Eine Antwort kann nicht enden, während sie geschrieben wird',
  "the answer's numbers cannot be written ({error}); this is a fault in Reprise":
    'Die Zahlen der Antwort können nicht geschrieben werden ({error}); das ist ein Fehler in Reprise',
  'only an answer can be continued, and this turn is a question':
    'Nur eine Antwort kann fortgesetzt werden, und dieser Beitrag ist eine Frage',
  'this answer is still being written; wait for it or stop it':
    'Diese Antwort wird noch geschrieben; warten Sie auf sie, oder halten Sie sie an',
  'this answer was followed by a question and can no longer be continued; ask for a new answer':
    'Auf diese Antwort folgte eine Frage, sie kann nicht mehr fortgesetzt werden; erzeugen Sie sie neu',
  'there is nothing to send; type a question first':
    'Es gibt nichts zu senden; schreiben Sie zuerst eine Frage',
  'the answer that this question follows belongs to another chat':
    'Die Antwort, auf die diese Frage folgt, gehört zu einem anderen Chat',
  'a question follows an answer, and the turn before it is a question':
    'Eine Frage folgt auf eine Antwort, und der Beitrag davor ist eine Frage',
  'the answer before is still being written; wait for it or stop it first':
    'Die Antwort davor wird noch geschrieben; warten Sie auf sie, oder halten Sie sie zuerst an',
  'this answer is not being written any more': 'Diese Antwort wird nicht mehr geschrieben',
  'The file with your chats was damaged. {saved} The damaged file is kept as {path}.':
    'Die Datei mit Ihren Chats war beschädigt. {saved} Die beschädigte Datei liegt noch unter {path}.',
  '1 answer was cut short when Reprise last ended; the text it had is kept.':
    '1 Antwort wurde abgebrochen, als Reprise zuletzt endete; der Text, den sie hatte, ist noch da.',
  '{count} answers were cut short when Reprise last ended; the text they had is kept.':
    '{count} Antworten wurden abgebrochen, als Reprise zuletzt endete; der Text, den sie hatten, ist noch da.',
  'Your chats were brought to a new format. A copy as they were before is in {path}; delete it when all is well.':
    'Ihre Chats wurden auf ein neues Format gebracht. Eine Kopie, wie sie vorher waren, liegt in {path}; löschen Sie sie, wenn alles gut ist.',
};

const documents: Sentences = {
  'cannot read {path}: {source}': '{path} kann nicht gelesen werden: {source}',
  'the keyword index failed: {source}; this is a fault in Reprise, not in the document':
    'Das Verzeichnis der Wörter ist gescheitert: {source}; das ist ein Fehler in Reprise, nicht im Dokument',
  'the document is empty; there is nothing to ask about':
    'Das Dokument ist leer; es gibt nichts, wonach zu fragen wäre',
  'the file is encrypted and needs a password; give it, or save a copy without one and use that':
    'Die Datei ist verschlüsselt und braucht ein Passwort; geben Sie es ein, oder speichern Sie eine Kopie ohne Passwort, und benutzen Sie die',
  'the file is encrypted, and the password given is not the one that opens it; try again':
    'Die Datei ist verschlüsselt, und dieses Passwort öffnet sie nicht; versuchen Sie es noch einmal',
  'no text can be read on its {pages} page(s): they are empty; use another file':
    'Auf den Seiten ({pages}) ist kein Text zu lesen: Sie sind leer; nehmen Sie eine andere Datei',
  'this PDF is broken or cut short ({why}); open it in a PDF viewer and save or print it to a new PDF':
    'Dieses PDF ist kaputt oder abgeschnitten ({why}); öffnen Sie es in einem PDF-Betrachter, und speichern oder drucken Sie es in ein neues PDF',
  'reading it took longer than {seconds} s and was given up; save what you need of it as a file of its own':
    'Das Lesen dauerte länger als {seconds} s und wurde aufgegeben; speichern Sie, was Sie davon brauchen, als eigene Datei',
  'this HTML cannot be read ({why}); save the page as text and use that':
    'Dieses HTML kann nicht gelesen werden ({why}); speichern Sie die Seite als Text, und benutzen Sie den',
  'this is {kind}, which cannot be read; known kinds: {kinds}':
    'Das ist {kind} und kann nicht gelesen werden; bekannte Arten: {kinds}',
  'reading was cancelled': 'Das Lesen wurde abgebrochen',
  'it has more than {limit} MiB of text or {paragraphs} paragraphs, which is all that is read of one document; split it':
    'Darin sind mehr als {limit} MiB Text oder {paragraphs} Absätze, und mehr wird von einem Dokument nicht gelesen; teilen Sie es',
  'it unpacks to more than {limit} MiB, as files made to do harm do; save what you need of it as a file of its own':
    'Ausgepackt sind es mehr als {limit} MiB, wie bei Dateien, die Schaden tun sollen; speichern Sie, was Sie davon brauchen, als eigene Datei',
  'this is {kind}, but it is broken or cut short ({why}); open it in its own program and save it again':
    'Das ist {kind}, aber kaputt oder abgeschnitten ({why}); öffnen Sie die Datei in ihrem eigenen Programm, und speichern Sie sie noch einmal',
  'this e-book is protected by its shop (DRM) and cannot be read; use a copy without protection':
    'Dieses E-Book hat einen Kopierschutz des Händlers (DRM) und kann nicht gelesen werden; benutzen Sie eine Kopie ohne Schutz',
  'this is {kind}, and has no text by itself; to have its text recognised (OCR), get the models for that with: {command}':
    'Das ist {kind} und hat von sich aus keinen Text; damit der Text erkannt wird (OCR), holen Sie die Modelle dafür mit: {command}',
  'no text was recognised in this picture; if it has some, use a larger or sharper one':
    'In diesem Bild wurde kein Text erkannt; wenn es welchen hat, nehmen Sie ein größeres oder schärferes',
  'the models for text recognition (OCR) cannot be used ({why}); get them again with: {command}':
    'Die Modelle für die Texterkennung (OCR) sind nicht zu gebrauchen ({why}); holen Sie sie noch einmal mit: {command}',
  'the file is larger than the {limit} MiB that are read; split it':
    'Die Datei ist größer als die {limit} MiB, die gelesen werden; teilen Sie sie',
  'it cannot be read: {reason}': 'Das kann nicht gelesen werden: {reason}',
};

/** What is worth knowing of how a document was read. */
const notes: Sentences = {
  '{count} chapter(s) are not in the file': 'Kapitel, die in der Datei fehlen: {count}',
  'attachments are not read: {names}; save them and add them as files':
    'Anhänge werden nicht gelesen: {names}; speichern Sie sie, und fügen Sie sie als Dateien hinzu',
  'the text was recognised in a picture (OCR); letters may be wrong':
    'Der Text wurde in einem Bild erkannt (OCR); Buchstaben können falsch sein',
  'the sheet {name} has no cells that can be read (a chart?)':
    'Das Blatt {name} hat keine Zellen, die gelesen werden können (ein Diagramm?)',
  'cells of more than {most} characters are cut': 'Zellen von mehr als {most} Zeichen werden gekürzt',
  'some characters are not valid {encoding} and were replaced':
    'Einige Zeichen sind kein gültiges {encoding} und wurden ersetzt',
  'not valid UTF-8; read as Latin-1, so accented characters may be wrong':
    'Kein gültiges UTF-8; gelesen als Latin-1, sodass Buchstaben mit Akzenten und Umlaute falsch sein können',
};

const index: Sentences = {
  'the document index in {folder} is damaged; your files themselves are as they were. Close every Reprise, then start it again or say: reprise index update. It reads them again':
    'Das Verzeichnis der Dokumente in {folder} ist beschädigt; Ihre Dateien selbst sind, wie sie waren. Schließen Sie jedes Reprise, und starten Sie es neu, oder sagen Sie: reprise index update. Dann werden sie noch einmal gelesen',
  'the document index in {folder} was written by a newer Reprise (format {found}, this one knows {known}); update Reprise, or delete this folder and add your files again':
    'Das Verzeichnis der Dokumente in {folder} hat ein neueres Reprise geschrieben (Format {found}, dieses kennt {known}); erneuern Sie Reprise, oder löschen Sie diesen Ordner, und fügen Sie Ihre Dateien neu hinzu',
  'the disk with {folder} is full, so that not all of the last change was kept; free some space and try again':
    'Die Platte mit {folder} ist voll, sodass nicht die ganze letzte Änderung behalten wurde; schaffen Sie Platz, und versuchen Sie es noch einmal',
  '{folder} cannot be written; give yourself the right to write this folder and the files in it':
    '{folder} kann nicht geschrieben werden; geben Sie sich das Recht, diesen Ordner und die Dateien darin zu schreiben',
  'the document index in {folder} is being written by another Reprise; wait until it is done there, or close it':
    'In das Verzeichnis der Dokumente in {folder} schreibt gerade ein anderes Reprise; warten Sie, bis es dort fertig ist, oder schließen Sie es',
  'the keyword index in {folder} failed ({source}); it is made anew when Reprise starts again':
    'Das Verzeichnis der Wörter in {folder} ist gescheitert ({source}); es wird neu gemacht, wenn Reprise wieder startet',
  'the document index in {folder} cannot be used ({source}); if starting again does not help, report this':
    'Das Verzeichnis der Dokumente in {folder} ist nicht zu gebrauchen ({source}); wenn ein Neustart nicht hilft, melden Sie das',
  '{path} is neither a file nor a folder': '{path} ist weder eine Datei noch ein Ordner',
  '{path} is where Reprise keeps its own files; choose another folder':
    'In {path} hat Reprise seine eigenen Dateien; wählen Sie einen anderen Ordner',
  '{path}: its name is not valid Unicode; rename it':
    '{path}: Der Name ist kein gültiges Unicode; ändern Sie ihn',
  '{path} is the index itself; choose another folder':
    '{path} ist das Verzeichnis selbst; wählen Sie einen anderen Ordner',
  'this is not in the index (any more)': 'Das ist nicht (mehr) im Verzeichnis',
  'this document is not in the index (any more)': 'Dieses Dokument ist nicht (mehr) im Verzeichnis',
  'passages are found by their words only; to find them by meaning too: reprise models fetch all-minilm-l6-v2':
    'Textstellen werden nur nach ihren Wörtern gefunden; damit sie auch nach ihrer Bedeutung gefunden werden: reprise models fetch all-minilm-l6-v2',
  'The keyword index was damaged and was made anew.':
    'Das Verzeichnis der Wörter war beschädigt und wurde neu gemacht.',
  'The keyword index was not complete and was made anew.':
    'Das Verzeichnis der Wörter war nicht vollständig und wurde neu gemacht.',
  'The index of documents was damaged and is begun anew. {again}':
    'Das Verzeichnis der Dokumente war beschädigt und wird neu begonnen. {again}',
  '{path} is not there; what was read of it stays until it is back or removed from the index':
    '{path} ist nicht da; was daraus gelesen wurde, bleibt, bis es wieder da ist oder aus dem Verzeichnis entfernt wird',
  '{path}: {why}; what was read of it stays': '{path}: {why}; was daraus gelesen wurde, bleibt',
  '{path} cannot be watched: {error}': '{path} kann nicht beobachtet werden: {error}',
};

/** What the library says of chats and documents, in German. */
export const libraryErrors: Sentences = { ...chats, ...documents, ...notes, ...index };
