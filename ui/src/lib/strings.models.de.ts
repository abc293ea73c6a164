// The words of the screen of models, in German.
import { formatBytes, formatInteger, formatPercent, plural } from './format';
import type { ModelStrings } from './strings.models';

const tokens = (count: number): string =>
  `${formatInteger(count)} ${plural(count, { one: 'Token', other: 'Tokens' })}`;

/** What is said of models, in German. */
export const german: ModelStrings = {
  title: 'Modelle',
  intro: 'Welches Modell antwortet. Ein Wechsel lässt alle Chats, wie sie sind.',
  loading: 'Modelle werden gesucht …',
  notListed: (reason) => `Die Modelle können nicht gezeigt werden: ${reason}`,
  groups: {
    here: 'Auf diesem Gerät',
    found: 'In anderen Programmen gefunden',
    known: 'Bekannte Modelle',
  },
  groupHints: {
    here: '',
    found: 'Sie bleiben, wo sie sind; nichts wird kopiert.',
    known: 'Nicht auf diesem Gerät.',
  },
  nothingHere: 'Auf diesem Gerät ist noch kein Modell.',
  inUse: 'In Gebrauch',
  states: {
    loading: 'Wird geladen',
    ready: 'Bereit',
    failed: 'Ließ sich nicht laden',
  },
  foundIn: (program) => `bei ${program}`,
  size: formatBytes,
  trained: (count) => `Fenster von ${tokens(count)}`,
  needs: (bytes, window) =>
    window === null
      ? `braucht etwa ${formatBytes(bytes)}`
      : `braucht etwa ${formatBytes(bytes)} bei einem Fenster von ${formatInteger(window)}`,
  fits: { fits: 'Passt', tight: 'Knapp', tooLarge: 'Zu groß' },
  fitHints: {
    fits: 'Es passt gut in den Speicher dieses Geräts.',
    tight: 'Es passt, lässt aber wenig Speicher übrig.',
    tooLarge: 'Dieses Gerät hat zu wenig Speicher dafür.',
  },
  use: 'Benutzen',
  useLabel: (name) => `${name} benutzen`,
  remove: 'Entfernen',
  removeLabel: (name) => `${name} entfernen`,
  sure: 'Es verschwindet aus dieser Liste; seine Datei bleibt.',
  cancel: 'Abbrechen',
  add: 'GGUF-Datei hinzufügen …',
  added: (name) => `${name} wurde hinzugefügt.`,
  licence: (name) => `Lizenz: ${name}`,
  page: 'Mehr dazu',
  pageLabel: (name) => `Mehr dazu: ${name}`,
  fetch: 'Holen',
  fetchLabel: (name) => `${name} holen`,
  fetching: (name) => `${name} wird geholt`,
  fetched: ({ doneBytes, totalBytes }) =>
    totalBytes === null
      ? formatBytes(doneBytes)
      : `${formatBytes(doneBytes)} von ${formatBytes(totalBytes)} (${formatPercent(doneBytes / Math.max(totalBytes, 1))})`,
  stop: 'Anhalten',
  stopLabel: (name) => `Holen von ${name} anhalten`,
  measure: 'Sein KV-Format messen',
  measureHint:
    'Findet heraus, mit wie wenigen Bits das Gelesene auskommt, ohne dass Antworten schlechter werden. Das dauert einige Minuten.',
  measuring: (activity, share) => `${activity}, ${formatPercent(share)}`,
  measuringLabel: 'Fortschritt der Messung',
};
