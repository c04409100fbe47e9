import { el, type Markup, styleOf } from './svg.js';
import { textLine } from './svg-chart.js';
import { cutText, type Face, textWidth, wrapText } from './svg-text.js';
import { drawTimePlot, type TimeChart } from './svg-time-chart.js';

/** Draws the picture that other sites show with a link: 1200 × 630, readable when it is small. */

export const card_size = { width: 1_200, height: 630 } as const;

export interface Card {
  /** One or two words above the title, such as the state of a question. */
  readonly label: string;
  readonly title: string;
  /** The main figure of the card, with its caption. */
  readonly figure?: string | undefined;
  readonly caption?: string | undefined;
  /** Names with figures, at most five. */
  readonly rows?: readonly { readonly name: string; readonly figure: string }[];
  readonly chart?: Omit<TimeChart, 'width' | 'height' | 'desc'> | undefined;
}

const padding = 64;
const label_face: Face = { size: 28, weight: 600 };
const title_face: Face = { size: 52, weight: 600 };
const figure_face: Face = { size: 132, weight: 600 };
const caption_face: Face = { size: 32, weight: 400 };
const row_face: Face = { size: 34, weight: 600 };
const max_rows = 5;
/** Charts are drawn at this scale, so that their labels are readable. */
const chart_scale = 2;

const drawRows = (rows: NonNullable<Card['rows']>, top: number): readonly Markup[] => {
  const right = card_size.width - padding;
  return rows.slice(0, max_rows).flatMap(({ name, figure }, n) => {
    const y = top + 46 + n * 58;
    const room = right - padding - textWidth(figure, row_face) - 40;
    return [
      textLine(cutText(name, room, row_face), { x: padding, y, face: row_face, class: 'c-ink' }),
      textLine(figure, { x: right, y, face: row_face, anchor: 'end', class: 'c-f0' }),
    ];
  });
};

const drawFigure = ({ figure = '', caption = '' }: Card, room: number): readonly Markup[] => {
  // A long figure, such as a number with its unit, gets smaller letters.
  const size = Math.min(
    figure_face.size,
    (figure_face.size * room) / textWidth(figure, figure_face),
  );
  const y = 470;
  return [
    textLine(figure, { x: padding - 4, y, face: { ...figure_face, size }, class: 'c-f0' }),
    textLine(cutText(caption, room, caption_face), { x: padding, y: y + 52, face: caption_face }),
  ];
};

export const drawCard = (card: Card): string => {
  const { label, title, figure, rows = [], chart } = card;
  const { width, height } = card_size;
  const room = width - 2 * padding;
  const lines = wrapText(title, { width: room, most: 3, face: title_face });
  const below = 152 + 64 * lines.length;
  const drawn: Markup[] = [
    textLine(cutText(label, room - 360, label_face), { x: padding, y: 88, face: label_face }),
    textLine('Prediction Forum', {
      x: width - padding,
      y: 88,
      face: label_face,
      anchor: 'end',
      class: 'c-ink',
    }),
    ...lines.map((line, n) =>
      textLine(line, { x: padding, y: 158 + 64 * n, face: title_face, class: 'c-ink' }),
    ),
    ...drawRows(rows, below - 20),
  ];
  if (figure !== undefined) drawn.push(...drawFigure(card, chart === undefined ? room : 440));
  if (chart !== undefined) {
    const box = { left: 0, right: 310, top: 0, bottom: (height - 40 - below) / chart_scale };
    const place = `translate(536 ${below}) scale(${chart_scale})`;
    const { markup } = drawTimePlot(chart, box);
    drawn.push(el('g', { transform: place }, ...markup));
  }
  const document = el(
    'svg',
    { xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${width} ${height}`, class: 'c-root' },
    styleOf('light'),
    el('rect', { width, height, class: 'c-paper' }),
    el('rect', { width, height: 14, class: 'c-f0' }),
    ...drawn,
  );
  return `${document.svg}\n`;
};
