// The words of the screen of skills, in German.
import { formatBytes, formatInteger, plural } from './format';
import type { SkillStrings } from './strings.skills';

const counted = (count: number, one: string, other: string): string =>
  `${formatInteger(count)} ${plural(count, { one, other })}`;

/** What is said of skills, in German. */
export const german: SkillStrings = {
  title: 'Skills',
  intro:
    'Anweisungen für je eine Art von Aufgabe. Schreiben Sie / an den Anfang einer Nachricht, um sie mit einem Skill beantworten zu lassen.',
  loading: 'Wird nachgesehen …',
  notListed: (reason) => `Die Skills können nicht gezeigt werden: ${reason}`,
  none: 'Es gibt noch keine Skills. Legen Sie einen Ordner mit einer Datei SKILL.md in einen der Ordner unten.',
  cannotCall:
    'Das geladene Modell kann keine Werkzeuge aufrufen. Wählen Sie Skills dann selbst: mit / am Anfang einer Nachricht.',
  tools: 'Das Modell darf Skills und Werkzeuge selbst wählen',
  toolsHint: 'Es erfährt die Namen der eingeschalteten Skills und liest die, die es braucht.',
  list: 'Skills',
  sources: {
    project: 'Dieses Projekt',
    user: 'Ihre',
    app: 'Reprise',
  },
  tokens: (count) => counted(count, 'Token', 'Tokens'),
  files: (count) => counted(count, 'Datei', 'Dateien'),
  warnings: (count) => counted(count, 'Anmerkung', 'Anmerkungen'),
  enable: (name) => `${name} benutzen`,
  on: 'An',
  off: 'Aus',
  use: 'In diesem Chat benutzen',
  instructions: 'Was er dem Modell sagt',
  filesTitle: 'Dateien',
  kinds: {
    reference: 'zum Lesen',
    script: 'Skript',
    asset: 'Material',
  },
  fileSize: formatBytes,
  reading: 'Wird gelesen …',
  licence: 'Lizenz',
  compatibility: 'Braucht',
  allowedTools: 'Werkzeuge, die er erwartet',
  folder: 'Ordner',
  trust: 'Skripte dürfen ohne Nachfrage laufen, bis sich eine Datei ändert',
  trustHint: 'Sonst werden Sie jedes Mal gefragt, bevor ein Skript dieses Skills läuft.',
  troubles: 'Nicht zu gebrauchen',
  folders: 'Wo nach Skills gesucht wird',
};
