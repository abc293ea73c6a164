// Sentences of the program around the page, in the page's language. The program says them in English; German is found by the
// template that a sentence was made from. What no template fits is shown as it came.
import { language } from './language';
import { causes } from './strings.causes.de';
import { composed } from './strings.composed.de';
import { germanErrors } from './strings.errors.de';

/** No sentence of the program is longer; what is has a stranger's text in it, and is not looked through. */
const LONGEST = 10_000;
/** A cause has a cause, and so on; no sentence of the program goes deeper. */
const DEEPEST = 4;

/** The values that are sentences or words of the program themselves. All others are names, numbers and texts of others. */
const SPOKEN = new Set([
  'act',
  'action',
  'advice',
  'again',
  'backup',
  'can',
  'cannot',
  'cause',
  'doing',
  'error',
  'expected',
  'fault',
  'feature',
  'found',
  'kind',
  'kinds',
  'near',
  'place',
  'problem',
  'range',
  'reason',
  'saved',
  'setting',
  'source',
  'what',
  'why',
]);

/** The values that are figures and nothing else, so that a stranger's sentence is not taken for one of ours. */
const FIGURES = new Set(['number', 'numbers']);

/** A sentence with places for values: literal texts with a value between any two of them. */
type Template = { literals: string[]; names: string[]; german: string };

const PLACE = /\{(\w+)\}/g;

const toTemplate = ([english, german]: [string, string]): Template => ({
  literals: english.split(/\{\w+\}/),
  names: Array.from(english.matchAll(PLACE), ([, name = '']) => name),
  german,
});
const weight = ({ literals }: Template): number => literals.join('').length;

/** The sentences without a value, and the templates, those with the most text first: they say the most. */
let catalogue: { fixed: Map<string, string>; templates: Template[] } | null = null;

function opened(): NonNullable<typeof catalogue> {
  if (catalogue !== null) return catalogue;
  const all = Object.entries({ ...composed, ...causes, ...germanErrors });
  const templates = all.map(toTemplate);
  catalogue = {
    fixed: new Map(all),
    templates: templates.filter(({ names }) => names.length > 0).sort((a, b) => weight(b) - weight(a)),
  };
  return catalogue;
}

/**
 * The values of a message that this template fits. Each literal is looked for behind the one before, where it comes first; when
 * that fails, no other choice would do, so that nothing is tried twice, however long a message is.
 */
function valuesIn(message: string, { literals, names }: Template): Map<string, string> | null {
  const first = literals[0] ?? '';
  const last = literals.at(-1) ?? '';
  const end = message.length - last.length;
  if (!message.startsWith(first) || !message.endsWith(last) || end < first.length) return null;
  const values = new Map<string, string>();
  let at = first.length;
  for (const [index, name] of names.entries()) {
    const literal = literals[index + 1] ?? '';
    const to = index === names.length - 1 ? end : message.indexOf(literal, at);
    if (to < at || to > end) return null;
    const value = message.slice(at, to);
    if (FIGURES.has(name) && !/^[-\d., ]+$/.test(value)) return null;
    values.set(name, value);
    at = to + literal.length;
  }
  return values;
}

/** "1.5 MB" as German writes it. */
const inGermanFigures = (value: string): string => value.replace(/^(\d+)\.(\d+ [kMG]B)$/, '$1,$2');

function translated(message: string, depth: number): string {
  if (message === '' || message.length > LONGEST || depth > DEEPEST) return message;
  const { fixed, templates } = opened();
  const same = fixed.get(message);
  if (same !== undefined) return same;
  for (const template of templates) {
    const values = valuesIn(message, template);
    if (values === null) continue;
    return template.german.replace(PLACE, (_, name: string) => {
      const value = values.get(name) ?? '';
      return SPOKEN.has(name) ? translated(value, depth + 1) : inGermanFigures(value);
    });
  }
  return message;
}

/** A sentence of the program in German, whatever language the page has. */
export const inGerman = (message: string): string => translated(message, 0);

/** A sentence of the program in the page's language. */
export const told = (message: string): string => (language === 'german' ? inGerman(message) : message);
