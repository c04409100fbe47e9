import fc from 'fast-check';
import {
  type Attempted,
  attempt_limit,
  createBreakers,
  findUnknown,
  judgeAttempt,
  pauseOf,
  readRetryAfter,
  retry_steps_ms,
  retryDelay,
} from '../../../src/features/webhooks/rules.js';
import { t } from '../../help/tap.js';

const made = (parts: Partial<Attempted>): Attempted => ({
  attempt: 1,
  status: 204,
  is_refused: false,
  retry_after: '',
  now_ms: Date.parse('2026-01-02T03:04:05Z'),
  random: 0.5,
  ...parts,
});

t.test('there are ten attempts, with the steps of the design between them', async (t) => {
  t.equal(attempt_limit, 10);
  const s = 1_000;
  const h = 3_600 * s;
  const steps = [5 * s, 300 * s, 1_800 * s, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h];
  t.same(retry_steps_ms, steps);
});

t.test('an attempt is judged by its answer, its number and its target', async (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), (status) => {
      const { state } = judgeAttempt(made({ status }));
      return state === (status >= 200 && status <= 299 ? 'delivered' : 'waiting');
    }),
  );
  for (const [parts, state] of [
    [{ status: 301 }, 'waiting'],
    [{ status: 410 }, 'waiting'],
    [{ status: null }, 'waiting'],
    // After the ninth failure the delivery waits for another attempt. The tenth is the last.
    [{ attempt: 9, status: 500 }, 'waiting'],
    [{ attempt: 10, status: 500 }, 'exhausted'],
    [{ attempt: 10, status: 200 }, 'delivered'],
    [{ status: null, is_refused: true }, 'blocked'],
  ] as const) {
    const verdict = judgeAttempt(made(parts));
    t.equal(verdict.state, state, JSON.stringify(parts));
    if (state === 'exhausted' || state === 'blocked') t.equal(verdict.delay_ms, 0);
  }
});

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const step = fc.constantFrom(...retry_steps_ms);

t.test('the delay is the step with a spread of a fifth to either side', async (t) => {
  fc.assert(
    fc.property(step, random, (step_ms, r) => {
      const delay_ms = retryDelay(step_ms, null, r);
      return delay_ms >= step_ms * 0.8 - 1 && delay_ms <= step_ms * 1.2 + 1;
    }),
  );
  t.equal(retryDelay(5_000, null, 0), 4_000);
  t.equal(retryDelay(5_000, null, 0.5), 5_000);
});

t.test('what the receiver asks for is honoured between one and two steps', async () => {
  fc.assert(
    fc.property(step, random, fc.nat({ max: 1e9 }), (step_ms, r, asked_ms) => {
      const delay_ms = retryDelay(step_ms, asked_ms, r);
      const never_before = Math.min(Math.max(asked_ms, step_ms), 2 * step_ms);
      return delay_ms >= never_before - 1 && delay_ms <= 2 * step_ms;
    }),
  );
});

t.test('Retry-After counts with 429 and 503 only', async (t) => {
  const delay = (status: number): number =>
    judgeAttempt(made({ status, retry_after: '9', random: 0 })).delay_ms;
  t.equal(delay(429), 9_000);
  t.equal(delay(503), 9_000);
  t.equal(delay(500), 4_000);
  t.equal(delay(302), 4_000);
});

t.test('Retry-After is read as seconds or as a date', async (t) => {
  const now_ms = Date.parse('2026-01-02T03:04:05Z');
  t.equal(readRetryAfter('0', now_ms), 0);
  t.equal(readRetryAfter(' 120 ', now_ms), 120_000);
  t.equal(readRetryAfter('Fri, 02 Jan 2026 03:04:15 GMT', now_ms), 10_000);
  t.equal(readRetryAfter('Fri, 02 Jan 2026 03:04:00 GMT', now_ms), 0);
  for (const nothing of ['', 'soon', '-5', '1.5', '1e9', '99999999999', 'Infinity']) {
    t.equal(readRetryAfter(nothing, now_ms), null, nothing);
  }
});

