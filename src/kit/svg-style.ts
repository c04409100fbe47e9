import type { SvgTheme } from './svg.js';

/** The colours of charts: neutral inks, and ten for series that stay apart in both themes. */

interface Colours {
  readonly paper: string;
  readonly ink: string;
  readonly soft: string;
  readonly grid: string;
  readonly series: readonly string[];
}

const light: Colours = {
  paper: '#ffffff',
  ink: '#1b1f24',
  soft: '#59636e',
  grid: '#e3e7ec',
  series: '#0b5cad #c2410c #11703a #7c3aad #0e7490 #be185d #7a6a00 #8a4b20 #475569 #b91c1c'.split(
    ' ',
  ),
};

const dark: Colours = {
  paper: '#14171b',
  ink: '#e8ebef',
  soft: '#9aa5b1',
  grid: '#2b3138',
  series: '#6cb2ff #ff9d5c #63d48a #c79bf5 #4fd1e0 #ff86b8 #d9c54a #dca77a #a3b3c9 #ff8a8a'.split(
    ' ',
  ),
};

/** So many series have a colour of their own. */
export const series_colours = light.series.length;

const rules = ({ paper, ink, soft, grid, series }: Colours): string =>
  [
    `.c-paper{fill:${paper}}.c-ink{fill:${ink}}.c-soft{fill:${soft}}`,
    `.c-grid{stroke:${grid}}.c-axis{stroke:${soft}}.c-halo{stroke:${paper}}`,
    ...series.map((colour, n) => `.c-l${n}{stroke:${colour}}.c-f${n}{fill:${colour}}`),
  ].join('');

/** The first is what a PNG is drawn with; the others are as wide or narrower. */
const shape = '.c-root{font-family:Inter,"Helvetica Neue",Arial,system-ui,sans-serif}';

/** For a picture by itself; `auto` follows the reader's scheme. */
export const chartStyle = (theme: Exclude<SvgTheme, 'page'>): string => {
  if (theme === 'light') return shape + rules(light);
  if (theme === 'dark') return shape + rules(dark);
  return `${shape}${rules(light)}@media (prefers-color-scheme:dark){${rules(dark)}}`;
};
