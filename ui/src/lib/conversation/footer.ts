// The quiet lines under an answer: how fast it was, what it reused, and why it ended when it did not end by itself.
import type { AnswerStats, TurnState } from '../bindings';
import { told } from '../messages';
import { conversationStrings as strings } from '../strings.conversation';

/** Savings below this are noise. */
const MIN_SAVED_MS = 100;

/** "0.8 s to first token · 24 tokens/s"; the speed only when something was written. */
export function speedText(stats: AnswerStats): string {
  const parts = [strings.firstToken(stats.firstTokenMs)];
  if (stats.answerTokens > 0 && stats.decodeMs > 0) {
    parts.push(strings.speed((stats.answerTokens * 1000) / stats.decodeMs));
  }
  return parts.join(' · ');
}

/** "12,400 of 13,010 prompt tokens reused (8,200 prefix, 4,200 elsewhere) – saved 21 s". */
export function reuseText(stats: AnswerStats): string {
  const { reusedPrefixTokens: prefix, reusedElsewhereTokens: elsewhere } = stats;
  const reused = prefix + elsewhere;
  let text = strings.reused(reused, stats.promptTokens);
  if (elsewhere > 0) text += strings.reusedParts(prefix, elsewhere);
  if (reused > 0 && stats.savedMs >= MIN_SAVED_MS) text += strings.saved(stats.savedMs);
  return text;
}

/** Why an answer ended, or null when it ended by itself (or has not ended). A failure has words of its own. */
export function endText(state: TurnState): string | null {
  switch (state) {
    case 'stopped':
    case 'limit':
    case 'window':
    case 'repeating':
    case 'interrupted':
      return strings[state];
    default:
      return null;
  }
}

/** Whether an answer in this state can go on where it ended. */
export const canContinue = (state: TurnState): boolean =>
  state === 'stopped' || state === 'limit' || state === 'interrupted';

/** What is announced when an answer ends in this state. */
export function announcement(state: TurnState, error: string | null): string {
  switch (state) {
    case 'writing':
      return '';
    case 'done':
      return strings.answerFinished;
    case 'stopped':
      return strings.answerStopped;
    case 'failed':
      return strings.answerFailed(told(error ?? ''));
    default:
      return `${strings.answerCut}. ${strings[state]}`;
  }
}
