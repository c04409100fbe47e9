import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { SaxesParser } from 'saxes';
import { first_fit } from '../../../src/features/consensus/correlation.js';
import { computeConsensus, no_tally } from '../../../src/features/consensus/rules.js';
import { drawCourse } from '../../../src/features/embed/draw.js';
import { renderWidget } from '../../../src/features/embed/question-widget.js';
import { questionOembed } from '../../../src/features/embed/routes.js';
import { views } from '../../../src/features/embed/schema.js';
import { embed_script } from '../../../src/features/embed/script.js';
import { embed_style } from '../../../src/features/embed/style.js';
import type { QuestionRow } from '../../../src/features/questions/index.js';
import { openBrowser, without_chromium } from '../../help/browser.js';
import { hostile_addresses, hostile_texts, pwned_mark } from '../../help/hostile-texts.js';
import { no_range } from '../../help/number.js';
import { t } from '../../help/tap.js';

/** The texts of a question never change which elements and attributes its widget has. */

const at = new Date('2027-01-31T12:00:00Z');
const id = '01a1f8db-ec60-711e-9e0d-233d8b99a44d';
const public_url = 'https://forum.example';

const makeRow = (fields: Partial<QuestionRow>): QuestionRow => ({
  id,
  question: 'Harmless?',
  description: '',
  category: 'society',
  subcategory: null,
  tags: [],
  question_type: 'binary',
  options: [],
  status: 'open',
  timeframe: 'long',
  weight: 1,
  opens_at: at,
  closes_at: at,
  resolution_date: at,
  resolved_at: null,
  ended_at: null,
  resolution_source: 'a source',
  resolution_url: 'https://ok.example/',
  outcome: null,
  source: null,
  source_id: null,
  ...no_range,
  outcome_value: null,
  correct_options: null,
  resolution_note: null,
  revision: 0,
  author_id: null,
  created_at: at,
  updated_at: at,
  prediction_count: 0,
  comment_count: 0,
  yes_count: 0,
  no_count: 0,
  option_counts: [],
  ...fields,
});

/** A question with this text in every text field. */
const saying = (
  text: string,
  is_multi: boolean,
  family = text,
): QuestionRow & { family: string } => ({
  ...makeRow({
    question: text,
    description: text,
    resolution_source: text,
    resolution_note: text,
    ...(is_multi
      ? {
          ...({ question_type: 'multi', status: 'resolved' } as const),
          resolved_at: at,
          options: [text, `${text}2`],
          correct_options: [text],
        }
      : {}),
  }),
  family,
});

const render = (row: QuestionRow & { readonly family: string }, view: (typeof views)[number]) => {
  const is_multi = row.question_type === 'multi';
  const cells = [row.family, 'other'].map((family, n) => ({
    family,
    yes: is_multi ? null : n === 0,
    option: is_multi ? n : null,
    count: 3 - n,
    size: 1,
    sum: 7_000 * (3 - n),
    log_odds: 847_297_860 * (3 - n),
  }));
  const given = new Map(
    (is_multi ? cells : []).map(({ family, count }) => [family, [6_000 * count, 4_000 * count]]),
  );
  const mixes = cells.map(({ family, count }) => {
    return { families: [[family, 1] as const], owners: count };
  });
  const option_cells = cells.map((one) => ({ ...one, log_odds: [847_297_860, -847_297_860] }));
  const option_values = [new Map([[7_000, 5]]), new Map([[3_000, 5]])];
  const of_options = { given, option_cells, option_values };
  const tally = { cells, values: new Map([[7_000, 5]]), mixes, ...of_options, offset: 7 };
  const consensus = computeConsensus(row, { ...tally, updated_at: at.toISOString() }, first_fit);
  const figures = { forecast: 60, p25: 50, p75: 70, option_forecasts: [60, 40] };
  const points = [0, 3_600_000].map((ms) => ({ at: at.getTime() + ms, count: 1, ...figures }));
  const course = { shape: row, points, total: 2, moments: 2, offset: 7 } as never;
  return renderWidget({
    question: row,
    consensus,
    view,
    theme: 'auto',
    public_url,
    chart: view === 'chart' ? drawCourse(row, course) : null,
  });
};

interface Read {
  /** Every element with its attribute names, in order. */
  readonly shape: readonly string[];
  readonly addresses: readonly string[];
  readonly texts: string;
}

/** A parser that rejects everything that is not well-formed. */
const makeParser = (
  opened: (name: string, attributes: Record<string, unknown>) => void,
): SaxesParser => {
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name, attributes }) => opened(name, attributes));
  return parser;
};

const readStrictly = (page: string): Read => {
  const shape: string[] = [];
  const addresses: string[] = [];
  let texts = '';
  const parser = makeParser((name, attributes) => {
    shape.push([name, ...Object.keys(attributes)].join(' '));
    if (name === 'a') addresses.push(String(attributes['href']));
  });
  parser.on('text', (text) => {
    texts += text;
  });
  parser.on('comment', () => shape.push('comment'));
  parser.on('cdata', () => shape.push('cdata'));
  // Our own style and script are not valid XML. They are cut out, and each must occur exactly once.
  const [before, between, after] = page.split(`<style>${embed_style}</style>`);
  if (before === undefined || between === undefined || after !== undefined) {
    throw new Error('the style is not there exactly once');
  }
  const halves = between.split(`<script>${embed_script}</script>`);
  if (halves.length !== 2) throw new Error('the script is not there exactly once');
  parser.write(`${before}${halves.join('')}`).close();
  return { shape, addresses, texts };
};

