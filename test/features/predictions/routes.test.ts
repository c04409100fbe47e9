import { type Answered, startApp } from '../../help/app.js';
import { openCalls } from '../../help/socket-calls.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';

/** Prediction formats that clients of similar services send, over every transport. */

const app = await startApp(t, { roles: ['api', 'relay'] });
const human = await makeHuman(app);
const linked = () => makeAgent(app, { human });

type Body = Readonly<Record<string, unknown>>;

interface Transport {
  readonly name: string;
  send(key: string, question_id: string, body: Body): Promise<Answered>;
}

const transports: readonly Transport[] = [
  {
    name: 'the route of the question',
    send: (key, id, body) => app.call('POST', `/api/questions/${id}/predict`, { key, body }),
  },
  {
    name: 'the route of predictions',
    send: (key, question_id, body) =>
      app.call('POST', '/api/predictions', { key, body: { ...body, question_id } }),
  },
  {
    name: 'a batch',
    send: async (key, question_id, body) => {
      const predictions = [{ ...body, question_id }];
      const answer = await app.call('POST', '/api/predictions/batch', {
        key,
        body: { predictions },
      });
      const [{ status, result, ...rest }] = answer.body.results;
      return { ...answer, status, body: result ?? rest };
    },
  },
  {
    name: 'a call on a socket',
    send: async (key, id, body) => {
      const socket = await openCalls(t, app.port, { 'x-api-key': key });
      return socket.call('POST', `/api/questions/${id}/predict`, { body });
    },
  },
];

const bare = (mark: string): string => makeReasoning(mark).replaceAll(/https:\/\/\S*[^\s.]/g, 'it');
const yes = (more: Body): Body => ({ prediction: true, confidence: 60, ...more });

for (const { name, send } of transports) {
  t.test(`${name}: an option with a side, a text for a side`, async (t) => {
    const fields = { question_type: 'multi', options: ['north', 'south', 'east'] };
    const id = await makeOpenQuestion(app, fields);
    const { key } = await linked();
    const chosen = await send(key, id, {
      selected_option: 'south',
      prediction: true,
      probability: 0.7,
      reasoning: makeReasoning(),
    });
    t.equal(chosen.status, 201, chosen.body.error);
    t.match(chosen.body.prediction, {
      selected_option: 'south',
      confidence: 70,
      prediction: null,
      probability: null,
    });
    const binary = await makeOpenQuestion(app);
    const said = { prediction: 'No', confidence: 80, reasoning: makeReasoning() };
    const no = await send(key, binary, said);
    t.match(no.body.prediction, { prediction: false, probability: 20, confidence: 80 });
  });

  t.test(`${name}: sources beside the text`, async (t) => {
    const id = await makeOpenQuestion(app);
    const { key } = await linked();
    const mark = name.replaceAll(' ', '-');
    const evidence_urls = [`https://a.dev/${mark}/one`, `https://b.dev/${mark}/two`];
    const reasoning = bare(mark);
    const without = await send(key, id, yes({ reasoning }));
    t.match(without.body, { code: 'CITATIONS_REQUIRED' });
    t.match(without.body.fields[0].message, /or in evidence_urls\. None was found/);
    const dry = await send(key, id, yes({ reasoning, evidence_urls, dry_run: true }));
    t.match(dry.body, { would_be_accepted: true, citations: evidence_urls });
    const placed = await send(key, id, yes({ reasoning, evidence_urls }));
    t.equal(placed.status, 201, placed.body.error);
    t.same(placed.body.prediction.citations, evidence_urls);
    const { body } = await app.call('GET', `/api/predictions/${placed.body.prediction.id}`);
    t.same(body.prediction.citations, evidence_urls);
    const preflight = await app.call('GET', `/api/questions/${id}/preflight`, { key });
    t.same(preflight.body.citation_landscape.used_urls, evidence_urls);
    const other = await linked();
    const again = await send(other.key, id, yes({ reasoning: bare(`${mark}-2`), evidence_urls }));
    t.match(again.body, { code: 'CITATIONS_REUSED' });
    const eleven = Array.from({ length: 11 }, (_, n) => `https://a.dev/${mark}/${n}`);
    const many = await send(key, id, yes({ reasoning, evidence_urls: eleven }));
    t.match(many.body, {
      code: 'INVALID_REQUEST',
      fields: [{ path: 'body.evidence_urls', message: 'must have at most 10 items' }],
    });
  });

  t.test(`${name}: a protocol of any shape is given back as it came`, async (t) => {
    const { key } = await linked();
    const protocol = {
      zeta: 'the register decides',
      alpha: { sources: ['a', 'b', null], at: 12.5, final: true },
    };
    const id = await makeOpenQuestion(app);
    const made = await send(
      key,
      id,
      yes({ reasoning: makeReasoning(), resolution_protocol: protocol }),
    );
    t.equal(made.status, 201, made.body.error);
    const { body } = await app.call('GET', `/api/predictions/${made.body.prediction.id}`);
    for (const { resolution_protocol: given } of [made.body.prediction, body.prediction]) {
      t.strictSame(JSON.stringify(given), JSON.stringify(protocol), 'with its members in order');
    }
  });
}

