import { clockText, dayText, momentText } from './site.js';

/**
 * Makes charts over time interactive. A line follows the pointer, and a box beside it shows the
 * time and the values then. Clicking a name in the legend hides or shows its line.
 */

type Pair = readonly [at: number, value: number];
interface Plot {
  readonly from: number;
  readonly to: number;
  readonly kind: 'percent' | 'number' | 'date';
  readonly unit: string;
  readonly lines: readonly (readonly [name: string, points: readonly Pair[]])[];
  readonly band: readonly (readonly [at: number, low: number, high: number])[];
  readonly counts: readonly Pair[];
}

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });

const textOf = (value: number, { kind, unit }: Plot): string => {
  if (kind === 'date') return dayText(value);
  if (kind === 'percent') return `${Math.round(value)}%`;
  return `${number.format(value)} ${unit}`.trim();
};

/** Returns the last row at or before a time. */
const rowAt = <T extends readonly [number, ...number[]]>(rows: readonly T[], at: number) => {
  let found: T | undefined;
  for (const row of rows) {
    if (row[0] > at) break;
    found = row;
  }
  return found;
};

/** Names of the lines that the reader has hidden. They stay hidden after a live update. */
const hidden = new Set<string>();

const linesOf = (plot: Plot, at: number): string[] => {
  const rows = plot.lines.flatMap(([name, points]) => {
    const value = hidden.has(name) ? undefined : rowAt(points, at)?.[1];
    return value === undefined ? [] : [[name, value] as const];
  });
  const texts = [...rows]
    .sort((a, b) => b[1] - a[1])
    .map(([name, value]) => `${name} ${textOf(value, plot)}`);
  const [, low, high] = rowAt(plot.band, at) ?? [];
  if (low !== undefined && high !== undefined) {
    texts.push(`Middle 50%: ${textOf(low, plot)} to ${textOf(high, plot)}`);
  }
  const count = rowAt(plot.counts, at)?.[1];
  if (count !== undefined) texts.push(`${count} ${count === 1 ? 'forecast' : 'forecasts'}`);
  return [momentText(at), ...texts];
};

/** `left` and `right` are the ends of the plot, in units of the picture; `each` is pixels a unit. */
const sizeOf = (svg: SVGSVGElement) => ({
  each: svg.clientWidth / svg.viewBox.baseVal.width,
  left: Number(svg.dataset['left']),
  right: Number(svg.dataset['right']),
});

const follow = (place: HTMLElement, plot: Plot): void => {
  const box = document.createElement('div');
  box.className = 'tip';
  box.hidden = true;
  const line = document.createElement('div');
  line.className = 'cursor';
  line.hidden = true;
  place.append(line, box);
  const drawn = (): SVGSVGElement | undefined =>
    [...place.querySelectorAll<SVGSVGElement>('svg.time-chart')].find((svg) => svg.clientWidth > 0);

  let share = 1;
  const show = (wanted: number): void => {
    const svg = drawn();
    if (svg === undefined) return;
    share = Math.min(1, Math.max(0, wanted));
    const { each, left, right } = sizeOf(svg);
    const x = (left + share * (right - left)) * each;
    const texts = linesOf(plot, plot.from + share * (plot.to - plot.from));
    box.replaceChildren(
      ...texts.map((text, n) => {
        const row = document.createElement(n === 0 ? 'small' : 'div');
        row.dir = 'auto';
        row.textContent = text;
        return row;
      }),
    );
    box.hidden = line.hidden = false;
    line.style.left = `${x}px`;
    const is_right = x > svg.clientWidth / 2;
    box.style.left = is_right ? '' : `${x + 12}px`;
    box.style.right = is_right ? `${svg.clientWidth - x + 12}px` : '';
  };
  const hide = (): void => {
    box.hidden = line.hidden = true;
  };
  place.addEventListener('pointermove', (event) => {
    const svg = drawn();
    if (svg === undefined) return;
    const { each, left, right } = sizeOf(svg);
    const x = (event.clientX - svg.getBoundingClientRect().left) / each;
    show((x - left) / (right - left));
  });
  place.addEventListener('pointerleave', hide);
  place.addEventListener('blur', hide);
  place.tabIndex = 0;
  place.setAttribute('role', 'group');
  place.setAttribute('aria-label', 'Chart. The arrow keys move through time.');
  place.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(share + step);
  });
};

/** Turns the names of the legend into buttons. */
const makeButtons = (chart: HTMLElement): void => {
  const items = [...chart.querySelectorAll<HTMLElement>('[data-legend]')];
  for (const item of items) {
    const name = item.dataset['legend'] ?? '';
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'plain';
    button.append(...item.childNodes);
    item.append(button);
    const paths = [...chart.querySelectorAll<SVGPathElement>('[data-series]')].filter(
      (path) => path.dataset['series'] === name,
    );
    const apply = (): void => {
      for (const path of paths) path.classList.toggle('off', hidden.has(name));
      button.setAttribute('aria-pressed', String(!hidden.has(name)));
    };
    apply();
    button.addEventListener('click', () => {
      if (!hidden.delete(name)) hidden.add(name);
      apply();
    });
  }
};

const makeLive = (root: ParentNode): void => {
  for (const place of root.querySelectorAll<HTMLElement>('.plot[data-plot]')) {
    if (place.dataset['ready'] !== undefined) continue;
    place.dataset['ready'] = '';
    const plot = JSON.parse(place.dataset['plot'] ?? '{}') as Plot;
    follow(place, plot);
    if (plot.to - plot.from < 2 * 86_400_000) {
      for (const tick of place.querySelectorAll<SVGTextElement>('[data-at]')) {
        tick.textContent = clockText(Number(tick.dataset['at']));
      }
    }
    makeButtons(place.parentElement ?? place);
  }
};

makeLive(document);
document.addEventListener('renewed', (event) =>
  makeLive((event as CustomEvent<HTMLElement>).detail),
);
