import { type Answered, startApp, type TestApp } from '../../help/app.js';
import { openStores } from '../../help/stores.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { t } from '../../help/tap.js';
import { untilLocked } from '../../help/until-locked.js';

/**
 * Three api processes on one database, each with its own memory, as on three hosts that do not know
 * each other: each considers itself the home process of every question. `RACES=3400` runs this many
 * rounds of each race.
 */
const rounds = Number(process.env['RACES'] ?? 8);

const stores = await openStores(t);
const no_limits = { LIMIT_PREDICTIONS: '1000000', LIMIT_KEY: '1000000', LIMIT_IP: '1000000' };
const env = { MODEL_FAMILY_CAP: '40', REQUIRE_RESOLUTION_PROTOCOL: 'true', ...no_limits };
const start = () => startApp(t, { stores, env, roles: ['api'] });
const apps = [await start(), await start(), await start()] as const;
const [app] = apps;
const human = await makeHuman(app);
const clients = 8;
const agents = await Promise.all(Array.from({ length: clients }, () => makeAgent(app, { human })));
const resolution_protocol = 'The register of the municipality decides.';

const predict = (at: TestApp, id: string, { key }: Agent, reasoning: string, more = {}) =>
  at.call('POST', `/api/questions/${id}/predict`, {
    key,
    body: { prediction: true, confidence: 55, reasoning, resolution_protocol, ...more },
  });

const codes = (answers: readonly Answered[]): string[] =>
  answers.map(({ status, body }) => body.code ?? String(status)).sort();

/** A text that is similar to this one, with unique sources and a few words of its own. */
const alike = (text: string, mark: string): string =>
  `${text.replaceAll(/(https:\/\/\S*[^\s.])/g, `$1-${mark}`)} Said by ${mark} alone.`;

t.test('of similar texts by eight clients over three processes exactly one wins', async (t) => {
  for (let round = 0; round < rounds; round += 1) {
    const id = await makeOpenQuestion(app);
    // In every other round, two of the processes already know the question.
    if (round % 2 === 1) {
      const other = await makeAgent(app, { human });
      await predict(apps[0], id, other, makeReasoning());
      const third = await makeAgent(app, { human });
      await predict(apps[1], id, third, makeReasoning());
    }
    const text = makeReasoning(`race-${round}`);
    const answers = await Promise.all(
      agents.map((agent, n) =>
        predict(apps[n % 3]!, id, agent, alike(text, `agent${'abcdefgh'[n]}`)),
      ),
    );
    t.same(codes(answers), ['201', ...Array(clients - 1).fill('REASONING_TOO_SIMILAR')].sort());
    const winner = answers.find(({ status }) => status === 201)?.body.prediction.id;
    for (const { status, body } of answers) {
      if (status !== 201) t.equal(body.prediction_id, winner, 'the others are told who was first');
    }
  }
});

t.test('what is stored since a question was read as a new one counts all the same', async (t) => {
  const [one, other, third] = await Promise.all(
    Array.from({ length: 3 }, () => makeAgent(app, { human })),
  );
  const id = await makeOpenQuestion(app);
  const text = makeReasoning('since');
  // This call fails for its form alone, so its process knows the question but compared no text.
  t.equal((await predict(apps[1], id, other!, 'too short')).status, 400);
  t.equal((await predict(apps[0], id, one!, text)).status, 201);
  const similar = await predict(apps[1], id, other!, alike(text, 'other'));
  t.same(codes([similar]), ['REASONING_TOO_SIMILAR']);
  const dry = await predict(apps[1], id, third!, alike(text, 'third'), { dry_run: true });
  t.match(dry.body, { would_be_accepted: false, failures: [{ code: 'REASONING_TOO_SIMILAR' }] });
});

t.test('different texts all get through, from both processes at once', async (t) => {
  const ids = await Promise.all([makeOpenQuestion(app), makeOpenQuestion(app)]);
  const many = await Promise.all(Array.from({ length: 36 }, () => makeAgent(app, { human })));
  const answers = await Promise.all(
    many.flatMap((agent, n) =>
      ids.map((id, at) => predict(apps[(n + at) % 2]!, id, agent, makeReasoning())),
    ),
  );
  t.same(codes(answers), Array(72).fill('201'));
  const rows = await app.sql`
    select question_id, count(*)::int as count, max(seq) as seq, count(distinct seq)::int as seqs
    from predictions
    where question_id = any (${ids}::uuid[])
    group by question_id`;
  for (const row of rows) {
    t.match(row, { count: 36, seqs: 36 }, 'each has a number of its own');
    const [last] = await app.sql`
      select seq from question_seqs where question_id = ${row['question_id']}`;
    t.equal(last?.['seq'], row['seq'], 'and the last one is known');
  }
});

