// Every word of the conversation and the composer, for the eye and for screen readers, in one place.
import type { DocumentState } from './bindings';
import { formatDecimal, formatInteger, plural } from './format';
import { inLanguage } from './language';
import { german } from './strings.conversation.de';
import { seconds } from './strings.time';

const counted = (value: number, one: string, other: string): string =>
  `${formatInteger(value)} ${plural(value, { one, other })}`;

/** What the conversation says, in English. */
export const english = {
  conversation: 'Conversation',
  you: 'You',
  assistant: 'Reprise',
  jumpToLatest: 'Jump to the latest',

  // Announced politely, once, when an answer ends.
  answerFinished: 'Answer finished',
  answerStopped: 'Answer stopped',
  answerCut: 'Answer ended early',
  answerFailed: (error: string): string => `The answer failed. ${error}`,

  copy: 'Copy',
  copied: 'Copied',
  copyFailed: 'Could not copy',
  copyMessage: 'Copy message',
  copyAnswer: 'Copy answer',
  copyCode: (language: string): string => (language === '' ? 'Copy code' : `Copy ${language} code`),
  regenerate: 'Regenerate',
  edit: 'Edit message',
  answerThis: 'Answer this',
  continueAnswer: 'Continue',
  tryAgain: 'Try again',
  stop: 'Stop',
  waitForAnswer: 'Wait until the answer is finished, or stop it',
  showAll: 'Show all',
  showLess: 'Show less',

  editing: 'Edit your message',
  editingHelp: 'Enter saves and asks again, Shift+Enter breaks the line, Esc cancels.',
  save: 'Save',
  cancel: 'Cancel',

  branches: 'Versions of this turn',
  previousBranch: 'Previous version',
  nextBranch: 'Next version',
  branchPosition: (place: number, total: number): string =>
    `${formatInteger(place)} / ${formatInteger(total)}`,
  branchPositionLong: (place: number, total: number): string =>
    `Version ${formatInteger(place)} of ${formatInteger(total)}`,

  queued: 'Waiting for its turn…',
  asking: 'Waiting for your decision…',
  loading: 'Loading the model…',
  writing: 'Writing…',
  reading: 'Reading the prompt',
  readingUnknown: 'Reading the prompt…',
  readingProgress: (done: number, total: number, secondsLeft: number | null): string => {
    const text = `Reading ${formatInteger(done)} of ${counted(total, 'token', 'tokens')}`;
    return secondsLeft === null ? text : `${text} – ${seconds(Math.max(1, Math.ceil(secondsLeft)))} left`;
  },

  stopped: 'Stopped',
  limit: 'Reached the most tokens an answer may have',
  window: 'The model’s window is full',
  repeating: 'Ended because it only repeated itself',
  interrupted: 'Cut short when the program ended',
  failed: 'The answer failed.',

  firstToken: (ms: number): string => `${seconds(ms / 1000)} to first token`,
  speed: (tokensPerSecond: number): string =>
    `${tokensPerSecond < 10 ? formatDecimal(Math.round(tokensPerSecond * 10) / 10) : formatInteger(tokensPerSecond)} tokens/s`,
  reused: (reused: number, total: number): string =>
    reused === 0
      ? `${counted(total, 'prompt token', 'prompt tokens')}, none reused`
      : `${formatInteger(reused)} of ${counted(total, 'prompt token', 'prompt tokens')} reused`,
  reusedParts: (prefix: number, elsewhere: number): string =>
    ` (${formatInteger(prefix)} prefix, ${formatInteger(elsewhere)} elsewhere)`,
  saved: (ms: number): string => ` – saved ${seconds(ms / 1000)}`,

  codeRegion: (language: string): string => (language === '' ? 'Code' : `Code, ${language}`),
  plainCode: 'Text',
  table: 'Table',
  formula: 'Formula',
  taskDone: 'Done',
  taskOpen: 'Not done',
  image: (alt: string): string => (alt === '' ? 'Image' : `Image: ${alt}`),

  composer: 'Message',
  composerPlaceholder: 'Ask anything',
  composerHelp: 'Enter sends, Shift+Enter breaks the line. @ picks a document, / at the beginning a skill.',
  send: 'Send',
  stopAnswer: 'Stop the answer',
  sendWhileBusy: 'You can send this once the answer is finished or stopped.',
  draftTokens: (tokens: number): string => counted(tokens, 'token', 'tokens'),
  longText: (characters: number): string => `Long text, ${counted(characters, 'character', 'characters')}`,
  removeLongText: 'Remove the long text',

  add: 'Add documents and skills',
  attachFiles: 'Attach files…',
  addDocument: 'Documents',
  addSkill: 'Skills',
  chips: 'Asked with',
  chipStates: {
    ready: '',
    waiting: 'reading…',
    failed: 'without text',
    skipped: 'not read',
  } satisfies Record<DocumentState, string>,
  copying: 'copying…',
  allDocuments: 'All documents',
  allDocumentsHint: 'Looks for passages in everything that was added',
  removeChip: (name: string): string => `Remove ${name}`,
  waitForFiles: 'The message can be sent as soon as the files are copied.',
  mentionDocuments: 'Documents',
  mentionSkills: 'Skills',
  noDocument: (query: string): string =>
    query === '' ? 'No documents were added yet.' : `No document fits “${query}”.`,
  noSkill: (query: string): string => (query === '' ? 'No skill is on.' : `No skill fits “${query}”.`),

  read: (passages: number, documents: number): string =>
    `Read: ${counted(passages, 'passage', 'passages')} of ${counted(documents, 'document', 'documents')}`,
  readEarlier: (count: number): string =>
    `${counted(count, 'earlier question', 'earlier questions')} of this chat`,
  withSkills: (names: string[]): string =>
    `With the ${plural(names.length, { one: 'skill', other: 'skills' })} ${names.join(', ')}`,
  cited: 'cited',
  given: 'What the question was given',
  openGiven: (label: string): string => `Show ${label}`,
  inFolder: (label: string, folder: string): string => `${label} (in ${folder})`,

  steps: 'Steps of this answer',
  step: {
    calls: (tool: string): string => `Calls ${tool}…`,
    broken: (reason: string): string => `A call that cannot be understood: ${reason}`,
    starting: (script: string): string => `Runs ${script}…`,
    skill: (name: string, tokens: number): string =>
      `Uses the skill ${name} (${counted(tokens, 'token', 'tokens')})`,
    skillLeftOut: (name: string): string => `The skill ${name} has no room in the window`,
    reference: (file: string): string => `Read ${file}`,
    referenceCut: (file: string): string => `Read the beginning of ${file}, which is too long`,
    script: (script: string, ending: string, ms: number): string =>
      `Ran ${script}: ${ending} (${seconds(ms / 1000)})`,
    server: (tool: string): string => `Called ${tool}`,
    serverFailed: (tool: string): string => `${tool} failed`,
    refused: (reason: string): string => `Refused: ${reason}`,
    outOfSteps: (steps: number): string => `Called tools ${formatInteger(steps)} times, as often as it may`,
    arguments: 'With what',
    output: 'Output',
    whatItWrote: 'What it wrote',
  },
};

/** All of it, in whatever language. */
export type ConversationStrings = typeof english;

/** What the conversation says. */
export const conversationStrings: ConversationStrings = inLanguage(english, german);
