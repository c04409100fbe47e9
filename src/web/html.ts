import { escapeHtml } from './page.js';

/** HTML that is escaped unless it is HTML already: what is filled into `html` cannot break out. */

export class Html {
  constructor(readonly text: string) {}
}

export type Filling = string | number | null | false | Html | readonly Filling[];

const fill = (value: Filling): string => {
  if (value === null || value === false) return '';
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(fill).join('');
  return escapeHtml(String(value));
};

/** A template; `null` and `false` leave nothing, lists stand one after the other. */
export const html = (parts: TemplateStringsArray, ...values: readonly Filling[]): Html =>
  new Html(
    parts.map((part, at) => part + (at < values.length ? fill(values[at] ?? null) : '')).join(''),
  );

/** A sentence in which what stands in backticks is code. */
export const inline = (sentence: string): Filling =>
  sentence.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part));
