import fc from 'fast-check';
import { SaxesParser } from 'saxes';
import type { Fit } from '../../../src/features/consensus/correlation.js';
import { makeCourse } from '../../../src/features/consensus/index.js';
import { drawPicture, type PictureOf } from '../../../src/features/consensus/picture.js';
import type { RunShape, TimedForecast } from '../../../src/features/consensus/run.js';
import type { SvgTheme } from '../../../src/kit/svg.js';
import { createPngMaker } from '../../../src/kit/svg-png.js';
import { oddText } from '../../help/arbitrary.js';
import { no_range } from '../../help/number.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

/** Pictures of charts are complete, safe, and the same in every theme. */

const start = Date.parse('2026-03-01T00:00:00.000Z');

const question: PictureOf = {
  ...no_range,
  question: 'Will the ferry to the outer islands run through the winter?',
  question_type: 'binary',
  status: 'open',
  outcome: null,
  correct_options: null,
  outcome_value: null,
  opens_at: new Date(start),
  closes_at: new Date(start + 90 * 86_400_000),
  resolved_at: null,
};

type Drawn = Partial<PictureOf> & {
  readonly options?: readonly string[];
  readonly fits?: readonly Fit[];
};

const draw = async (
  count: number,
  { options = [], fits = [], ...of }: Drawn = {},
  theme: SvgTheme = 'light',
): Promise<string> => {
  const question_type = options.length > 0 ? 'multi' : 'binary';
  const shape: RunShape = { ...no_range, question_type, options };
  const all = Array.from({ length: count }, (_, n): TimedForecast => {
    const side = n % (options.length || 2);
    const given = options.map((_, option) => (option === side ? 6_000 : 4_000));
    const one = {
      family: 'gpt',
      agent: String(n),
      owner: String(n),
      value: ((n * 37) % 101) * 100,
    };
    return { at: start + n * 7_000_000, ...one, side, given };
  });
  const until_ms = fits.at(-1)?.from_ms ?? 0;
  const course = await makeCourse(shape, { all, offset: count, fits, until_ms });
  return drawPicture({ ...question, ...of }, course, { theme, width: 800 });
};

/** The elements and texts of an SVG. Throws if it is not well-formed. */
const readSvg = (svg: string) => {
  const names: string[] = [];
  const attributes: [string, string][] = [];
  let texts = '';
  const parser = new SaxesParser({ xmlns: true });
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', (tag) => {
    names.push(tag.name);
    for (const [name, { value }] of Object.entries(tag.attributes)) attributes.push([name, value]);
  });
  parser.on('text', (text) => {
    texts += text;
  });
  parser.write(svg).close();
  return { names, attributes, texts };
};

const known = 'svg title desc style rect text line path circle'.split(' ');

const checkSafe = (svg: string): void => {
  const { names, attributes } = readSvg(svg);
  const odd = names.filter((name) => !known.includes(name));
  if (odd.length > 0) throw new Error(`elements ${odd}`);
  for (const [name, value] of attributes) {
    if (/^on|href|^src$|^style$/i.test(name)) throw new Error(`attribute ${name}`);
    if (name !== 'xmlns' && name !== 'aria-label' && /url\(|javascript:|data:/i.test(value)) {
      throw new Error(`${name}="${value}"`);
    }
  }
};

t.test('whatever a question and its options say, it is text', async (t) => {
  const hostile = fc.oneof(
    oddText(0, 60),
    fc.constantFrom(
      '</text><script>alert(1)</script>',
      ']]><svg onload="alert(1)">',
      '"><image href="https://evil.example/x.png"/>',
      '&lt;script&gt; &amp; \u202eevil\u202c \ud800 \u0000 \uffff',
      '<!--',
      '<![CDATA[',
      '</style><style>*{display:none}</style>',
      `𝕎𝕚𝕝𝕝 ${'W'.repeat(500)}`,
    ),
  );
  const property = fc.asyncProperty(
    hostile,
    fc.array(hostile, { maxLength: 10 }),
    fc.nat({ max: 5 }),
    async (text, options, count) => {
      checkSafe(await draw(count, { question: text, options }));
    },
  );
  await holds(t, property);
});

t.test('0, 1, 2 and many predictions, of every status, have a picture', async (t) => {
  for (const options of [[], ['Rises', 'Stays', 'Falls']]) {
    for (const count of [0, 1, 2, 3, 500]) {
      for (const status of ['open', 'closed', 'resolved', 'voided'] as const) {
        const resolved = status === 'resolved';
        const svg = await draw(count, {
          options,
          status,
          outcome: resolved && options.length === 0 ? true : null,
          correct_options: resolved && options.length > 0 ? ['Stays'] : null,
          resolved_at: resolved ? new Date(start + 95 * 86_400_000) : null,
        });
        checkSafe(svg);
        t.match(svg, /^<svg [^>]*width="800" height="450"/);
        t.notMatch(svg, /NaN|Infinity|undefined|null/);
        if (count === 0) t.match(svg, /No forecasts yet/);
        if (resolved) t.match(svg, options.length > 0 ? /resolved Stays/ : /resolved Yes/);
      }
    }
  }
});

t.test(
  'it names the time of the last forecast, although a later fit moved the headline',
  async (t) => {
    const weights = { chance: [1, 0, 0, 0], number: [1, 0] };
    const fit = { number: 1, rho: 0.3, weights, from_ms: start + 5 * 86_400_000 };
    const last = 'last forecast 1 Mar 2026, 05:50 UTC';
    const [before, after] = [await draw(4), await draw(4, { fits: [fit] })];
    t.match(before, last);
    t.match(after, last);
    t.match(after, '>6 Mar<', 'the line goes on to the fit');
    t.match(await draw(0, { fits: [fit] }), /Prediction Forum · log offset/);
  },
);

t.test('themes differ in their colours alone', async (t) => {
  const without = (svg: string): string => svg.replace(/<style>.*<\/style>/, '');
  const themes = ['light', 'dark', 'auto'] as const;
  const [light = '', dark = '', auto = ''] = await Promise.all(
    themes.map((theme) => draw(20, {}, theme)),
  );
  t.equal(without(light), without(dark));
  t.equal(without(light), without(auto));
  t.not(light, dark);
  t.match(auto, /@media \(prefers-color-scheme:dark\)/);
  t.notMatch(light, /@media/);
});

/** Width and height of a PNG (RFC 2083, 11.2.2). */
const sizeOf = (png: Uint8Array): readonly [number, number] => {
  const bytes = Buffer.from(png);
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
};

t.test('a PNG has the size that is asked for; what is no picture harms no other', async (t) => {
  const maker = createPngMaker();
  t.teardown(() => maker.close());
  const [small, large] = await Promise.all([
    maker.render('a', { svg: await draw(30), width: 800 }),
    maker.render('a', { svg: await draw(30, {}, 'dark'), width: 1_600 }),
  ]);
  for (const png of [small, large]) {
    t.equal(Buffer.from(png.subarray(0, 8)).toString('latin1'), '\x89PNG\r\n\x1a\n');
  }
  t.same(
    [sizeOf(small), sizeOf(large)],
    [
      [800, 450],
      [1_600, 900],
    ],
  );
  await t.rejects(maker.render('a', { svg: 'no picture', width: 800 }), /SVG/);
  t.same(sizeOf(await maker.render('a', { svg: await draw(1), width: 400 })), [400, 225]);
  t.strictSame(
    await maker.render('a', { svg: await draw(30), width: 800 }),
    small,
    'the same again',
  );
});
