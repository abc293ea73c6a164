// The words of the inspector and of the list of what is kept on disk, in German.
import { formatBytes, formatDecimal, formatInteger, plural } from './format';
import type { InspectorStrings, KeptStrings } from './strings.inspector';

const counted = (count: number, one: string, other: string): string =>
  `${formatInteger(count)} ${plural(count, { one, other })}`;
const tokens = (count: number): string => counted(count, 'Token', 'Tokens');
const relative = new Intl.RelativeTimeFormat('de', { numeric: 'auto' });

/** "vor 3 Minuten": how long something is past, in the largest unit that leaves at least 1. */
function ago(ms: number): string {
  const minutes = Math.floor(Math.max(0, ms) / 60_000);
  if (minutes < 1) return 'gerade eben';
  if (minutes < 60) return relative.format(-minutes, 'minute');
  if (minutes < 24 * 60) return relative.format(-Math.floor(minutes / 60), 'hour');
  return relative.format(-Math.floor(minutes / (24 * 60)), 'day');
}

/** "4 ms", "1,2 s": a duration that may be very short. */
function duration(ms: number): string {
  if (ms > 0 && ms < 1) return 'unter 1 ms';
  if (ms < 1000) return `${formatInteger(ms)} ms`;
  return `${formatDecimal(Math.round(ms / 100) / 10)} s`;
}

/** What the inspector says, in German. */
export const german: InspectorStrings = {
  title: 'Wie dieser Prompt gelesen wurde',
  open: (line) => `${line}. Zeigen, wie dieser Prompt gelesen wurde`,
  loading: 'Wird nachgesehen …',
  failed: (reason) => `Das kann nicht gezeigt werden: ${reason}`,
  isNow:
    'Wie dieser Prompt gelesen wurde, ist nicht mehr bekannt: Das Modell wurde seitdem neu geladen. So würde er jetzt gelesen.',
  summary: (reused, total) => `${formatInteger(reused)} von ${tokens(total)} wiederverwendet`,
  kinds: {
    prefix: 'Gleicher Anfang',
    moved: 'Von anderswo wiederverwendet',
    recomputed: 'Wiederverwendet, neu berechnet',
    new: 'Neu',
  },
  kindHints: {
    prefix: 'Bekannt, wie es dasteht: Alles davor war gleich.',
    moved: 'An einer anderen Stelle schon gelesen und hierher verschoben.',
    recomputed: 'Ebenfalls verschoben und an seiner Stelle neu berechnet.',
    new: 'Nicht bekannt und berechnet.',
  },
  count: formatInteger,
  tokens,

  prompt: 'Der Prompt',
  promptLabel: 'Der Prompt, wie er gesendet wurde',
  parts: {
    system: 'Systemprompt',
    skill: 'Ein Skill',
    passage: 'Textstelle',
    turn: 'Unterhaltung',
    question: 'Frage',
  },
  partOf: (part, owner) => (owner === null ? part : `${part} · ${owner}`),
  range: (from, to) =>
    to - from === 1
      ? `Token Nr. ${formatInteger(from + 1)}`
      : `Tokens ${formatInteger(from + 1)} bis ${formatInteger(to)}`,
  inPool: 'im Pool',
  inChunk: (chunk) => `Stück ${chunk}`,

  divergence: 'Wo er anders wurde',
  reasons: {
    whole: 'Nirgends: Alles war bekannt. Nur das letzte Token wird berechnet, wie immer.',
    nothing: 'Beim ersten Token: Nichts, was behalten wird, fängt so an.',
    ended: (at) => `Nach ${tokens(at)}: Dort endete, was schon gelesen war. Neu ist, was folgt:`,
    differs: (at) => `Nach ${tokens(at)}: Was schon gelesen war, ging anders weiter.`,
    letGo: (at) =>
      `Nach ${tokens(at)}: Der Rest war schon gelesen, aber was dafür berechnet wurde, wird nicht mehr behalten oder darf nicht benutzt werden.`,
  },
  before: 'Vorher',
  now: 'Jetzt',

  chunks: 'Stücke dahinter',
  noChunks: 'Keine von der Platte: Was wiederverwendet wurde, war noch im Pool.',
  noReuse: 'Keine: Nichts wurde wiederverwendet.',
  columns: {
    chunk: 'Stück',
    used: 'Benutzt',
    owner: 'Besitzer',
    tier: 'Wo',
    age: 'Alter',
    size: 'Größe',
    score: 'Wert',
  },
  usedOf: (used, all) =>
    used === all ? formatInteger(all) : `${formatInteger(used)} von ${formatInteger(all)}`,
  memory: 'Speicher',
  flash: 'Platte',
  gone: 'Seitdem freigegeben',
  ago,
  size: formatBytes,
  score: (score) => formatDecimal(Math.round(score * 100) / 100),
  scoreHint:
    'Millisekunden, die es voraussichtlich spart, ein Kilobyte davon zu behalten. Der kleinste Wert geht zuerst.',

  calls: 'Aufrufe',
  purposes: {
    read: 'liest Tokens der Reihe nach',
    fillIn: 'berechnet neue Tokens zwischen bekannten',
    probe: 'fragt, worauf die Frage achtet',
    recompute: 'berechnet neue Tokens, und bekannte noch einmal, an ihren Stellen',
  },
  call: (count, each, does) => `${count > 1 ? `${formatInteger(count)} × ` : ''}${each}: ${does}`,

  time: 'Zeit bis zum ersten Token',
  duration,
  steps: {
    waiting: 'Warten auf eine Bahn',
    matching: 'Abgleichen',
    loading: 'Laden',
    turning: 'Drehen',
    computing: 'Rechnen',
    storing: 'Speichern',
    rest: 'Anderes',
  },
  hidden: (ms) => `${duration(ms)} hinter dem Rechnen verborgen`,
  timeLabel: (total, parts) => `${total}: ${parts.join(', ')}`,
};

