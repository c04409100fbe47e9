/**
 * SVG by hand: markup whose texts and attributes are escaped by the only way to make it. A picture
 * names no other file, runs nothing and holds no characters that XML forbids, whatever its texts
 * are; it is told to those who do not see it by its `title` and `desc`.
 */

/** Markup that `el` made; texts beside it are escaped. */
export interface Markup {
  readonly svg: string;
}

export type Child = Markup | string | null;
export type Attributes = Readonly<Record<string, string | number | undefined>>;

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * What XML 1.0 forbids, and what would turn the direction of other texts: control characters, lone
 * surrogates, noncharacters, overrides of the reading direction.
 */
const unfit =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]|\p{Cs}/gu;

/** The text as one line of XML, also inside a quoted attribute. */
export const escapeXml = (text: string): string =>
  text
    .replace(unfit, '')
    .replace(/\s+/g, ' ')
    .replace(/[&<>"']/g, (character) => escapes[character] as string);

/** At most two decimals, and no negative zero. */
export const round2 = (value: number): number => Math.round(value * 100) / 100 + 0;

/** One element. Names come from the program, never from outside. */
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

/** Several elements as one. */
export const join = (parts: readonly (Markup | null)[]): Markup => ({
  svg: parts.map((part) => part?.svg ?? '').join(''),
});

/** `page`: without colours of its own, for a page that includes `chartStyle` in its style. */
export type SvgTheme = 'light' | 'dark' | 'auto' | 'page';

export interface SvgParts {
  readonly width: number;
  readonly height: number;
  /** What the picture is called, and what it shows, for those who do not see it. */
  readonly title: string;
  readonly desc: string;
  /** CSS of the program, never from outside; it goes in as it is. */
  readonly style: string;
  readonly body: Markup;
}

/** A whole document, which scales with the place it is shown in. */
export const writeSvg = ({ width, height, title, desc, style, body }: SvgParts): string =>
  `${
    el(
      'svg',
      {
        xmlns: 'http://www.w3.org/2000/svg',
        viewBox: `0 0 ${width} ${height}`,
        width,
        height,
        role: 'img',
        'aria-label': `${title}. ${desc}`,
        class: 'c-root',
      },
      el('title', {}, title),
      el('desc', {}, desc),
      style === '' ? null : { svg: `<style>${style}</style>` },
      body,
    ).svg
  }\n`;