t.test('every value of JSON is a protocol, up to 4 KiB', async (t) => {
  const { key } = await linked();
  const send = async (resolution_protocol: unknown) => {
    const id = await makeOpenQuestion(app);
    const body = yes({ reasoning: makeReasoning(), resolution_protocol });
    return app.call('POST', `/api/questions/${id}/predict`, { key, body });
  };
  const values = ['Ask.', '', 'null', 12, -1.5, false, [], {}, [1, [2]], '"\n\\', null];
  const longest = ['x'.repeat(4_094), '言'.repeat(2_000), { a: 'é'.repeat(2_044) }];
  for (const value of [...values, ...longest]) {
    const made = await send(value);
    const what = JSON.stringify(value).slice(0, 30);
    t.equal(made.status, 201, `${what} ${made.body.error}`);
    const { body } = await app.call('GET', `/api/predictions/${made.body.prediction.id}`);
    t.strictSame(body.prediction.resolution_protocol, value, what);
    const mine = await app.call('GET', '/api/me/predictions?limit=1', { key });
    t.strictSame(mine.body.predictions[0].resolution_protocol, value, what);
  }
  const exported = await app.call('GET', '/api/me/export', { key });
  t.match(JSON.stringify(exported.body), /"resolution_protocol":\[1,\[2\]\]/);
  for (const value of [
    'x'.repeat(4_095),
    '言'.repeat(2_001),
    { a: 'é'.repeat(2_045) },
    [' '.repeat(9_000)],
    ' '.repeat(9_000),
  ]) {
    const refused = await send(value);
    t.match(refused.body, {
      code: 'INVALID_REQUEST',
      fields: [
        { path: 'body.resolution_protocol', message: /at most 4096 bytes as JSON, not \d+/ },
      ],
    });
  }
});

t.test('the table refuses what a forecast cannot be', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const path = `/api/questions/${question_id}/predict`;
  const body = yes({ reasoning: makeReasoning() });
  const made = await app.call('POST', path, { key: (await linked()).key, body });
  const { id } = made.body.prediction;
  for (const wrong of [
    'confidence = 10001',
    'probability = -1',
    'prior_probability = 10001',
    'probability = null',
    'selected_option = 0',
    "probabilities = '{1,2}'",
    'revision = 1',
    'seq = -1',
  ]) {
    const update = app.sql.unsafe(`update predictions set ${wrong} where id = '${id}'`);
    await t.rejects(update, /violates check constraint/, wrong);
  }
  const stored = await app.sql`select confidence, revision from predictions where id = ${id}`;
  t.same([...stored], [{ confidence: 6_000, revision: 0 }]);
});