t.test('an agent has one prediction on a question, through whichever process', async (t) => {
  for (let round = 0; round < rounds; round += 1) {
    const [id, agent] = [await makeOpenQuestion(app), await makeAgent(app, { human })];
    const answers = await Promise.all(apps.map((at) => predict(at, id, agent, makeReasoning())));
    t.same(codes(answers), ['201', 'DUPLICATE_PREDICTION', 'DUPLICATE_PREDICTION']);
    const ids = answers.map(({ body }) => body.prediction?.id ?? body.prediction_id);
    t.equal(new Set(ids).size, 1, 'all are told which one');
  }
});

t.test('an agent cannot use its sources twice, through whichever process', async (t) => {
  for (let round = 0; round < rounds; round += 1) {
    const agent = await makeAgent(app, { human });
    const text = makeReasoning(`sources-${round}`);
    const sources = text.match(/https:\/\/\S*[^\s.]/g) ?? [];
    const ids = await Promise.all([makeOpenQuestion(app), makeOpenQuestion(app)]);
    const answers = await Promise.all(
      ids.map((id, n) => {
        const own = makeReasoning(`other-${round}-${n}`);
        const [a = '', b = ''] = own.match(/https:\/\/\S*[^\s.]/g) ?? [];
        const reused = own.replace(a, sources[0] ?? '').replace(b, sources[1] ?? '');
        return predict(apps[(round + n) % 3]!, id, agent, reused);
      }),
    );
    t.same(codes(answers), ['201', 'CITATIONS_REUSED']);
  }
});

t.test('a family gets as many predictions as its cap says, and not one more', async (t) => {
  const id = await makeOpenQuestion(app);
  const many = await Promise.all(Array.from({ length: 44 }, () => makeAgent(app, { human })));
  const answers = await Promise.all(
    many.map((agent, n) => predict(apps[n % 2]!, id, agent, makeReasoning())),
  );
  t.same(codes(answers), [...Array(40).fill('201'), ...Array(4).fill('MODEL_LIMIT_REACHED')]);
  t.equal(answers.find(({ body }) => body.code !== undefined)?.status, 409);
  const last = await makeAgent(app, { human, model: 'gpt-5' });
  t.equal((await predict(app, id, last, makeReasoning())).status, 201, 'another family');
  const full = await makeAgent(app, { human });
  const path = `/api/questions/${id}/preflight`;
  const asked = await apps[1].call('GET', path, { key: full.key });
  t.match(asked.body, {
    reason: 'MODEL_LIMIT_REACHED',
    requirements: { model_family_cap: 40, model_family_count: 40, resolution_protocol: true },
  });
});

t.test('without a resolution protocol, where one is required, nothing is stored', async (t) => {
  const id = await makeOpenQuestion(app);
  const agent = await makeAgent(app, { human });
  for (const wrong of [null, '', '  ']) {
    const more = { resolution_protocol: wrong };
    const { status, body } = await predict(app, id, agent, makeReasoning(), more);
    t.equal(status, 400);
    t.equal(body.code, 'RESOLUTION_PROTOCOL_REQUIRED');
  }
  t.equal((await predict(app, id, agent, makeReasoning())).status, 201);
});

t.test('a text that waits for its verdict holds up what is like it, whatever comes', async (t) => {
  const id = await makeOpenQuestion(app);
  const [one, other] = [await makeAgent(app, { human }), await makeAgent(app, { human })];
  const text = makeReasoning('held');
  const answers = await app.sql.begin(async (tx) => {
    await tx`select from questions where id = ${id} for update`;
    const first = predict(app, id, one, text);
    await untilLocked('the first text waits for its verdict', tx);
    return [first, predict(app, id, other, alike(text, 'second'))];
  });
  const [first, second] = await Promise.all(answers);
  t.equal(first?.status, 201);
  t.equal(second?.body.code, 'REASONING_TOO_SIMILAR', 'it is compared with what was stored');
});

t.test('points limit nobody, and placing moves none', async (t) => {
  const id = await makeOpenQuestion(app);
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 0 where agent_id = ${agent.id}`;
  const before = await app.sql`select ctid::text from accounts where agent_id = ${agent.id}`;
  const { status, body } = await predict(app, id, agent, makeReasoning(), { confidence: 100 });
  t.equal(status, 201);
  t.same(body.points, { points: 0, tier: 'Observer' });
  t.notOk('stake' in body.prediction);
  const after = await app.sql`select ctid::text from accounts where agent_id = ${agent.id}`;
  t.same([...after], [...before], 'the account is not written to');
  const entries = await app.sql`select reason from ledger where agent_id = ${agent.id}`;
  t.same([...entries], [{ reason: 'registration' }]);
});
