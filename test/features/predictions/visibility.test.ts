import { startApp, type TestApp } from '../../help/app.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Every surface hides reasoning until its reader has predicted. */

const seesText = (text: string, shown: unknown): boolean => {
  const json = JSON.stringify(shown);
  const sources = text.match(/https:\/\/\S*[^\s.]/g) ?? [];
  const parts = [JSON.stringify(text.slice(0, 60)).slice(1, -1), ...sources, 'my own prior'];
  const seen = parts.filter((part) => json.includes(part)).length;
  if (seen !== 0 && seen !== parts.length) throw new Error(`A part is shown: ${json}`);
  return seen > 0;
};

interface World {
  readonly app: TestApp;
  readonly id: string;
  readonly author: Agent;
  readonly text: string;
  readonly pid: string;
  readonly comment_id: string;
  predict(key: string): Promise<void>;
}

const build = async (app: TestApp): Promise<World> => {
  const human = await makeHuman(app);
  const author = await makeAgent(app, { human });
  const id = await makeOpenQuestion(app);
  const text = makeReasoning();
  const place = async (key: string, reasoning: string) => {
    const stated = { prediction: true, confidence: 70, prior_probability: 50 };
    const body = { ...stated, reasoning, prior_basis: 'my own prior', resolution_protocol: 'Ask.' };
    const { status, body: placed } = await app.call('POST', `/api/questions/${id}/predict`, {
      key,
      body,
    });
    if (status !== 201) throw new Error(JSON.stringify(placed));
    return placed;
  };
  const placed = await place(author.key, text);
  if (!seesText(text, placed)) throw new Error('The author does not see its own text.');
  const pid = placed.prediction.id as string;
  const replied = await app.call('POST', `/api/questions/${id}/predictions/${pid}/reply`, {
    key: author.key,
    body: { content: 'Later readings support this view; see what the author adds here.' },
  });
  const comment_id = replied.body.comment?.id as string;
  const predict = async (key: string): Promise<void> => void (await place(key, makeReasoning()));
  return { app, id, author, text, pid, comment_id, predict };
};

const surfacesOf = ({ id, pid, author, comment_id }: World): readonly string[] => [
  `/api/questions/${id}`,
  `/api/questions/${id}/predictions`,
  `/api/questions/${id}/predictions?sort=top`,
  `/api/predictions/${pid}`,
  `/api/predictions/${pid}/replies`,
  `/api/questions/${id}/comments`,
  `/api/questions/${id}/debates`,
  `/api/comments/${comment_id}`,
  `/api/discussions?tab=latest`,
  `/api/discussions?tab=debates`,
  `/api/agents/${author.id}`,
  `/api/questions/${id}/consensus`,
  `/api/questions`,
  `/api/events?after=0`,
];
const telling = 4;

/**
 * Counts the surfaces that show the reasoning. Either every surface with predictions shows it, or
 * none does.
 */
const countSeen = async (
  world: World,
  asker: { key?: string; token?: string; admin?: boolean },
) => {
  let seen = 0;
  for (const path of surfacesOf(world)) {
    const { status, body } = await world.app.call('GET', path, asker);
    if (status >= 500) throw new Error(`${path}: ${status}`);
    if (seesText(world.text, body)) seen += 1;
  }
  return seen;
};

const app = await startApp(t, { roles: ['api', 'relay'], env: { HIDE_REASONING: 'true' } });

t.test('with HIDE_REASONING an open question shows reasons to those who predicted', async (t) => {
  const world = await build(app);
  const human = await makeHuman(app);
  const [reader, stranger] = [await makeAgent(app, { human }), await makeAgent(app)];
  t.equal(await countSeen(world, {}), 0, 'nobody in particular');
  t.equal(await countSeen(world, { key: reader.key }), 0, 'an agent that has not predicted');
  t.equal(await countSeen(world, { key: stranger.key }), 0, 'an agent that is not linked');
  t.equal(await countSeen(world, { token: human.token }), 0, 'the owner of one that has not');
  t.equal(await countSeen(world, { key: world.author.key }), telling, 'the author');
  t.equal(await countSeen(world, { admin: true }), telling, 'an admin');

  const path = `/api/predictions/${world.pid}`;
  const hidden = await app.call('GET', path, { key: reader.key });
  t.match(hidden.body.prediction, {
    reasoning: null,
    citations: [],
    prior_basis: null,
    reasoning_hidden: true,
    confidence: 70,
    resolution_protocol: 'Ask.',
    prior_probability: 50,
  });
  t.match(hidden.headers.get('vary'), /X-API-Key, Authorization/);
  const etag = hidden.headers.get('etag') ?? '';
  const again = await app.call('GET', path, {
    key: reader.key,
    headers: { 'if-none-match': etag },
  });
  t.equal(again.status, 304);
  t.match(again.headers.get('vary'), /X-API-Key/);
  const other = await app.call('GET', path, {
    key: world.author.key,
    headers: { 'if-none-match': etag },
  });
  t.equal(other.status, 200, 'a tag stands for what its reader saw');
  t.notOk('reasoning_hidden' in other.body.prediction);

  const flight = await app.call('GET', `/api/questions/${world.id}/preflight`, { key: reader.key });
  t.equal(flight.body.own_prediction, null);
  await world.predict(reader.key);
  t.equal(await countSeen(world, { key: reader.key }), telling, 'once it has predicted');
  t.equal(await countSeen(world, { token: human.token }), telling, 'and its owner with it');
  t.equal(await countSeen(world, {}), 0);
  const own = await app.call('GET', '/api/me/predictions', { key: world.author.key });
  t.ok(seesText(world.text, own.body), 'own data are whole');

  await app.call('POST', `/api/admin/questions/${world.id}/close`, { admin: true, body: {} });
  t.equal(await countSeen(world, {}), telling, 'everybody, after the question closed');
});

t.test('a question whose time is up hides nothing, closed by the timer or not yet', async (t) => {
  const world = await build(app);
  t.equal(await countSeen(world, {}), 0);
  await app.sql`
    update questions
    set opens_at = now() - interval '2 days', closes_at = now() - interval '1 second'
    where id = ${world.id}`;
  await until('all is seen', async () => (await countSeen(world, {})) === telling);
});

t.test('without it everybody reads reasoning, and events never carry it', async (t) => {
  const plain = await startApp(t, { roles: ['api'] });
  const world = await build(plain);
  t.equal(await countSeen(world, {}), telling);
  t.equal((await plain.call('GET', `/api/predictions/${world.pid}`)).headers.get('vary'), null);
  const rows = await plain.sql`select body from outbox`;
  t.ok(rows.some(({ body }) => String(body).includes(world.pid)));
  t.notOk(seesText(world.text, rows));
});

t.test('a list can be had without the reasonings, which is otherwise the same', async (t) => {
  const { app, id, author } = await build(await startApp(t));
  const path = `/api/questions/${id}/predictions`;
  const { body: long } = await app.call('GET', path);
  const { body: short } = await app.call('GET', `${path}?reasoning=false`);
  const [whole, bare] = [long.predictions[0], short.predictions[0]];
  t.match(bare, { user_id: author.id, reasoning: null, citations: [], reasoning_hidden: true });
  const { reasoning, citations, prior_basis, resolution_protocol } = whole;
  const { reasoning_hidden: _, ...rest } = bare;
  t.same({ ...rest, reasoning, citations, prior_basis, resolution_protocol }, whole);
});
