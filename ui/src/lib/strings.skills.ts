// Every word of the screen of skills.
import type { FileKind, Source } from './bindings';
import { formatBytes, formatInteger, plural } from './format';
import { inLanguage } from './language';
import { german } from './strings.skills.de';

const counted = (count: number, one: string, other: string): string =>
  `${formatInteger(count)} ${plural(count, { one, other })}`;

/** What is said of skills, in English. */
export const english = {
  title: 'Skills',
  intro:
    'Instructions for one kind of task each. Write / at the beginning of a message to answer it with a skill.',
  loading: 'Looking…',
  notListed: (reason: string) => `The skills cannot be shown: ${reason}`,
  none: 'There are no skills yet. Put a folder with a SKILL.md file into one of the folders below.',
  cannotCall:
    'The model that is loaded cannot call tools. Choose skills yourself then: write / at the beginning of a message.',
  tools: 'Let the model choose skills and tools by itself',
  toolsHint: 'It is told the names of the skills that are on, and reads those that it needs.',
  list: 'Skills',
  sources: {
    project: 'This project',
    user: 'Yours',
    app: 'Reprise',
  } satisfies Record<Source, string>,
  tokens: (count: number) => counted(count, 'token', 'tokens'),
  files: (count: number) => counted(count, 'file', 'files'),
  warnings: (count: number) => counted(count, 'remark', 'remarks'),
  enable: (name: string) => `Use ${name}`,
  on: 'On',
  off: 'Off',
  use: 'Use in this chat',
  instructions: 'What it tells the model',
  filesTitle: 'Files',
  kinds: {
    reference: 'to be read',
    script: 'script',
    asset: 'material',
  } satisfies Record<FileKind, string>,
  fileSize: formatBytes,
  reading: 'Reading…',
  licence: 'Licence',
  compatibility: 'Needs',
  allowedTools: 'Tools it expects',
  folder: 'Folder',
  trust: 'Scripts may run without asking, until a file changes',
  trustHint: 'Otherwise you are asked each time before a script of this skill runs.',
  troubles: 'Could not be used',
  folders: 'Where skills are looked for',
};

/** All of it, in whatever language. */
export type SkillStrings = typeof english;

/** What is said of skills. */
export const skillStrings: SkillStrings = inLanguage(english, german);
