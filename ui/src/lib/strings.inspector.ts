// Every word of the inspector, which shows how a prompt was read, and of the list of what is kept on disk.
import type { CallPurpose, PromptPart } from './bindings';
import { formatBytes, formatDecimal, formatInteger, plural } from './format';
import type { Kind, StepName } from './inspector/views';
import { inLanguage } from './language';
import { german, germanKept } from './strings.inspector.de';

const counted = (count: number, one: string, other: string): string =>
  `${formatInteger(count)} ${plural(count, { one, other })}`;
const tokens = (count: number): string => counted(count, 'token', 'tokens');
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** "3 minutes ago": how long something is past, in the largest unit that leaves at least 1. */
function ago(ms: number): string {
  const minutes = Math.floor(Math.max(0, ms) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return relative.format(-minutes, 'minute');
  if (minutes < 24 * 60) return relative.format(-Math.floor(minutes / 60), 'hour');
  return relative.format(-Math.floor(minutes / (24 * 60)), 'day');
}

/** "4 ms", "1.2 s": a duration that may be very short. */
function duration(ms: number): string {
  if (ms > 0 && ms < 1) return 'under 1 ms';
  if (ms < 1000) return `${formatInteger(ms)} ms`;
  return `${formatDecimal(Math.round(ms / 100) / 10)} s`;
}

/** What the inspector says, in English. */
export const english = {
  title: 'How this prompt was read',
  open: (line: string) => `${line}. Show how this prompt was read`,
  loading: 'Looking…',
  failed: (reason: string) => `This cannot be shown: ${reason}`,
  isNow:
    'How this prompt was read is not known any more: the model was loaded anew since. This is how it would be read now.',
  summary: (reused: number, total: number) => `${formatInteger(reused)} of ${tokens(total)} reused`,
  kinds: {
    prefix: 'Same beginning',
    moved: 'Reused from elsewhere',
    recomputed: 'Reused, computed again',
    new: 'New',
  } satisfies Record<Kind, string>,
  kindHints: {
    prefix: 'Known as it stands: everything before it was the same.',
    moved: 'Read at another place before, and moved here.',
    recomputed: 'Moved here as well, and computed again at its place.',
    new: 'Not known, and computed.',
  } satisfies Record<Kind, string>,
  count: formatInteger,
  tokens,

  prompt: 'Prompt',
  promptLabel: 'The prompt as it was sent',
  parts: {
    system: 'System',
    skill: 'Skill',
    passage: 'Passage',
    turn: 'Conversation',
    question: 'Question',
  } satisfies Record<PromptPart, string>,
  partOf: (part: string, owner: string | null) => (owner === null ? part : `${part} · ${owner}`),
  range: (from: number, to: number) =>
    to - from === 1
      ? `Token ${formatInteger(from + 1)}`
      : `Tokens ${formatInteger(from + 1)}–${formatInteger(to)}`,
  inPool: 'in the pool',
  inChunk: (chunk: string) => `chunk ${chunk}`,

  divergence: 'Where it began to differ',
  reasons: {
    whole: 'Nowhere: all of it was known. Only the last token is computed, as always.',
    nothing: 'At its first token: nothing that is kept begins like it.',
    ended: (at: number) => `After ${tokens(at)}: what was read before ended there. What comes next is new:`,
    differs: (at: number) => `After ${tokens(at)}: what was read before went on differently.`,
    letGo: (at: number) =>
      `After ${tokens(at)}: the rest was read before, but what was computed for it is not kept any more, or may not be used.`,
  },
  before: 'Before',
  now: 'Now',

  chunks: 'Chunks behind it',
  noChunks: 'None from the disk: what was reused was still in the pool.',
  noReuse: 'None: nothing was reused.',
  columns: {
    chunk: 'Chunk',
    used: 'Used',
    owner: 'Owner',
    tier: 'Where',
    age: 'Age',
    size: 'Size',
    score: 'Score',
  },
  usedOf: (used: number, all: number) =>
    used === all ? formatInteger(all) : `${formatInteger(used)} of ${formatInteger(all)}`,
  memory: 'Memory',
  flash: 'Disk',
  gone: 'Let go since',
  ago,
  size: formatBytes,
  score: (score: number) => formatDecimal(Math.round(score * 100) / 100),
  scoreHint: 'Milliseconds that keeping a kilobyte is expected to save. The least goes first.',

  calls: 'Calls',
  purposes: {
    read: 'reads tokens in order',
    fillIn: 'computes new tokens between known ones',
    probe: 'asks what the question attends to',
    recompute: 'computes new tokens, and known ones again, at their places',
  } satisfies Record<CallPurpose, string>,
  call: (count: number, each: string, does: string) =>
    `${count > 1 ? `${formatInteger(count)} × ` : ''}${each}: ${does}`,

  time: 'Time to the first token',
  duration,
  steps: {
    waiting: 'Waiting for a lane',
    matching: 'Match',
    loading: 'Load',
    turning: 'Rotate',
    computing: 'Compute',
    storing: 'Store',
    rest: 'Other',
  } satisfies Record<StepName, string>,
  hidden: (ms: number) => `${duration(ms)} hidden behind computing`,
  timeLabel: (total: string, parts: string[]) => `${total}: ${parts.join(', ')}`,
};

/** What the settings say of what is kept on disk, in English. */
export const englishKept = {
  title: 'Kept on disk',
  sum: (bytes: number, chunks: number) => `${formatBytes(bytes)} in ${counted(chunks, 'chunk', 'chunks')}`,
  none: 'Nothing is kept yet.',
  hint: 'What the model computed for texts it read, so that it need not read them again. Your chats do not depend on it.',
  looking: 'Looking…',
  kinds: { chat: 'Chat', document: 'Document', skill: 'Skill', program: 'Program' } as Record<string, string>,
  kind: (kind: string) => englishKept.kinds[kind] ?? kind,
  programs: {
    ask: 'Questions in the terminal',
    chat: 'Chats in the terminal',
    serve: 'Other programs, by the server',
  } as Record<string, string>,
  owner: (chunks: number, bytes: number) => `${counted(chunks, 'chunk', 'chunks')}, ${formatBytes(bytes)}`,
  eraseOwner: (name: string) => `Erase what is kept for ${name}`,
  erase: 'Erase',
  eraseAll: 'Erase everything kept',
  sure: 'Erase for good?',
  cancel: 'Cancel',
  chunk: (count: number, bytes: number, age: string) => `${tokens(count)}, ${formatBytes(bytes)}, ${age}`,
  pin: 'Pin',
  pinned: 'Pinned',
  pinLabel: (chunk: string, isPinned: boolean) => `${isPinned ? 'Pinned' : 'Pin'}: chunk ${chunk}`,
  evict: 'Let go',
  evictLabel: (chunk: string) => `Let go of chunk ${chunk}`,
  moved: 'made from moved text',
  more: (count: number) => `and ${formatInteger(count)} more`,
  ago,
};

/** All of both, in whatever language. */
export type InspectorStrings = typeof english;
export type KeptStrings = typeof englishKept;

/** What the inspector says. */
export const inspectorStrings: InspectorStrings = inLanguage(english, german);

/** What the settings say of what is kept on disk. */
export const keptStrings: KeptStrings = inLanguage(englishKept, germanKept);
