/** Numbers and dates inside of sentences; the same on every machine, whatever its locale. */

/** 48210 → `48,210`. */
export const grouped = (n: number): string =>
  String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/** `21 Nov 2026`, of the UTC day. */
export const dayText = (at: Date): string =>
  `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}`;

/** `21 Nov 2026, 14:00 UTC`. */
export const timeText = (at: Date): string =>
  `${dayText(at)}, ${at.toISOString().slice(11, 16)} UTC`;
