// Numbers, sizes and plurals in the catalogue's language, all by Intl.
import { locale } from './language';

const integer = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
const percent = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat(locale, { maximumFractionDigits: 3 });
const plurals = new Intl.PluralRules(locale);
const sizeUnits = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;

/** A whole number with the language's separators. */
export const formatInteger = (value: number): string => integer.format(value);

/** A number with at most three decimals. */
export const formatDecimal = (value: number): string => decimal.format(value);

/** A share of 1 as a percentage. */
export const formatPercent = (share: number): string => percent.format(share);

/** A size in the largest decimal unit that leaves at least 1. */
export function formatBytes(bytes: number): string {
  const step = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), sizeUnits.length - 1);
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: sizeUnits[step],
    unitDisplay: 'short',
    maximumFractionDigits: step < 2 ? 0 : 1,
  }).format(bytes / 1000 ** step);
}

/** The form of a phrase that fits `count`; `other` is for every form the language does not name. */
export function plural(
  count: number,
  forms: { one: string; other: string } & Partial<Record<Intl.LDMLPluralRule, string>>,
): string {
  return forms[plurals.select(count)] ?? forms.other;
}
