import { createPngMaker } from '../../src/kit/svg-png.js';
import { t } from '../help/tap.js';

/** Pictures as PNG: the capacity of the threads that draw them, and which callers wait. */

const drawing = (n: number, height = 675): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="${height}">` +
  `<rect width="${n % 1_200}" height="50" fill="#345"/></svg>`;

const mb = 1_048_576;

t.test('many large pictures leave the memory as it was', async (t) => {
  const maker = createPngMaker();
  t.teardown(() => maker.close());
  await maker.render('a', { svg: drawing(0), width: 2_400 });
  const start = process.memoryUsage().rss;
  let most = 0;
  for (let n = 0; n < 25; n += 1) {
    const png = await maker.render('a', { svg: drawing(n), width: 2_400 });
    if (png.byteLength < 200) throw new Error(`picture ${n} is empty`);
    most = Math.max(most, process.memoryUsage().rss - start);
  }
  t.ok(most < 150 * mb, `${Math.round(most / mb)} MB more than at the start`);
});

t.test('one is drawn, a number waits, and one more is refused', async (t) => {
  const maker = createPngMaker({ waiting: 2 });
  t.teardown(() => maker.close());
  const taken = [1, 2, 3].map((n) => maker.render('a', { svg: drawing(n), width: 400 }));
  await t.rejects(maker.render('a', { svg: drawing(4), width: 400 }), { message: /too many/ });
  for (const png of await Promise.all(taken)) t.ok(png.byteLength > 200);
  t.ok(await maker.render('a', { svg: drawing(5), width: 400 }), 'there is room again');
});

t.test('a picture that takes too long is given up, and the next has its turn', async (t) => {
  const maker = createPngMaker({ longest_ms: 1 });
  t.teardown(() => maker.close());
  const both = [1, 2].map((n) => maker.render('a', { svg: drawing(n), width: 2_400 }));
  for (const late of both) await t.rejects(late, { message: /too long/ });
});

t.test('what waits when the maker is closed is told so', async (t) => {
  const maker = createPngMaker();
  const waiting = [1, 2].map((n) => maker.render('a', { svg: drawing(n), width: 400 }));
  const rejected = waiting.map((one) => t.rejects(one, { message: /ended|no longer made/ }));
  await maker.close();
  await Promise.all(rejected);
  await t.rejects(maker.render('a', { svg: drawing(3), width: 400 }), {
    message: /no longer made/,
  });
});

t.test('clients take turns, and one that asks for many leaves room for others', async (t) => {
  const maker = createPngMaker({ waiting: 8, waiting_of_each: 3 });
  t.teardown(() => maker.close());
  const done: string[] = [];
  let asked = 0;
  const ask = async (client: string) => {
    asked += 1;
    // Each picture has another size, because equal pictures are drawn only once.
    await maker.render(client, { svg: drawing(1), width: 200 + asked });
    done.push(client);
  };
  const many = Array.from({ length: 9 }, () => ask('greedy'));
  const settled = Promise.allSettled(many);
  await Promise.all([ask('one'), ask('other')]);
  const outcomes = (await settled).map(({ status }) => status);
  t.equal(outcomes.filter((status) => status === 'rejected').length, 5, 'four at most');
  t.ok(done.lastIndexOf('greedy') > done.indexOf('other'), done.join(' '));
  t.ok(done.indexOf('one') <= 2, done.join(' '));
});

t.test('texts of other scripts are drawn with glyphs of their own', async (t) => {
  const maker = createPngMaker();
  t.teardown(() => maker.close());
  const draw = async (text: string): Promise<string> => {
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><style>.c-ink{fill:#000000}</style>' +
      `<text class="c-ink" x="20" y="70" font-family="Inter" font-size="60">${text}</text></svg>`;
    return Buffer.from(await maker.render('a', { svg, width: 200 })).toString('base64');
  };
  const missing = await draw('\ue000');
  const empty = await draw('');
  const texts = ['ش', 'ש', 'श', '한', 'の', '誰', '谁', '臺', '、', 'Ж', 'Σ', 'é'];
  const drawn: string[] = [];
  for (const text of texts) drawn.push(await draw(text));
  for (const [n, text] of texts.entries()) {
    t.ok(drawn[n] !== missing && drawn[n] !== empty, text);
  }
  t.equal(new Set(drawn).size, texts.length, 'each is another picture');
  t.not(await draw('誰の'), await draw('誰'), 'Han characters of a Japanese text');
});