const kinds: Record<string, string> = {
  chat: 'Chat',
  document: 'Dokument',
  skill: 'Skill',
  program: 'Programm',
};

/** What the settings say of what is kept on disk, in German. */
export const germanKept: KeptStrings = {
  title: 'Auf der Platte behalten',
  sum: (bytes, chunks) => `${formatBytes(bytes)} in ${counted(chunks, 'Stück', 'Stücken')}`,
  none: 'Noch wird nichts behalten.',
  hint: 'Was das Modell für gelesene Texte berechnet hat, damit es sie nicht noch einmal lesen muss. Ihre Chats hängen nicht davon ab.',
  looking: 'Wird nachgesehen …',
  kinds,
  kind: (kind) => kinds[kind] ?? kind,
  programs: {
    ask: 'Fragen im Terminal',
    chat: 'Chats im Terminal',
    serve: 'Andere Programme, über den Server',
  },
  owner: (chunks, bytes) => `${counted(chunks, 'Stück', 'Stücke')}, ${formatBytes(bytes)}`,
  eraseOwner: (name) => `Löschen, was für ${name} behalten wird`,
  erase: 'Löschen',
  eraseAll: 'Alles Behaltene löschen',
  sure: 'Endgültig löschen?',
  cancel: 'Abbrechen',
  chunk: (count, bytes, age) => `${tokens(count)}, ${formatBytes(bytes)}, ${age}`,
  pin: 'Festhalten',
  pinned: 'Festgehalten',
  pinLabel: (chunk, isPinned) => `${isPinned ? 'Festgehalten' : 'Festhalten'}: Stück ${chunk}`,
  evict: 'Freigeben',
  evictLabel: (chunk) => `Stück ${chunk} freigeben`,
  moved: 'aus verschobenem Text',
  more: (count) => `und ${formatInteger(count)} weitere`,
  ago,
};
