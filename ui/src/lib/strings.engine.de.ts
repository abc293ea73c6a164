// The words about the engine in the context panel, in German.
import { formatBytes, formatDecimal, formatInteger, formatPercent, plural } from './format';
import type { EngineStrings } from './strings.engine';
import { seconds } from './strings.time';

const counted = (count: number, one: string, other: string): string =>
  `${formatInteger(count)} ${plural(count, { one, other })}`;
const pages = (count: number): string => counted(count, 'Seite', 'Seiten');
const tokens = (count: number): string => counted(count, 'Token', 'Tokens');
const list = new Intl.ListFormat('de', { type: 'conjunction' });

const components: Record<string, string> = {
  backbone: 'Rückgrat',
  embedding: 'Einbettung',
  head: 'Kopf',
  predictor: 'Vorhersage',
  'vision tower': 'Bildteil',
};
const methods: Record<string, string> = {
  off: 'Aus',
  'prompt lookup': 'Nachschlagen im Prompt',
  'draft model': 'Entwurfsmodell',
};

/** What the panel says of the engine, in German. */
export const german: EngineStrings = {
  unnamed: 'Ohne Namen',
  ownWork: { 'reading ahead': 'Vorauslesen', title: 'ein Titel' },
  unknown: 'Unbekannt',
  pages,
  tokens,
  names: (names) => list.format(names),
  percent: (value) => `${formatDecimal(Math.round(value * 10) / 10)} %`,
  sharedOf: (part, whole) =>
    `${formatInteger(part)} von ${formatInteger(whole)} (${formatPercent(part / Math.max(whole, 1))})`,
  refusal: (reason) => `Neue Anfragen werden abgelehnt: ${reason}.`,

  pool: {
    title: 'KV-Pool',
    figure: (held, all) => `${formatInteger(held)} von ${pages(all)}`,
    label: (inUse, kept, free, all) =>
      `Karte von ${pages(all)}: ${formatInteger(inUse)} in Gebrauch, ${formatInteger(kept)} behalten, ${formatInteger(free)} frei`,
    run: (count) => `Jedes Kästchen steht für ${pages(count)}.`,
    hint: 'Zeigen Sie auf ein Kästchen oder einen Namen, um zu sehen, wem die Seiten gehören.',
    page: (first) => `Seite ${formatInteger(first)}`,
    pageRun: (first, last) => `Seiten ${formatInteger(first)}–${formatInteger(last)}`,
    at: (place, holders) => `${place}: ${holders.join(', ')}`,
    holder: (name, isActive) => (isActive ? name : `${name} (behalten)`),
    holderOf: (holder, count) => `${formatInteger(count)} ${holder}`,
    nobody: 'frei',
    runs: (count, runs, more) =>
      `${plural(count, { one: 'Seite', other: 'Seiten' })} ${runs.join(', ')}${more > 0 ? ` und ${formatInteger(more)} weitere Läufe` : ''}`,
    noPages: (holder) => `${holder}: noch keine Seiten`,
    onlyShared: (holder) => `${holder}: alle seine Seiten sind geteilt und als die eines anderen gezeigt`,
    runOf: (first, last) =>
      first === last ? formatInteger(first) : `${formatInteger(first)}–${formatInteger(last)}`,
    inUse: 'In Gebrauch',
    kept: 'Für spätere Prompts behalten',
    free: 'Frei',
    promised: (count) => `${formatInteger(count)} davon sind laufenden Anfragen zugesagt.`,
    owners: 'Besitzer',
    ownersPages: 'Seiten',
    ownersTokens: 'Tokens',
    ownerState: (isActive) => (isActive ? ', in Gebrauch, ' : ', behalten, '),
    ownerPages: (count) => plural(count, { one: ' Seite, ', other: ' Seiten, ' }),
    ownerTokens: (count) => plural(count, { one: ' Token', other: ' Tokens' }),
    none: 'Niemand hält Seiten.',
    showAll: (count) => `${formatInteger(count)} weitere zeigen`,
    showFewer: 'Weniger zeigen',
    highWater: 'Höchststand',
    size: 'Größe',
    sizeOf: (all, page) => `${formatInteger(all)} × ${formatBytes(page)} = ${formatBytes(all * page)}`,
    resident: 'Wirklich belegt',
    format: 'Format',
    formatOf: (format, tokenBytes) => `${format}, ${counted(tokenBytes, 'Byte', 'Bytes')} je Token`,
    pageTokens: 'Eine Seite',
  },

  tiers: {
    title: 'Stufen',
    inUse: 'In Gebrauch',
    kept: 'Speicher-Pool, behalten',
    memory: 'Stücke im Speicher',
    flash: 'Platte',
    size: (bytes, count) => `${formatBytes(bytes)}, ${count}`,
    chunks: (count) => counted(count, 'Stück', 'Stücke'),
    hits: (hits, lookups) => `${formatInteger(hits)} von ${counted(lookups, 'Suche', 'Suchen')} fanden es`,
    dirty: (count) => `${counted(count, 'Stück', 'Stücke')} noch nicht auf die Platte geschrieben`,
    nothingOutside: 'Noch nicht: Außerhalb des Pools ist nichts gespeichert.',
    reused: 'Wiederverwendet',
    reusedHint: 'Prompt-Tokens, deren Schlüssel und Werte schon da waren.',
  },

  prefetch: {
    title: 'Vorausladen',
    none: 'Noch nicht: Nichts wird im Voraus geladen.',
    item: (owner, reason) => `${owner}: ${reason}`,
  },

  images: {
    title: 'Bilder',
    none: 'Noch nicht: Bilder werden nicht gelesen.',
    item: (name, state) => `${name}: ${state}`,
  },

  components: {
    title: 'Bestandteile',
    name: (name) => components[name] ?? name,
    states: {
      resident: 'Im Speicher',
      mapped: 'Aus der Datei eingeblendet',
      released: 'Freigegeben',
      absent: 'Keiner',
    },
    withBytes: (state, bytes) => `${state}, ${formatBytes(bytes)}`,
    heldBy: (names) => `Gehalten von ${names}`,
    request: (id) => `Anfrage ${formatInteger(id)}`,
  },

  lanes: {
    title: 'Bahnen',
    figure: (active, waiting) =>
      [
        ...(active > 0 ? [`${formatInteger(active)} aktiv`] : []),
        ...(waiting > 0 ? [`${formatInteger(waiting)} wartend`] : []),
      ].join(', '),
    none: 'Nichts wird gelesen oder beantwortet.',
    done: (requests, refused) =>
      `${counted(requests, 'Anfrage', 'Anfragen')} erledigt, seit das Modell geladen wurde${refused > 0 ? `, ${formatInteger(refused)} abgelehnt` : ''}`,
    queued: (place) => `Wartet, Nummer ${formatInteger(place)} in der Reihe`,
    waited: (value) => seconds(Math.max(1, Math.floor(value))),
    overtaken: (count) =>
      plural(count, {
        one: 'eine spätere kam zuerst dran',
        other: `${formatInteger(count)} spätere kamen zuerst dran`,
      }),
    reading: (done, all) => `Liest, ${formatInteger(done)} von ${tokens(all)}`,
    reused: (count) => `${formatInteger(count)} wiederverwendet`,
    left: (value) => `noch ${seconds(Math.max(1, Math.ceil(value)))}`,
    answering: (count) => `Antwortet, ${tokens(count)}`,
    speed: (perSecond) =>
      `${perSecond < 10 ? formatDecimal(Math.round(perSecond * 10) / 10) : formatInteger(perSecond)} Tokens/s`,
    prompt: (count, reused) =>
      `Prompt von ${tokens(count)}${reused > 0 ? `, ${formatInteger(reused)} wiederverwendet` : ''}`,
  },

  memory: {
    title: 'Speicher',
    ofLimit: (bytes, limit) => `${formatBytes(bytes)} von ${formatBytes(limit)}`,
    process: 'Dieses Programm',
    available: 'Frei auf diesem Gerät',
    weights: 'Gewichte',
    workspace: 'Arbeitsbereich',
    kv: 'Schlüssel und Werte',
    stalled: 'Warten auf Speicher',
    stalledHint: 'Anteil der letzten 10 s, in dem Programme darauf warteten.',
    speculation: 'Vorausraten',
    method: (method) => methods[method] ?? method,
    accepted: 'Richtig geraten',
  },
};
