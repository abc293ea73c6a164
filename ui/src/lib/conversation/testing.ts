// Values for tests. Nothing of the app imports this.
import type { AnswerStats, Turn } from '../bindings';

export const someStats: AnswerStats = {
  model: 'm',
  promptTokens: 100,
  reusedPrefixTokens: 60,
  reusedElsewhereTokens: 0,
  answerTokens: 50,
  firstTokenMs: 500,
  decodeMs: 1_000,
  savedMs: 0,
};

/** A turn of the person, or whatever `over` says. */
export const aTurn = (over: Partial<Turn> = {}): Turn => ({
  id: 1,
  chat: 1,
  parent: null,
  role: 'user',
  text: 'Hello',
  state: 'done',
  createdMs: 0,
  stats: null,
  error: null,
  branch: { siblings: [over.id ?? 1], index: 0 },
  ...over,
});

/** A finished answer, or whatever `over` says. */
export const anAnswer = (over: Partial<Turn> = {}): Turn =>
  aTurn({ id: 2, role: 'assistant', text: 'Hi', stats: someStats, ...over });
