// What a person types into the settings, checked before it is saved. The program checks again; this says it at once and
// next to the field.
/** Settings that are numbers; those that may be empty let the program choose. */
export type NumberSetting =
  | 'contextTokens'
  | 'threads'
  | 'kvBudgetMegabytes'
  | 'memoryLimitMegabytes'
  | 'recomputeRatio'
  | 'diskBudgetMegabytes'
  | 'temperature'
  | 'topP'
  | 'repetitionPenalty'
  | 'maxAnswerTokens';

/** What a number may be. `above` and `least` are lower bounds, without and with the bound itself. */
export type Bounds = {
  whole: boolean;
  optional: boolean;
  above?: number;
  least?: number;
  most: number;
  step: number;
};

/** The bounds of every number, the same as the program's. */
export const bounds: Readonly<Record<NumberSetting, Bounds>> = {
  contextTokens: { whole: true, optional: true, least: 256, most: 1_048_576, step: 256 },
  threads: { whole: true, optional: true, least: 1, most: 512, step: 1 },
  kvBudgetMegabytes: { whole: true, optional: true, least: 16, most: 1_048_576, step: 64 },
  memoryLimitMegabytes: { whole: true, optional: true, least: 256, most: 1_048_576, step: 256 },
  recomputeRatio: { whole: false, optional: false, least: 0, most: 1, step: 0.05 },
  diskBudgetMegabytes: { whole: true, optional: true, least: 100, most: 10_000_000, step: 500 },
  temperature: { whole: false, optional: false, least: 0, most: 10, step: 0.1 },
  topP: { whole: false, optional: false, above: 0, most: 1, step: 0.05 },
  repetitionPenalty: { whole: false, optional: false, above: 0, most: 10, step: 0.05 },
  maxAnswerTokens: { whole: true, optional: false, least: 1, most: 1_048_576, step: 64 },
};

/** Why a text is not taken. */
export type Problem = 'empty' | 'notNumber' | 'notWhole' | 'outOfBounds';

/** A text read as a setting. */
export type Read = { value: number | null } | { problem: Problem };

/** Reads a text; a decimal comma is taken for a point. */
export function readNumber(text: string, name: NumberSetting): Read {
  const { whole, optional, above, least, most } = bounds[name];
  const trimmed = text.trim();
  if (trimmed === '') return optional ? { value: null } : { problem: 'empty' };
  if (!/^[+-]?(\d+([.,]\d*)?|[.,]\d+)$/.test(trimmed)) return { problem: 'notNumber' };
  const value = Number(trimmed.replace(',', '.'));
  if (whole && !Number.isInteger(value)) return { problem: 'notWhole' };
  const tooLow = (above !== undefined && value <= above) || (least !== undefined && value < least);
  return tooLow || value > most ? { problem: 'outOfBounds' } : { value };
}
