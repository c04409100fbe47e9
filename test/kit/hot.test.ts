import { t } from 'tap';
import { createHotAnswers, type HotAnswers, writeBody } from '../../src/kit/http/hot.js';
import { reply } from '../../src/kit/http/route.js';
import { until } from '../help/until.js';

/** Answers that are kept while many ask for them. */

const tag = ({ id }: { id: string }): string => id;
const rule = { tag, after: 3 } as never;
const now = (): number => performance.now();

/** Asks as often as it takes, and makes the answer when it is due. */
const keep = (
  hot: HotAnswers,
  {
    target,
    id,
    value,
    remake,
  }: { target: string; id: string; value: object; remake?: () => unknown },
): void => {
  for (let ask = 0; ask < 3; ask += 1) {
    const opened = hot.open(target, rule, { id });
    if (opened.kind !== 'build') continue;
    const made = { ...reply(200, value), ...(remake === undefined ? {} : { remake }) };
    hot.close(opened.build, writeBody(made), [['Cache-Control', 'public, no-cache']]);
  }
};

const bodyOf = (hot: HotAnswers, target: string): string | undefined =>
  hot.find(target, now())?.body.toString();

t.test('what is asked for seldom is not kept, and what is asked for often is', async (t) => {
  const hot = createHotAnswers();
  t.equal(hot.open('/a', rule, { id: 'q' }).kind, 'cold');
  t.equal(hot.open('/a', rule, { id: 'q' }).kind, 'cold');
  t.equal(hot.find('/a', now()), undefined);
  keep(hot, { target: '/b', id: 'q', value: { n: 1 } });
  const found = hot.find('/b', now());
  t.equal(found?.body.toString(), '{"n":1}');
  t.match(found?.head.toString(), /^W\/"[\w-]{27}"\r\nContent-Type: application\/json\r\nCache-/);
  t.same(hot.stats(), { kept: 1, bytes: 7 });
});

t.test('who asks while an answer is made gets the same one', async (t) => {
  const hot = createHotAnswers();
  const opened = [1, 2, 3, 4].map(() => hot.open('/a', rule, { id: 'q' }));
  t.same(
    opened.map(({ kind }) => kind),
    ['cold', 'cold', 'build', 'join'],
  );
  const made = writeBody(reply(200, { n: 1 }));
  if (opened[2]?.kind === 'build') hot.close(opened[2].build, made, []);
  t.equal(opened[3]?.kind === 'join' && (await opened[3].reply), made);
});

t.test('an answer that failed is not kept, and who waits makes it again', async (t) => {
  const hot = createHotAnswers();
  const opened = [1, 2, 3, 4].map(() => hot.open('/a', rule, { id: 'q' }));
  if (opened[2]?.kind === 'build') hot.close(opened[2].build, null, []);
  t.equal(opened[3]?.kind === 'join' && (await opened[3].reply), null);
  t.equal(hot.find('/a', now()), undefined);
  t.equal(hot.open('/a', rule, { id: 'q' }).kind, 'build', 'the next one may try');
});

t.test('what is dropped while it is made is not kept, nor given to who comes later', async (t) => {
  const hot = createHotAnswers();
  const opened = [1, 2, 3].map(() => hot.open('/a', rule, { id: 'q' }))[2];
  hot.drop('q');
  const later = hot.open('/a', rule, { id: 'q' });
  t.equal(later.kind, 'build', 'made anew');
  if (opened?.kind === 'build') hot.close(opened.build, writeBody(reply(200, { n: 1 })), []);
  t.equal(hot.find('/a', now()), undefined);
  if (later.kind === 'build') hot.close(later.build, writeBody(reply(200, { n: 2 })), []);
  t.equal(bodyOf(hot, '/a'), '{"n":2}');
});

t.test('a tag drops what is under it and nothing else', async (t) => {
  const hot = createHotAnswers();
  keep(hot, { target: '/a', id: 'one', value: {} });
  keep(hot, { target: '/a/b', id: 'one', value: {} });
  keep(hot, { target: '/c', id: 'two', value: {} });
  hot.drop('one');
  t.same([bodyOf(hot, '/a'), bodyOf(hot, '/a/b'), bodyOf(hot, '/c')], [undefined, undefined, '{}']);
  hot.clear();
  t.same(hot.stats(), { kept: 0, bytes: 0 });
});