/** The text in a form that can be part of a test name. */
const nameOf = (text: string): string => text.slice(0, 60).replaceAll(/[^ -"$-~]/g, '?');

/** Characters that are invalid in XML, and that HTML shows as nothing or as a box. */
const without_place = /[\0-\x08\x0b\x0c\x0e-\x1f]/g;

t.test('no text becomes an element, an attribute or a comment', async (t) => {
  const wrong: string[] = [];
  for (const view of views) {
    for (const is_multi of [false, true]) {
      const harmless = readStrictly(render(saying('Harmless', is_multi), view));
      for (const text of hostile_texts.map((one) => one.replaceAll(without_place, ''))) {
        const { shape, addresses, texts } = readStrictly(render(saying(text, is_multi), view));
        const what = `${view}, ${is_multi ? 'multi' : 'binary'}: ${nameOf(text)}`;
        if (shape.join() !== harmless.shape.join()) wrong.push(what);
        if (addresses.join() !== harmless.addresses.join()) wrong.push(`${what}: addresses`);
        if (!texts.includes(text.replaceAll('\r\n', '\n'))) wrong.push(`${what}: not as it is`);
      }
    }
  }
  t.same(wrong, []);
});

t.test('only http and https are a link', async (t) => {
  for (const resolution_url of hostile_addresses) {
    const row = { ...makeRow({ resolution_url }), family: 'claude' };
    const { addresses, shape } = readStrictly(render(row, 'card'));
    const own = addresses.filter((href) => !href.startsWith(public_url));
    const foreign = own.filter((href) => !/^https?:\/\/ok\.example\//.test(href));
    const handlers = shape.filter((element) => /\bon\w+/.test(element));
    t.same([foreign, handlers], [[], []], nameOf(resolution_url));
  }
});

t.test('the largest families stand with their counts, and the rest is a number', async (t) => {
  const cells = Array.from({ length: 14 }, (_, n) => {
    const one = { yes: true, option: null, count: n + 1, size: 1 };
    return { ...one, family: `f${n}`, sum: 7_000 * (n + 1), log_odds: 847_297_860 * (n + 1) };
  });
  const mixes = cells.map(({ family, count }) => {
    return { families: [[family, 1] as const], owners: count };
  });
  const tally = { ...no_tally, cells, values: new Map([[7_000, 105]]), mixes, offset: 7 };
  const row = makeRow({});
  const consensus = computeConsensus(row, { ...tally, updated_at: at.toISOString() }, first_fit);
  const shown = { question: row, view: 'card', theme: 'auto', public_url, chart: null } as const;
  const page = renderWidget({ ...shown, consensus });
  const counts = [...page.matchAll(/<bdi>f(\d+)<\/bdi><span class="count" title="([^"]+)">/g)];
  t.equal(counts.length, 12);
  t.same(counts[0]?.slice(1), ['13', '14 forecasts']);
  t.match(page, new RegExp(`<a href="${public_url}/questions/${id}"[^>]*>\\+ 2 more</a>`));
});

t.test('the iframe that oEmbed gives is one iframe', async (t) => {
  const shown = { view: 'card', theme: 'auto', public_url, room: {}, families: 3 } as const;
  const iframes = new Set<string>();
  for (const question of hostile_texts) {
    const oembed = questionOembed(makeRow({ question }), shown);
    const opened: string[] = [];
    const parser = makeParser((name, attributes) =>
      opened.push([name, ...Object.keys(attributes)].join(' ')),
    );
    parser.write(oembed.html).close();
    t.equal(opened.length, 1, nameOf(question));
    iframes.add(opened.join());
  }
  t.equal(iframes.size, 1);
});

/** Reads a frame's document after all its scripts have had a chance to run. */
const readFrame = (html: string) => `new Promise((resolve) => {
  const frame = document.createElement('iframe');
  frame.style.cssText = 'width: 400px; height: 700px';
  frame.srcdoc = ${JSON.stringify(html)};
  const read = () => {
    const own = frame.contentDocument;
    const roots = [own.documentElement, document.documentElement];
    resolve({
      count: own.querySelectorAll('*').length,
      is_broken: roots.some((root) => root.hasAttribute('${pwned_mark}')),
      wide: own.documentElement.scrollWidth > frame.contentWindow.innerWidth,
    });
    frame.remove();
  };
  frame.onload = () => requestAnimationFrame(() => requestAnimationFrame(read));
  document.body.append(frame);
})`;

t.test(
  'no script of a text runs in a browser, policy or not',
  { skip: without_chromium },
  async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'pf-hostile-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const host = path.join(folder, 'host.html');
    writeFileSync(host, '<!doctype html><body>');
    const browser = await openBrowser(t);
    const page = await browser.open(pathToFileURL(host).href);
    // A page from a file has no content policy, so injected scripts run. A card shows all texts.
    const elements = readStrictly(render(saying('Harmless', true), 'card')).shape.length + 2;
    for (const text of hostile_texts) {
      const found = await page.evaluate(readFrame(render(saying(text, true), 'card')));
      t.match(found, { count: elements, is_broken: false, wide: false }, nameOf(text));
    }
  },
);
