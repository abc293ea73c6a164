import { describe, expect, it } from 'vitest';
import { readNumber } from './validate';

describe('a number of the settings', () => {
  it.each([
    ['0.7', 'temperature', 0.7],
    ['0,7', 'temperature', 0.7],
    [' 0 ', 'temperature', 0],
    ['10', 'temperature', 10],
    ['1', 'topP', 1],
    ['.5', 'topP', 0.5],
    ['4096', 'contextTokens', 4096],
    ['', 'contextTokens', null],
    ['  ', 'threads', null],
    ['512', 'kvBudgetMegabytes', 512],
    ['', 'memoryLimitMegabytes', null],
  ] as const)('%j is taken for %s', (text, name, value) => {
    expect(readNumber(text, name)).toEqual({ value });
  });

  it.each([
    ['', 'temperature', 'empty'],
    ['warm', 'temperature', 'notNumber'],
    ['1e3', 'maxAnswerTokens', 'notNumber'],
    ['NaN', 'topP', 'notNumber'],
    ['Infinity', 'temperature', 'notNumber'],
    ['-0.1', 'temperature', 'outOfBounds'],
    ['10.1', 'temperature', 'outOfBounds'],
    ['0', 'topP', 'outOfBounds'],
    ['1.01', 'topP', 'outOfBounds'],
    ['0', 'repetitionPenalty', 'outOfBounds'],
    ['0', 'maxAnswerTokens', 'outOfBounds'],
    ['2.5', 'threads', 'notWhole'],
    ['0', 'threads', 'outOfBounds'],
    ['255', 'contextTokens', 'outOfBounds'],
    ['8', 'kvBudgetMegabytes', 'outOfBounds'],
    ['512 MB', 'memoryLimitMegabytes', 'notNumber'],
  ] as const)('%j is refused for %s: %s', (text, name, problem) => {
    expect(readNumber(text, name)).toEqual({ problem });
  });
});
