import { clockText, dayText, momentText } from './site.js';

/**
 * Makes charts interactive. A vertical line follows the pointer, and the legend shows the values
 * at that time. Clicking a name in the legend hides or shows its line. All values are read from
 * the SVG paths.
 */

const wide = 1_000;

const numbersOf = (path: SVGPathElement): number[] =>
  (path.getAttribute('d')?.match(/-?[\d.]+/g) ?? []).map(Number);

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });

const textOf = (value: number, { kind, unit = '' }: DOMStringMap): string => {
  if (kind === 'date') return dayText(value);
  if (kind === 'percent') return `${Math.round(value)}%`;
  return `${number.format(value)} ${unit}`.trim();
};

/** Names of the lines that the reader has hidden. They stay hidden after a live update. */
const hidden = new Set<string>();

const makeLive = (chart: HTMLElement): void => {
  const plot = chart.querySelector<SVGSVGElement>('svg.plot');
  const note = chart.querySelector<HTMLElement>('.plot-at');
  if (plot === null || plot.dataset['ready'] !== undefined) return;
  plot.dataset['ready'] = '';
  const read = (name: string): number => Number(plot.dataset[name]);
  const [from, to] = [read('from'), read('to')];
  const summary = note?.textContent ?? '';
  const figures = [...chart.querySelectorAll<HTMLElement>('[data-legend]')].map((item) => {
    const figure = item.querySelector('strong');
    const path = [...plot.querySelectorAll<SVGPathElement>('[data-series]')].find(
      (one) => one.dataset['series'] === item.dataset['legend'],
    );
    return {
      item,
      figure,
      path,
      now: figure?.textContent ?? '',
      points: path ? numbersOf(path) : [],
    };
  });

  if (to - from < 2 * 86_400_000) {
    for (const tick of plot.querySelectorAll<SVGTextElement>('[data-at]')) {
      tick.textContent = clockText(Number(tick.dataset['at']));
    }
  }

  const cursor = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  cursor.setAttribute('class', 'cursor');
  cursor.setAttribute('y1', '0');
  cursor.setAttribute('y2', String(read('bottom')));
  plot.append(cursor);

  let place = 1;
  const show = (share: number): void => {
    place = Math.min(1, Math.max(0, share));
    const x = `${place * 100}%`;
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    cursor.classList.add('on');
    for (const { figure, points } of figures) {
      let y: number | undefined;
      for (let n = 0; n < points.length && (points[n] as number) <= place * wide + 0.5; n += 2) {
        y = points[n + 1];
      }
      const level =
        y === undefined
          ? undefined
          : read('low') +
            ((read('bottom') - y) / (read('bottom') - read('top'))) * (read('high') - read('low'));
      if (figure) figure.textContent = level === undefined ? '–' : textOf(level, plot.dataset);
    }
    if (note) note.textContent = momentText(from + place * (to - from));
  };
  const hide = (): void => {
    cursor.classList.remove('on');
    for (const { figure, now } of figures) if (figure) figure.textContent = now;
    if (note) note.textContent = summary;
  };
  plot.addEventListener('pointermove', (event) => {
    const { left, width } = plot.getBoundingClientRect();
    show((event.clientX - left) / width);
  });
  plot.addEventListener('pointerleave', hide);
  plot.addEventListener('blur', hide);
  plot.setAttribute('tabindex', '0');
  plot.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(place + step);
  });

  if (figures.length < 2) return;
  for (const { item, path } of figures) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'plain';
    button.append(...item.childNodes);
    item.append(button);
    const name = item.dataset['legend'] ?? '';
    const apply = (): void => {
      path?.classList.toggle('off', hidden.has(name));
      button.setAttribute('aria-pressed', String(!hidden.has(name)));
    };
    apply();
    button.addEventListener('click', () => {
      if (!hidden.delete(name)) hidden.add(name);
      apply();
    });
  }
};

const findAll = (root: ParentNode): void => {
  for (const chart of root.querySelectorAll<HTMLElement>('.chart')) makeLive(chart);
};

findAll(document);
document.addEventListener('renewed', (event) => {
  const place = (event as CustomEvent<HTMLElement>).detail;
  if (place.matches('.chart')) makeLive(place);
  else findAll(place);
});
