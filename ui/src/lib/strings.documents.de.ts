// The words of the screen of documents, in German.
import { formatBytes, formatInteger, plural } from './format';
import { told } from './messages';
import type { DocumentStrings } from './strings.documents';

const counted = (count: number, one: string, other: string): string =>
  `${formatInteger(count)} ${plural(count, { one, other })}`;
const documents = (count: number): string => counted(count, 'Dokument', 'Dokumente');
const passages = (count: number): string => counted(count, 'Textstelle', 'Textstellen');

/** What is said of documents, in German. */
export const german: DocumentStrings = {
  title: 'Dokumente',
  intro:
    'Worin das Modell nachsehen darf. Schreiben Sie @ in eine Nachricht, um nach einem Dokument oder nach allen zu fragen.',
  private: 'Nichts verlässt dieses Gerät.',
  empty:
    'Fügen Sie Dateien oder Ordner hinzu und fragen Sie nach ihrem Inhalt: Antworten sagen, aus welcher Textstelle sie kommen.',
  addFiles: 'Dateien hinzufügen …',
  addFolder: 'Ordner hinzufügen …',
  added: (count) => `${documents(count)} hinzugefügt.`,
  folderAdded: 'Ordner hinzugefügt.',
  attached: (count) => `${counted(count, 'Datei', 'Dateien')} hinzugefügt.`,
  notListed: (reason) => `Die Dokumente können nicht gezeigt werden: ${reason}`,
  loading: 'Wird nachgesehen …',
  dropHere: 'Dateien lassen sich hierher ziehen',
  keptCopy: (name) => `${name}, Kopie einer abgelegten Datei`,

  status: 'Verzeichnis',
  work: (work) => {
    switch (work.at) {
      case 'idle':
        return 'Auf dem neuesten Stand';
      case 'stopped':
        return 'Angehalten';
      case 'failed':
        return told(work.message);
      case 'looking':
        return `${work.path} wird durchgesehen`;
      case 'reading':
        return `${formatInteger(work.done)} von ${formatInteger(work.total)} gelesen: ${work.name}`;
      case 'embedding':
        return `Was Textstellen bedeuten, ${formatInteger(work.done)} von ${formatInteger(work.total)}`;
    }
  },
  progress: 'Fortschritt des Verzeichnisses',
  readyCount: documents,
  passageCount: passages,
  failedCount: (count) => `${formatInteger(count)} ohne Text`,
  waitingCount: (count) => `${formatInteger(count)} warten`,
  wordsOnly: (count) => `${formatInteger(count)} bisher nur nach ihren Wörtern zu finden`,
  bytes: (bytes) => `${formatBytes(bytes)} auf der Platte`,
  stop: 'Anhalten',
  continue: 'Fortsetzen',
  lookAgain: 'Neu durchsehen',

  sources: 'Hinzugefügt',
  sourceKind: (isFolder) => (isFolder ? 'Ordner' : 'Datei'),
  allSources: 'Alle zeigen',
  showOnly: (path) => `Nur zeigen, was in ${path} ist`,
  notThere: 'zurzeit nicht da',
  remove: 'Entfernen',
  removeSource: (path) => `${path} entfernen`,
  sure: 'Alles, was daraus gelesen wurde, wird gelöscht, auch die Stücke auf der Platte. Die Dateien bleiben, wo sie sind.',
  cancel: 'Abbrechen',

  list: 'Alle Dokumente',
  search: 'Dokumente nach Namen suchen',
  filter: 'Welche Dokumente',
  filters: {
    all: 'Alle',
    ready: 'Bereit',
    waiting: 'Wartend',
    failed: 'Ohne Text',
    skipped: 'Andere Arten',
  },
  found: (shown, total) =>
    shown < total
      ? `Die ersten ${formatInteger(shown)} von ${counted(total, 'Dokument', 'Dokumenten')}`
      : documents(total),
  nothing: 'Kein Dokument passt.',
  states: {
    ready: '',
    waiting: 'wartet darauf, gelesen zu werden',
    failed: 'ohne Text',
    skipped: 'eine Art, die nicht gelesen wird',
  },
  size: formatBytes,
  ocr: 'Text erkannt',
  password: (name) => `Passwort von ${name}`,
  passwordShort: 'Passwort',
  unlock: 'Aufschließen',

  view: {
    openFile: 'Datei öffnen',
    loading: 'Wird gelesen …',
    cited: 'Die Textstelle, die für die Antwort gelesen wurde',
    gone: (reason) =>
      `Das Dokument kann nicht mehr gezeigt werden: ${reason} Dies ist die Textstelle, wie das Modell sie bekam.`,
    failed: (reason) => `Das Dokument kann nicht gezeigt werden: ${reason}`,
    changed: 'Das Dokument hat sich seitdem geändert: Die genannte Textstelle steht so nicht mehr darin.',
    none: 'Es enthält keinen Text.',
    earlier: (count) => `${passages(count)} davor zeigen`,
    later: (count) => `${passages(count)} danach zeigen`,
    ocr: 'in einem Bild erkannt',
    headings: (headings) => headings.join(' › '),
  },
};
