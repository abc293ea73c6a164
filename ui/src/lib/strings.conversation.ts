// Every word of the conversation and the composer, for the eye and for screen readers, in one place.
import { formatInteger, plural } from './format';

const counted = (value: number, one: string, other: string): string =>
  `${formatInteger(value)} ${plural(value, { one, other })}`;

/** "0.8 s", "21 s", "3 min 5 s": a duration at the precision a person cares for. */
export function seconds(value: number): string {
  const tenths = Math.round(value * 10) / 10;
  if (tenths === 0) return 'under 0.1 s';
  if (tenths < 10) return `${tenths} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  const rest = whole % 60;
  return rest === 0 ? `${Math.floor(whole / 60)} min` : `${Math.floor(whole / 60)} min ${rest} s`;
}

export const conversationStrings = {
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
    `${tokensPerSecond < 10 ? Math.round(tokensPerSecond * 10) / 10 : formatInteger(tokensPerSecond)} tokens/s`,
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
  composerHelp: 'Enter sends, Shift+Enter breaks the line.',
  send: 'Send',
  stopAnswer: 'Stop the answer',
  sendWhileBusy: 'You can send this once the answer is finished or stopped.',
  draftTokens: (tokens: number): string => counted(tokens, 'token', 'tokens'),
  longText: (characters: number): string => `Long text, ${counted(characters, 'character', 'characters')}`,
  removeLongText: 'Remove the long text',
  noFiles: 'Files cannot be attached yet. You can paste their text instead.',
  dismiss: 'Dismiss',
};
