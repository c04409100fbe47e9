/** Where values stand on an axis, and which of them are named there. */

export interface Tick {
  readonly at: number;
  readonly label: string;
}

export interface Axis {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly Tick[];
  readonly label?: string;
}

/** From 0 to 100 per cent. */
export const percentAxis = (step = 25, label?: string): Axis => ({
  from: 0,
  to: 100,
  ticks: Array.from({ length: Math.floor(100 / step) + 1 }, (_, n) => ({
    at: n * step,
    label: `${n * step} %`,
  })),
  ...(label === undefined ? {} : { label }),
});

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Steps that count from midnight UTC. */
const steps = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * minute),
  ...[1, 2, 3, 6, 12].map((n) => n * hour),
  ...[1, 2, 4, 7, 14].map((n) => n * day),
];

/** Steps of the calendar, in months. */
const month_steps = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600];

export const month_names = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

const clockLabel = (date: Date): string => date.toISOString().slice(11, 16);
const dayLabel = (date: Date): string => `${date.getUTCDate()} ${month_names[date.getUTCMonth()]}`;
const monthLabel = (date: Date): string =>
  date.getUTCMonth() === 0
    ? `${date.getUTCFullYear()}`
    : (month_names[date.getUTCMonth()] as string);

const evenTicks = (from: number, to: number, step: number): Tick[] => {
  const ticks: Tick[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const date = new Date(at);
    const is_day = at % day === 0;
    const label = is_day || step >= day ? dayLabel(date) : clockLabel(date);
    ticks.push({ at, label });
  }
  return ticks;
};

const monthTicks = (from: number, to: number, step: number): Tick[] => {
  const first = new Date(from);
  const ticks: Tick[] = [];
  const start = first.getUTCFullYear() * 12 + first.getUTCMonth();
  for (let month = Math.ceil(start / step) * step; ; month += step) {
    const at = Date.UTC(Math.floor(month / 12), month % 12);
    if (at > to) return ticks;
    const label = step >= 12 ? String(Math.floor(month / 12)) : monthLabel(new Date(at));
    if (at >= from) ticks.push({ at, label });
  }
};

/**
 * An axis of time from one moment (ms since 1970) to a later one, with at most `most` round times
 * named, in UTC.
 */
export const timeAxis = (from: number, to: number, most = 7): Axis => {
  const step = steps.find((one) => (to - from) / one <= most);
  if (step !== undefined) return { from, to, ticks: evenTicks(from, to, step) };
  const months_long = (to - from) / (30.44 * day);
  const chosen = month_steps.find((one) => months_long / one <= most) ?? 1_200;
  return { from, to, ticks: monthTicks(from, to, chosen) };
};

/** Places values of an axis between two ends of the picture. */
export const makeScale = ({ from, to }: Axis, start: number, end: number) => {
  const factor = to === from ? 0 : (end - start) / (to - from);
  return (value: number): number => start + (value - from) * factor;
};
