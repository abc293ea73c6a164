import { describe, expect, it } from 'vitest';
import type { AnswerStats, TurnState } from '../bindings';
import { announcement, canContinue, endText, reuseText, speedText } from './footer';

const stats = (over: Partial<AnswerStats> = {}): AnswerStats => ({
  model: 'm',
  promptTokens: 13_010,
  reusedPrefixTokens: 8_200,
  reusedElsewhereTokens: 4_200,
  answerTokens: 240,
  firstTokenMs: 812,
  decodeMs: 10_000,
  savedMs: 21_040,
  ...over,
});

describe('what was reused', () => {
  it('is told in full', () => {
    expect(reuseText(stats())).toBe(
      '12,400 of 13,010 prompt tokens reused (8,200 prefix, 4,200 elsewhere) – saved 21 s',
    );
  });

  it('has no bracket when nothing was reused elsewhere', () => {
    expect(reuseText(stats({ reusedElsewhereTokens: 0 }))).toBe(
      '8,200 of 13,010 prompt tokens reused – saved 21 s',
    );
  });

  it('says what was saved from a tenth of a second on', () => {
    expect(reuseText(stats({ reusedElsewhereTokens: 0, savedMs: 99 }))).toBe(
      '8,200 of 13,010 prompt tokens reused',
    );
    expect(reuseText(stats({ reusedElsewhereTokens: 0, savedMs: 100 }))).toContain(' – saved 0.1 s');
    expect(reuseText(stats({ savedMs: 125_000 }))).toContain(' – saved 2 min 5 s');
  });

  it('can be nothing', () => {
    const none = stats({ promptTokens: 1, reusedPrefixTokens: 0, reusedElsewhereTokens: 0, savedMs: 500 });
    expect(reuseText(none)).toBe('1 prompt token, none reused');
  });
});

describe('how fast it was', () => {
  it('is the time to the first token and the speed after it', () => {
    expect(speedText(stats())).toBe('0.8 s to first token · 24 tokens/s');
    expect(speedText(stats({ answerTokens: 35 }))).toBe('0.8 s to first token · 3.5 tokens/s');
  });

  it('has no speed where nothing was written', () => {
    expect(speedText(stats({ answerTokens: 0, decodeMs: 0 }))).toBe('0.8 s to first token');
  });
});

describe('an answer that ended', () => {
  const states: [TurnState, string | null, boolean, string][] = [
    ['writing', null, false, ''],
    ['done', null, false, 'Answer finished'],
    ['stopped', 'Stopped', true, 'Answer stopped'],
    [
      'limit',
      'Reached the most tokens an answer may have',
      true,
      'Answer ended early. Reached the most tokens an answer may have',
    ],
    ['window', 'The model’s window is full', false, 'Answer ended early. The model’s window is full'],
    [
      'repeating',
      'Ended because it only repeated itself',
      false,
      'Answer ended early. Ended because it only repeated itself',
    ],
    [
      'interrupted',
      'Cut short when the program ended',
      true,
      'Answer ended early. Cut short when the program ended',
    ],
    ['failed', null, false, 'The answer failed. Out of memory.'],
  ];

  it.each(states)('as %s says why and whether it can go on', (state, text, goesOn, announced) => {
    expect(endText(state)).toBe(text);
    expect(canContinue(state)).toBe(goesOn);
    expect(announcement(state, 'Out of memory.')).toBe(announced);
  });
});
