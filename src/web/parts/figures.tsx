import type { Operator } from '#client/wire.js';
import { dayText, grouped, percentText, timeText } from '../../kit/format.js';

/** Numbers, times and small pictures, as all pages show them. */

export const numberText = (n: number): string => grouped(n);

/** `1 forecast`, `2 forecasts`. */
export const countText = (n: number, noun: string, plural = `${noun}s`): string =>
  `${grouped(n)} ${n === 1 ? noun : plural}`;

/** A moment, in UTC; `site.js` turns it to the reader's zone. */
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

/** `in 3 days`, `2 hours ago`; of moments that are weeks away the day. */
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

/** By how many points a forecast moved; the sign is said, never by colour alone. */
export const Change = ({ points, over }: { points: number | null | undefined; over: string }) => {
  if (points === null || points === undefined || Math.abs(points) < 0.5) {
    return <span class="change">±0 in {over}</span>;
  }
  const is_up = points > 0;
  return (
    <span class={`change ${is_up ? 'up' : 'down'}`}>
      <span aria-hidden="true">{is_up ? '▲' : '▼'}</span>
      <span class="sr">{is_up ? 'up' : 'down'}</span> {Math.abs(Math.round(points))} pts in {over}
    </span>
  );
};

interface TrendPoint {
  readonly at: string;
  readonly forecast: number | null;
}

const spark = { width: 120, height: 32 };

/** The last days of a forecast as a line, from 0 to 100 %. */
export const Sparkline = ({ trend }: { trend: readonly TrendPoint[] | undefined }) => {
  const points = (trend ?? []).filter(({ forecast }) => forecast !== null);
  const times = points.map(({ at }) => new Date(at).getTime());
  const [from = 0, to = 0] = [times[0], times.at(-1)];
  if (points.length < 2 || from === to) return <span class="spark" aria-hidden="true" />;
  const place = ({ forecast }: TrendPoint, n: number): string => {
    const x = (((times[n] as number) - from) / (to - from)) * spark.width;
    const y = 2 + (1 - (forecast as number) / 100) * (spark.height - 4);
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  };
  const [first, last] = [points[0], points.at(-1)].map((one) => percentText(one?.forecast));
  return (
    <svg
      class="spark"
      role="img"
      aria-label={`From ${first} to ${last}`}
      viewBox={`0 0 ${spark.width} ${spark.height}`}
      width={spark.width}
      height={spark.height}
      preserveAspectRatio="none"
    >
      <polyline points={points.map(place).join(' ')} />
    </svg>
  );
};

/** The families in the order of the table of models; the number is that of a colour. */
const families =
  'gpt claude gemini llama mistral deepseek qwen grok command phi gemma nova glm kimi'.split(' ');
export const familyClass = (family: string): string => {
  const at = families.indexOf(family);
  return `family f${at < 0 ? 'x' : at % 10}`;
};

export const Family = ({ family }: { family: string }) => (
  <a class={familyClass(family)} href={`/families/${encodeURIComponent(family)}`}>
    {family}
  </a>
);

/** Who runs an agent, as its signed requests prove. */
export const OperatedBy = ({ operator }: { operator: Operator | null }) =>
  operator === null ? null : (
    <a class="pill open" href={operator.origin} rel="nofollow noopener">
      ✓ Operated by {new URL(operator.origin).host}
    </a>
  );

/** A share as a bar of 0 to 100 %, with its text beside it. */
export const Bar = ({ percent, label }: { percent: number | null; label: string }) => (
  <svg class="bar" role="img" aria-label={label} width="100%" height="8">
    <rect class="rest" width="100%" height="8" rx="4" />
    <rect class="part" width={`${percent ?? 0}%`} height="8" rx="4" />
  </svg>
);
