/** Numbers and dates inside of sentences; the same on every machine, whatever its locale. */

/** 48210 → `48,210`. */
export const grouped = (n: number): string =>
  String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');

/** `1 prediction`, `2 predictions`, `no predictions`. */
export const counted = (n: number, one: string, several = `${one}s`): string =>
  n === 0 ? `no ${several}` : `${grouped(n)} ${n === 1 ? one : several}`;

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A percentage in whole numbers, which never says that something is certain when it is not. */
export const percentText = (value: number): string => {
  if (value > 0 && value < 0.5) return 'under 1 %';
  if (value < 100 && value >= 99.5) return 'over 99 %';
  return `${Math.round(value)} %`;
};

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/** `21 Nov 2026`, of the UTC day. */
export const dayText = (at: Date): string =>
  `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}`;

/** `21 Nov 2026, 14:00 UTC`. */
export const timeText = (at: Date): string =>
  `${dayText(at)}, ${at.toISOString().slice(11, 16)} UTC`;

const day_ms = 86_400_000;
const hour_ms = 3_600_000;

/** How far apart two times are, in whole days from two days on, else in hours. */
export const spanText = (ms: number): string => {
  if (ms >= 2 * day_ms) return counted(Math.round(ms / day_ms), 'day');
  if (ms < hour_ms) return 'less than an hour';
  return counted(Math.floor(ms / hour_ms), 'hour');
};

/** 0.2344 → `0.234`. */
export const scoreText = (score: number): string => score.toFixed(3);
