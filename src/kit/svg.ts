/**
 * Makes SVG. Only `el` makes markup, and it escapes all texts and attributes. So a picture refers
 * to no other file, runs nothing and contains no characters that XML forbids.
 */

import { escapeHtml } from './html.js';

/** Markup made by `el`. Plain texts are escaped. */
export interface Markup {
  readonly svg: string;
}

export type Child = Markup | string | null;
type Attributes = Readonly<Record<string, string | number | undefined>>;

/**
 * Characters that XML 1.0 forbids or that change the direction of other text: controls, lone
 * surrogates, noncharacters, direction overrides.
 */
const unfit =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]|\p{Cs}/gu;

/** Escapes a text as one line of XML, without those characters. */
const escapeXml = (text: string): string =>
  escapeHtml(text.replace(unfit, '').replace(/\s+/g, ' '));

/** Rounds to at most two decimals, without negative zero. */
export const round2 = (value: number): number => Math.round(value * 100) / 100 + 0;

/** Makes one element. Names come from the program, never from outside. */
export const el = (name: string, attributes: Attributes, ...children: Child[]): Markup => {
  let svg = `<${name}`;
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    svg += ` ${key}="${typeof value === 'number' ? round2(value) : escapeXml(value)}"`;
  }
  let inner = '';
  for (const child of children) {
    if (child !== null) inner += typeof child === 'string' ? escapeXml(child) : child.svg;
  }
  return { svg: inner === '' ? `${svg}/>` : `${svg}>${inner}</${name}>` };
};

/** Joins several elements into one. */
export const join = (parts: readonly (Markup | null)[]): Markup => ({
  svg: parts.map((part) => part?.svg ?? '').join(''),
});

/** `auto` follows the reader's colour scheme. */
export type SvgTheme = 'light' | 'dark' | 'auto';

/** Neutral colours, and fourteen series colours that stay distinct in both themes. */
const light = {
  paper: '#ffffff',
  ink: '#1b1f24',
  soft: '#59636e',
  grid: '#e3e7ec',
  series: (
    '#0b5cad #c2410c #11703a #7c3aad #0e7490 #be185d #7a6a00 #8a4b20 #475569 #b91c1c ' +
    '#a21caf #4d7c0f #27272a #6366f1'
  ).split(' '),
};

const dark: typeof light = {
  paper: '#14171b',
  ink: '#e8ebef',
  soft: '#9aa5b1',
  grid: '#2b3138',
  series: (
    '#6cb2ff #ff9d5c #63d48a #c79bf5 #4fd1e0 #ff86b8 #d9c54a #dca77a #a3b3c9 #ff8a8a ' +
    '#f28bff #b7e35a #ffffff #a5a8ff'
  ).split(' '),
};

/** Number of different series colours. */
export const series_colours = light.series.length;

const rules = ({ paper, ink, soft, grid, series }: typeof light): string =>
  [
    `.c-paper{fill:${paper}}.c-ink{fill:${ink}}.c-soft{fill:${soft}}`,
    `.c-grid{stroke:${grid}}.c-axis{stroke:${soft}}.c-halo{stroke:${paper}}.c-total{stroke:${ink}}`,
    ...series.map((colour, n) => `.c-l${n}{stroke:${colour}}.c-f${n}{fill:${colour}}`),
  ].join('');

const names = ['paper', 'ink', 'soft', 'grid'] as const;

/** Lets the browser choose between a colour for light and one for dark pages. */
const eitherOf = (on_light: string | undefined, on_dark: string | undefined): string =>
  `light-dark(${on_light},${on_dark})`;

/** The colours of pictures for the stylesheet of pages, where `--own` is the colour of a series. */
export const pageRules = (): string => {
  const both = {
    ...(Object.fromEntries(names.map((name) => [name, eitherOf(light[name], dark[name])])) as {
      [name in (typeof names)[number]]: string;
    }),
    series: light.series.map((colour, n) => eitherOf(colour, dark.series[n])),
  };
  const own = both.series.map((colour, n) => `.f${n.toString(16)}{--own:${colour}}`);
  return rules(both) + own.join('');
};

/** PNGs are drawn with the first font. The others are as wide or narrower. */
const shape = '.c-root{font-family:Inter,"Helvetica Neue",Arial,system-ui,sans-serif}';

/** Returns the style of a picture, which colours its elements by class. */
export const styleOf = (theme: SvgTheme): Markup => {
  const shown = theme === 'dark' ? dark : light;
  const other = theme === 'auto' ? `@media (prefers-color-scheme:dark){${rules(dark)}}` : '';
  return { svg: `<style>${shape}${rules(shown)}${other}</style>` };
};
