/** Formats numbers and dates as text, the same on every machine and in every locale. */

/** 48210 → `48,210`. */
export const grouped = (n: number): string =>
  String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');

/**
 * Rounds to four digits and adds commas. Numbers in a narrow range get enough digits to differ:
 * 1,000,001.5 if the range is 2 wide.
 */
export const shortNumber = (n: number, range_width = 0): string => {
  const more = n !== 0 && range_width > 0 ? Math.floor(Math.log10(Math.abs(n) / range_width)) : 0;
  const digits = Math.min(17, 4 + Math.max(0, more));
  const [whole = '', ...fraction] = String(Number(n.toPrecision(digits))).split('.');
  return [whole.replace(/\B(?=(\d{3})+$)/g, ','), ...fraction].join('.');
};

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/** The day in UTC, such as `21 Nov 2026`. */
export const dayText = (at: Date): string =>
  `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}`;

/** The minute in UTC, such as `21 Nov 2026, 14:00 UTC`. */
export const timeText = (at: Date): string =>
  `${dayText(at)}, ${at.toISOString().slice(11, 16)} UTC`;

/** Formats a percentage without decimals, but with one decimal below 1 % and above 99 %. */
export const percentText = (percent: number | null | undefined): string => {
  if (percent === null || percent === undefined) return '–';
  if (percent > 0 && percent < 0.1) return '<0.1%';
  if (percent > 99.9 && percent < 100) return '>99.9%';
  const is_near = (percent > 0 && percent < 1) || (percent > 99 && percent < 100);
  return `${is_near ? percent.toFixed(1) : Math.round(percent)}%`;
};