t.test(
  'figures that move are made anew when somebody asks, or the answer is dropped',
  async (t) => {
    const hot = createHotAnswers();
    let n = 1;
    let makes = 0;
    const remake = (): unknown => {
      makes += 1;
      return n === 3 ? undefined : { n };
    };
    keep(hot, { target: '/a', id: 'q', value: { n }, remake });
    keep(hot, { target: '/b', id: 'q', value: { n } });
    const before = hot.find('/a', now())?.etag;
    n = 2;
    hot.move('q');
    hot.move('q');
    t.equal(makes, 0, 'not before somebody asks');
    t.equal(bodyOf(hot, '/a'), '{"n":2}');
    t.equal(bodyOf(hot, '/a'), '{"n":2}');
    t.equal(makes, 1);
    t.not(hot.find('/a', now())?.etag, before);
    t.match(hot.find('/a', now())?.head.toString(), /^W\/"[\w-]{27}"\r\nContent-Type: /);
    t.equal(bodyOf(hot, '/b'), undefined, 'cannot be made anew');
    n = 3;
    hot.move('q');
    t.equal(bodyOf(hot, '/a'), undefined);
  },
);

t.test('what may lag is believed a little longer after figures have moved', async (t) => {
  const hot = createHotAnswers();
  const lagging = { tag, after: 1, keep_ms: 60_000, lag_ms: 1_000 } as never;
  const make = (): void => {
    const opened = hot.open('/a', lagging, { id: 'q' });
    if (opened.kind === 'build') hot.close(opened.build, writeBody(reply(200, {})), []);
  };
  make();
  hot.move('q');
  t.ok(hot.find('/a', now()), 'still');
  t.equal(hot.find('/a', now() + 1_001), undefined, 'no longer');
  const opened = hot.open('/a', lagging, { id: 'q' });
  hot.move('q');
  if (opened.kind === 'build') hot.close(opened.build, writeBody(reply(200, {})), []);
  t.equal(hot.find('/a', now() + 1_001), undefined, 'nor what was being made');
  make();
  hot.drop('q');
  t.equal(hot.find('/a', now()), undefined, 'a drop is a drop');
});

t.test('an answer is believed as long as its rule says', async (t) => {
  const hot = createHotAnswers();
  const short = { tag, after: 1, keep_ms: 1_000 } as never;
  const opened = hot.open('/a', short, { id: 'q' });
  if (opened.kind === 'build') hot.close(opened.build, writeBody(reply(200, {})), []);
  t.ok(hot.find('/a', now()));
  t.equal(hot.find('/a', now() + 1_001), undefined);
});

t.test('whoever comes the usual way has what is kept too', async (t) => {
  const hot = createHotAnswers();
  keep(hot, { target: '/a', id: 'q', value: { n: 1 } });
  const opened = hot.open('/a', rule, { id: 'q' });
  t.equal(opened.kind === 'kept' && String(opened.reply.body), '{"n":1}');
  t.equal(opened.kind === 'kept' && opened.reply.etag, hot.find('/a', now())?.etag);
});

t.test('four fifths through its time one makes it anew, the others have the old one', async (t) => {
  const hot = createHotAnswers();
  const short = { tag, after: 1, keep_ms: 400 } as never;
  const first = hot.open('/a', short, { id: 'q' });
  const began_ms = now();
  if (first.kind === 'build') hot.close(first.build, writeBody(reply(200, { n: 1 })), []);
  t.ok(hot.find('/a', began_ms + 300));
  t.equal(hot.find('/a', began_ms + 330), undefined, 'the next one goes the usual way');
  await until('it is due', () => now() > began_ms + 330);
  const second = hot.open('/a', short, { id: 'q' });
  if (now() > began_ms + 390) return t.comment('the machine stood still for too long');
  t.equal(second.kind, 'build');
  t.equal(bodyOf(hot, '/a'), '{"n":1}');
  t.equal(hot.open('/a', short, { id: 'q' }).kind, 'kept');
  if (second.kind === 'build') hot.close(second.build, writeBody(reply(200, { n: 2 })), []);
  t.equal(bodyOf(hot, '/a'), '{"n":2}');
});

t.test('what could not be made anew is not believed any longer', async (t) => {
  const hot = createHotAnswers();
  const short = { tag, after: 1, keep_ms: 60_000, lag_ms: 1_000 } as never;
  const first = hot.open('/a', short, { id: 'q' });
  if (first.kind === 'build') hot.close(first.build, writeBody(reply(200, {})), []);
  hot.move('q');
  await until('it is due', () => hot.find('/a', now()) === undefined);
  const second = hot.open('/a', short, { id: 'q' });
  t.equal(second.kind, 'build');
  if (second.kind === 'build') hot.close(second.build, null, []);
  t.equal(hot.find('/a', now()), undefined);
  t.same(hot.stats(), { kept: 0, bytes: 0 });
});
