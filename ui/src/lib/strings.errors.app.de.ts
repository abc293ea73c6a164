// What the window's own program says when something fails or is worth knowing. In German, by what it says in English.
import type { Sentences } from './strings.errors.de';

/** What the window's program says, in German. */
export const appErrors: Sentences = {
  'this answer has no question; ask one': 'Zu dieser Antwort gibt es keine Frage; stellen Sie eine',
  '{url} is not a link: {why}': '{url} ist kein Link: {why}',
  'links to {scheme}: are not opened; only web pages and mail addresses are':
    'Links zu {scheme}: werden nicht geöffnet, nur Webseiten und Mailadressen',
  '{id} is no model that can be fetched from here': '{id} ist kein Modell, das von hier geholt werden kann',
  'there are too many models named {name}; rename the file and add it again':
    'Es gibt zu viele Modelle mit dem Namen {name}; benennen Sie die Datei um, und fügen Sie sie noch einmal hinzu',
  'measuring while idle is switched off (REPRISE_TUNE=off); start Reprise without that, or use: reprise models tune':
    'Das Messen im Leerlauf ist ausgeschaltet (REPRISE_TUNE=off); starten Sie Reprise ohne das, oder benutzen Sie: reprise models tune',
  '{name} is not on this machine. Choose another model in the settings, or add a GGUF file there; {page} has one':
    '{name} ist nicht auf diesem Gerät. Wählen Sie in den Einstellungen ein anderes Modell, oder fügen Sie dort eine GGUF-Datei hinzu; auf {page} gibt es eine',
  'the file of {name} is gone from {path}. Put it back and choose Try again, or choose another model in the settings':
    'Die Datei von {name} ist nicht mehr in {path}. Legen Sie sie zurück und wählen „Noch einmal versuchen“, oder wählen Sie in den Einstellungen ein anderes Modell',
  'there is no model named {name} any more. Choose another one in the settings':
    'Ein Modell mit dem Namen {name} gibt es nicht mehr. Wählen Sie in den Einstellungen ein anderes',
  'cannot write {path}: {error}; choose another place':
    '{path} kann nicht geschrieben werden: {error}; wählen Sie einen anderen Ort',
  'answering failed by a fault in Reprise; your chats are safe; try again':
    'Das Beantworten ist durch einen Fehler in Reprise gescheitert; Ihre Chats sind sicher; versuchen Sie es noch einmal',
  '{what} failed by a fault in Reprise; your chats are safe; choose Try again to load the model anew':
    '{what} ist durch einen Fehler in Reprise gescheitert; Ihre Chats sind sicher; wählen Sie „Noch einmal versuchen“, um das Modell neu zu laden',
  'the system has no room for another answer ({error}); stop one, or close other programs':
    'Das System hat keinen Platz für noch eine Antwort ({error}); halten Sie eine an, oder schließen Sie andere Programme',
  'the program is ending; start it again': 'Das Programm wird gerade beendet; starten Sie es neu',
  'no model is loaded; choose one in the settings':
    'Kein Modell ist geladen; wählen Sie eines in den Einstellungen',
  'no model is loaded that the prompt could be shown with; choose one in the settings':
    'Kein Modell ist geladen, mit dem der Prompt gezeigt werden könnte; wählen Sie eines in den Einstellungen',
  'the {setting} must be {range}': '{setting}: Erlaubt ist nur {range}',
  '{name} is empty; there is nothing to ask about': '{name} ist leer; es gibt nichts, wonach zu fragen wäre',
  '{name} has {size} MB; a file of more than {most} MB is added in Documents, with Add files':
    '{name} hat {size} MB; eine Datei von mehr als {most} MB wird unter Dokumente hinzugefügt, mit „Dateien hinzufügen“',
  'no document can be asked about yet; add some in Documents, or wait until they are read':
    'Noch kann nach keinem Dokument gefragt werden; fügen Sie unter Dokumente welche hinzu, oder warten Sie, bis sie gelesen sind',
  '{name} cannot be asked about: {why}': 'Nach {name} kann nicht gefragt werden: {why}',
  '{name} is still being read; ask again when it is ready, or take it off the message':
    '{name} wird noch gelesen; fragen Sie noch einmal, wenn es bereit ist, oder nehmen Sie es von der Nachricht',
  '{id} is no number of a document': '{id} ist keine Nummer eines Dokuments',
  '{path} is not among your documents (any more); add it in Documents':
    '{path} ist nicht (mehr) unter Ihren Dokumenten; fügen Sie es unter Dokumente hinzu',
  '{path} is not there any more; look at the models again':
    '{path} ist nicht mehr da; sehen Sie noch einmal nach den Modellen',
  'a file comes as bytes': 'Eine Datei kommt als Bytes',
  'your settings could not be read ({why}); the defaults are in use until you change them':
    'Ihre Einstellungen konnten nicht gelesen werden ({why}); bis Sie sie ändern, gelten die Voreinstellungen',
  'this system has no font for Chinese, Japanese and Korean, so their letters show as boxes; install one (Debian, Ubuntu: apt install fonts-noto-cjk) and start Reprise again':
    'Dieses System hat keine Schrift für Chinesisch, Japanisch und Koreanisch, sodass deren Zeichen als Kästchen erscheinen; installieren Sie eine (Debian, Ubuntu: apt install fonts-noto-cjk), und starten Sie Reprise neu',
  "the window of {asked} tokens in the settings is wider than this model's own; it has {trained} tokens now":
    'Das Fenster von {asked} Tokens in den Einstellungen ist größer als das eigene dieses Modells; es hat jetzt {trained} Tokens',
  "the memory for context in the settings holds {held} of the window's {asked} tokens; it has {now} tokens now":
    'Der Speicher für Kontext in den Einstellungen fasst {held} der {asked} Tokens des Fensters; es hat jetzt {now} Tokens',
  '{folder} does not count: the skill {name} is already in {by}':
    '{folder} zählt nicht: Den Skill {name} gibt es schon in {by}',
};