t.test(
  'members that would have narrowed are named with what to use, others are ignored',
  async (t) => {
    const pathsOf = (body: object) => findUnknown(body).map(({ path }) => path);
    const good = { url: 'https://a.example.org', events: ['question.created'], active: true };
    const filter = { question_ids: [], categories: [], model_family: 'gpt', min_confidence: 1 };
    t.strictSame(pathsOf({ ...good, filter, scope_question_id: 'x' }), []);
    t.strictSame(pathsOf({ ...good, filter: null }), []);
    t.strictSame(pathsOf({ ...good, name: 'mine', secret: 's', agent_id: 'a', event_data: 1 }), []);
    t.strictSame(pathsOf({ ...good, scope: null, topics: null }), [], 'null narrows nothing');
    const meant = [
      'scope',
      'scope_category',
      'scopeQuestionId',
      'topics',
      'filters',
      'subcategory',
      'tags',
      'question_id',
      'question_ids',
      'questionIds',
      'category',
      'categories',
      'model_families',
      'model_family',
      'min_confidence',
      'event_types',
    ];
    const message = /or filter with question_ids, categories, model_family, min_confidence/;
    for (const name of meant) {
      t.match(findUnknown({ ...good, [name]: 'x' }), [{ path: `body.${name}`, message }]);
    }
    t.strictSame(pathsOf({ filter: { model_families: ['gpt'], odd: 1, events: ['x'] } }), [
      'body.filter.model_families',
      'body.filter.odd',
      'body.filter.events',
    ]);
  },
);

const a_minute = 60_000;

const tries = (
  breakers: ReturnType<typeof createBreakers>,
  pattern: string,
  now_ms = 0,
  webhook_id = 'a',
) => [...pattern].map((one) => breakers({ webhook_id, trips: 0, is_success: one === '+' }, now_ms));
const opened = { trips: 1, pause_ms: 30_000 };

t.test('ten failures open the breaker for 30 seconds, nine do not', async (t) => {
  const answers = tries(createBreakers(), '----------');
  t.same(answers, [...Array(9).fill(null), opened]);
});

t.test('70 % of ten open it, 60 % do not, and the next failure counts too', async (t) => {
  t.same(tries(createBreakers(), '+++-------').at(-1), opened);
  t.same(tries(createBreakers(), '++++------').at(-1), null);
  // 8 of 12 is less than 70 %, and 10 of 14 is more.
  t.same(tries(createBreakers(), '++++----------').slice(-3), [null, null, opened]);
});

t.test('only tries of the last five minutes count, of each webhook by itself', async (t) => {
  const breakers = createBreakers();
  tries(breakers, '---------');
  t.same(tries(breakers, '-', 0, 'b'), [null]);
  t.same(tries(breakers, '-', 6 * a_minute), [null], 'the nine are forgotten');
  t.same(tries(breakers, '--------', 6 * a_minute), Array(8).fill(null));
  t.same(tries(breakers, '-', 10 * a_minute), [opened]);
});

t.test('a probe closes the breaker or opens it for twice as long, up to an hour', async (t) => {
  const breakers = createBreakers();
  const probe = (trips: number, is_success: boolean) =>
    breakers({ webhook_id: 'a', trips, is_success }, 0);
  t.same(probe(1, true), { trips: 0, pause_ms: 0 });
  t.same(probe(1, false), { trips: 2, pause_ms: 60_000 });
  t.same(probe(2, false), { trips: 3, pause_ms: 120_000 });
  t.same(
    [6, 7, 8, 9, 1_000].map((trips) => pauseOf(trips)),
    [960_000, 1_920_000, 3_600_000, 3_600_000, 3_600_000],
  );
});

t.test('it opens exactly when a share of failures is reached within the window', async () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 60 }), (outcomes) => {
      const breakers = createBreakers();
      let [count, failed] = [0, 0];
      return outcomes.every((is_success) => {
        count += 1;
        failed += is_success ? 0 : 1;
        const is_due = count >= 10 && failed >= 0.7 * count;
        const change = breakers({ webhook_id: 'a', trips: 0, is_success }, 1);
        if (is_due) [count, failed] = [0, 0];
        return (change !== null) === is_due;
      });
    }),
  );
});
