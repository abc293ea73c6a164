// The words of the conversation and the composer, in German.
import { formatDecimal, formatInteger, plural } from './format';
import type { ConversationStrings } from './strings.conversation';
import { seconds } from './strings.time';

const counted = (value: number, one: string, other: string): string =>
  `${formatInteger(value)} ${plural(value, { one, other })}`;

/** What the conversation says, in German. */
export const german: ConversationStrings = {
  conversation: 'Unterhaltung',
  you: 'Sie',
  assistant: 'Reprise',
  jumpToLatest: 'Zum Neuesten springen',

  answerFinished: 'Antwort fertig',
  answerStopped: 'Antwort angehalten',
  answerCut: 'Antwort endete vorzeitig',
  answerFailed: (error) => `Die Antwort ist fehlgeschlagen. ${error}`,

  copy: 'Kopieren',
  copied: 'Kopiert',
  copyFailed: 'Kopieren ging nicht',
  copyMessage: 'Nachricht kopieren',
  copyAnswer: 'Antwort kopieren',
  copyCode: (language) => (language === '' ? 'Code kopieren' : `${language}-Code kopieren`),
  regenerate: 'Neu erzeugen',
  edit: 'Nachricht bearbeiten',
  answerThis: 'Das beantworten',
  continueAnswer: 'Fortsetzen',
  tryAgain: 'Noch einmal versuchen',
  stop: 'Anhalten',
  waitForAnswer: 'Warten Sie, bis die Antwort fertig ist, oder halten Sie sie an',
  showAll: 'Alles zeigen',
  showLess: 'Weniger zeigen',

  editing: 'Ihre Nachricht bearbeiten',
  editingHelp: 'Enter speichert und fragt neu, Umschalt+Enter bricht die Zeile um, Esc bricht ab.',
  save: 'Speichern',
  cancel: 'Abbrechen',

  branches: 'Fassungen dieses Beitrags',
  previousBranch: 'Vorige Fassung',
  nextBranch: 'Nächste Fassung',
  branchPosition: (place, total) => `${formatInteger(place)} / ${formatInteger(total)}`,
  branchPositionLong: (place, total) => `Fassung ${formatInteger(place)} von ${formatInteger(total)}`,

  queued: 'Wartet, bis sie an der Reihe ist …',
  asking: 'Wartet auf Ihre Entscheidung …',
  loading: 'Das Modell wird geladen …',
  writing: 'Schreibt …',
  reading: 'Der Prompt wird gelesen',
  readingUnknown: 'Der Prompt wird gelesen …',
  readingProgress: (done, total, secondsLeft) => {
    const text = `${formatInteger(done)} von ${counted(total, 'Token', 'Tokens')} gelesen`;
    return secondsLeft === null ? text : `${text} – noch ${seconds(Math.max(1, Math.ceil(secondsLeft)))}`;
  },

  stopped: 'Angehalten',
  limit: 'Länger darf eine Antwort nicht sein',
  window: 'Das Fenster des Modells ist voll',
  repeating: 'Beendet, weil sie sich nur noch wiederholte',
  interrupted: 'Abgebrochen, als das Programm endete',
  failed: 'Die Antwort ist fehlgeschlagen.',

  firstToken: (ms) => `${seconds(ms / 1000)} bis zum ersten Token`,
  speed: (tokensPerSecond) =>
    `${tokensPerSecond < 10 ? formatDecimal(Math.round(tokensPerSecond * 10) / 10) : formatInteger(tokensPerSecond)} Tokens/s`,
  reused: (reused, total) =>
    reused === 0
      ? `${counted(total, 'Prompt-Token', 'Prompt-Tokens')}, nichts wiederverwendet`
      : `${formatInteger(reused)} von ${counted(total, 'Prompt-Token', 'Prompt-Tokens')} wiederverwendet`,
  reusedParts: (prefix, elsewhere) =>
    ` (${formatInteger(prefix)} vom Anfang, ${formatInteger(elsewhere)} von anderswo)`,
  saved: (ms) => ` – ${seconds(ms / 1000)} gespart`,

  codeRegion: (language) => (language === '' ? 'Quelltext' : `Quelltext, ${language}`),
  plainCode: 'Reiner Text',
  table: 'Tabelle',
  formula: 'Formel',
  taskDone: 'Erledigt',
  taskOpen: 'Nicht erledigt',
  image: (alt) => (alt === '' ? 'Bild' : `Bild: ${alt}`),

  composer: 'Nachricht',
  composerPlaceholder: 'Fragen Sie etwas',
  composerHelp:
    'Enter sendet, Umschalt+Enter bricht die Zeile um. @ wählt ein Dokument, / am Anfang einen Skill.',
  send: 'Senden',
  stopAnswer: 'Die Antwort anhalten',
  sendWhileBusy: 'Sie können das senden, sobald die Antwort fertig oder angehalten ist.',
  draftTokens: (tokens) => counted(tokens, 'Token', 'Tokens'),
  longText: (characters) => `Langer Text, ${counted(characters, 'Zeichen', 'Zeichen')}`,
  removeLongText: 'Den langen Text entfernen',

  add: 'Dokumente und Skills hinzufügen',
  attachFiles: 'Dateien anhängen …',
  addDocument: 'Dokumente',
  addSkill: 'Skills',
  chips: 'Gefragt wird mit',
  chipStates: { ready: '', waiting: 'wird gelesen …', failed: 'ohne Text', skipped: 'nicht gelesen' },
  copying: 'wird kopiert …',
  allDocuments: 'Alle Dokumente',
  allDocumentsHint: 'Sucht Textstellen in allem, was hinzugefügt wurde',
  removeChip: (name) => `${name} entfernen`,
  waitForFiles: 'Die Nachricht kann gesendet werden, sobald die Dateien kopiert sind.',
  mentionDocuments: 'Dokumente',
  mentionSkills: 'Skills',
  noDocument: (query) =>
    query === '' ? 'Noch wurden keine Dokumente hinzugefügt.' : `Kein Dokument passt zu „${query}“.`,
  noSkill: (query) => (query === '' ? 'Kein Skill ist eingeschaltet.' : `Kein Skill passt zu „${query}“.`),

  read: (passages, documents) =>
    `Gelesen: ${counted(passages, 'Textstelle', 'Textstellen')} aus ${counted(documents, 'Dokument', 'Dokumenten')}`,
  readEarlier: (count) => `${counted(count, 'frühere Frage', 'frühere Fragen')} dieses Chats`,
  withSkills: (names) =>
    `Mit ${plural(names.length, { one: 'dem Skill', other: 'den Skills' })} ${names.join(', ')}`,
  cited: 'genannt',
  given: 'Was die Frage mitbekam',
  openGiven: (label) => `${label} zeigen`,
  inFolder: (label, folder) => `${label} (im Ordner ${folder})`,

  steps: 'Schritte dieser Antwort',
  step: {
    calls: (tool) => `Ruft ${tool} auf …`,
    broken: (reason) => `Ein Aufruf, der nicht zu verstehen ist: ${reason}`,
    starting: (script) => `Führt ${script} aus …`,
    skill: (name, tokens) => `Benutzt den Skill ${name} (${counted(tokens, 'Token', 'Tokens')})`,
    skillLeftOut: (name) => `Der Skill ${name} hat keinen Platz im Fenster`,
    reference: (file) => `Hat ${file} gelesen`,
    referenceCut: (file) => `Hat den Anfang von ${file} gelesen; der Rest ist zu lang`,
    script: (script, ending, ms) => `Hat ${script} ausgeführt: ${ending} (${seconds(ms / 1000)})`,
    server: (tool) => `Hat ${tool} aufgerufen`,
    serverFailed: (tool) => `${tool} ist fehlgeschlagen`,
    refused: (reason) => `Abgelehnt: ${reason}`,
    outOfSteps: (steps) => `Hat ${formatInteger(steps)}-mal Werkzeuge aufgerufen, so oft wie erlaubt`,
    arguments: 'Womit',
    output: 'Ausgabe',
    whatItWrote: 'Was es schrieb',
  },
};
