// Durations in words, in the page's language.
import { formatDecimal } from './format';
import { inLanguage } from './language';

/** "0.8 s", "21 s", "3 min 5 s": a duration at the precision a person cares for. */
export function seconds(value: number): string {
  const tenths = Math.round(value * 10) / 10;
  if (tenths === 0) return inLanguage('under 0.1 s', 'unter 0,1 s');
  if (tenths < 10) return `${formatDecimal(tenths)} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  const rest = whole % 60;
  return rest === 0 ? `${Math.floor(whole / 60)} min` : `${Math.floor(whole / 60)} min ${rest} s`;
}
