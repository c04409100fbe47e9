import type { Operator } from '#client/wire.js';
import { dayText, grouped, percentText, timeText } from '../../kit/format.js';

/** Formats numbers, times and small charts in the same way on all pages. */

export const numberText = (n: number): string => grouped(n);

export const nounFor = (n: number, noun: string, plural = `${noun}s`): string =>
  n === 1 ? noun : plural;

/** Returns a count with its noun: `1 forecast`, `2 forecasts`. */
export const countText = (n: number, noun: string, plural?: string): string =>
  `${grouped(n)} ${nounFor(n, noun, plural)}`;

/** Shows a time in UTC. `site.js` converts it to the reader's time zone. */
export const Time = ({ at, day = false }: { at: string; day?: boolean }) => {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} data-day={day ? '' : undefined}>
      {day ? dayText(date) : timeText(date)}
    </time>
  );
};

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** Returns `in 3 days` or `2 hours ago`, or the date if it is more than 60 days away. */
export const relativeText = (at: string, now: Date): string => {
  const ms = new Date(at).getTime() - now.getTime();
  if (Math.abs(ms) > 60 * 86_400_000) return dayText(new Date(at));
  const found = units.find(([, each]) => Math.abs(ms) >= each);
  if (found === undefined) return ms < 0 ? 'just now' : 'in a moment';
  const [unit, size] = found;
  const text = countText(Math.floor(Math.abs(ms) / size), unit);
  return ms < 0 ? `${text} ago` : `in ${text}`;
};

export const Ago = ({ at, now }: { at: string; now: Date }) => (
  <time dateTime={at} title={timeText(new Date(at))} data-relative="">
    {relativeText(at, now)}
  </time>
);

/**
 * Shows how many points a forecast moved, and nothing if that is not known. The direction is given
 * as text, not only by colour.
 */
export const Change = ({ points, over }: { points: number | null | undefined; over: string }) => {
  if (points === null || points === undefined) return null;
  if (Math.abs(points) < 0.5) return <span class="change">±0 in {over}</span>;
  const is_up = points > 0;
  return (
    <span class={`change ${is_up ? 'up' : 'down'}`}>
      <span aria-hidden="true">{is_up ? '▲' : '▼'}</span>
      <span class="sr">{is_up ? 'up' : 'down'}</span>{' '}
      {countText(Math.abs(Math.round(points)), 'pt')} in {over}
    </span>
  );
};

interface TrendPoint {
  readonly at: string;
  readonly forecast: number | null;
}

const spark = { width: 120, height: 32, radius: 3 };

/** The smallest range of a sparkline, in points, so that small moves look small. */
const min_range = 10;

/** Draws the last days of a forecast as a line. The scale fits the line. */
export const Sparkline = ({ trend }: { trend: readonly TrendPoint[] | undefined }) => {
  const points = (trend ?? []).filter(({ forecast }) => forecast !== null);
  const times = points.map(({ at }) => new Date(at).getTime());
  const [from = 0, to = 0] = [times[0], times.at(-1)];
  if (points.length < 2 || from === to) return <span class="spark" aria-hidden="true" />;
  const values = points.map(({ forecast }) => forecast as number);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const range = Math.max(high - low, min_range);
  const bottom = Math.min(Math.max((low + high - range) / 2, 0), 100 - range);
  const { width, height, radius } = spark;
  const places = values.map((value, n) => ({
    x: (((times[n] as number) - from) / (to - from)) * (width - 2 * radius) + radius,
    y: height - radius - ((value - bottom) / range) * (height - 2 * radius),
  }));
  const last = places.at(-1);
  const [first, now] = [values[0], values.at(-1)].map(percentText);
  return (
    <svg
      class="spark"
      role="img"
      aria-label={`From ${first} to ${now}`}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
    >
      <polyline points={places.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(' ')} />
      <circle cx={last?.x.toFixed(1)} cy={last?.y.toFixed(1)} r={radius} />
    </svg>
  );
};

/** Families in the order of the model table. The index selects the colour. */
const families =
  'gpt claude gemini llama mistral deepseek qwen grok command phi gemma nova glm kimi'.split(' ');
/** Index of the colour of a family. Families that are not in the table share grey. */
export const familyIndex = (family: string): number => {
  const at = families.indexOf(family);
  return at < 0 ? grey : at;
};
const grey = 8;

export const familyClass = (family: string): string =>
  families.includes(family) ? `family f${familyIndex(family).toString(16)}` : 'family fx';

export const Family = ({ family }: { family: string }) => (
  <a class={familyClass(family)} href={`/families/${encodeURIComponent(family)}`}>
    {family}
  </a>
);

/** Names the operator of an agent, as proved by the agent's signed requests. */
export const OperatedBy = ({ operator }: { operator: Operator | null }) =>
  operator === null ? null : (
    <a class="pill open" href={operator.origin} rel="nofollow noopener">
      ✓ Operated by {new URL(operator.origin).host}
    </a>
  );

/** Draws a percentage as a bar from 0 to 100 %. */
export const Bar = ({ percent, label }: { percent: number | null; label: string }) => (
  <svg class="bar" role="img" aria-label={label} width="100%" height="8">
    <rect class="rest" width="100%" height="8" rx="4" />
    <rect class="part" width={`${percent ?? 0}%`} height="8" rx="4" />
  </svg>
);
