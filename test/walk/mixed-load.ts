import { makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import type { Sql } from '../../src/db/client.js';
import type { VerifyParts } from '../../src/tools/verify/parts.js';
import { findDifferences } from '../../src/tools/verify.js';
import { type Answered, type CallOptions, makeCaller } from '../help/app.js';
import { stateOption } from '../help/load.js';
import { until } from '../help/until.js';
import { makeRandom } from '../tools/season-records.js';

/**
 * A long mixture of everything that moves points, links, questions and webhooks, from many clients
 * at once on one small world, so that they meet. What a client may be refused is known; whatever
 * else comes is odd.
 */

interface MixedAgent {
  readonly id: string;
  readonly key: string;
  readonly code: string;
  /** Index of the person it is linked to; null while it is not, as far as clients know. */
  owner: number | null;
  readonly hooks: string[];
}

interface MixedQuestion {
  readonly id: string;
  readonly options: readonly string[];
  /** As the last call left it; calls that pass each other are refused: part of the load. */
  status: 'draft' | 'open' | 'closed' | 'resolved' | 'voided';
}

interface World {
  readonly call: (method: string, path: string, options?: CallOptions) => Promise<Answered>;
  readonly tokens: readonly string[];
  readonly agents: MixedAgent[];
  readonly questions: MixedQuestion[];
  readonly predictions: string[];
  /** Pairs of agent and question that were tried. */
  readonly pairs: Set<string>;
  readonly random: () => number;
  pick<T>(list: readonly T[]): T | undefined;
  chance(share: number): boolean;
  /** A number that nobody had before. */
  next(): number;
}

const password = 'correct horse battery';

/** A person with a verified address. */
const addPerson = async (call: World['call'], sql: Sql, n: number): Promise<string> => {
  const email = `mixed${n}@people.dev`;
  await call('POST', '/api/auth/signup', { body: { email, password } });
  await sql`update humans set email_verified_at = now() where email = ${email}`;
  const { body } = await call('POST', '/api/auth/login', { body: { email, password } });
  return body.token as string;
};

const makeWorld = async (url: string, sql: Sql, seed: number): Promise<World> => {
  const call = makeCaller(url);
  const tokens: string[] = [];
  for (let n = 0; n < 6; n += 1) tokens.push(await addPerson(call, sql, n));
  const random = makeRandom(seed);
  let made = 0;
  return {
    ...{ call, tokens, random },
    agents: [],
    questions: [],
    predictions: [],
    pairs: new Set(),
    pick: (list) => list[Math.floor(random() * list.length)],
    chance: (share) => random() < share,
    next() {
      made += 1;
      return made;
    },
  };
};

/** Makes one call; null: there is nothing to do it on. */
type Act = (world: World) => Promise<Answered | null>;

const linked = ({ agents, pick }: World): MixedAgent | undefined => {
  for (let tries = 0; tries < 8; tries += 1) {
    const agent = pick(agents);
    if (agent?.owner != null) return agent;
  }
  return undefined;
};

const inStatus = (
  { questions, pick }: World,
  ...wanted: readonly MixedQuestion['status'][]
): MixedQuestion | undefined => {
  for (let tries = 0; tries < 12; tries += 1) {
    const question = pick(questions);
    if (question !== undefined && wanted.includes(question.status)) return question;
  }
  return undefined;
};

const is_good = ({ status }: Answered): boolean => status < 300;

/** Half with a recruiter, a third linked at once. */
const register: Act = async (world) => {
  const { call, agents, tokens, chance, pick, next } = world;
  const code = chance(0.5) ? pick(agents)?.code : undefined;
  const owner = chance(0.33) ? Math.floor(world.random() * tokens.length) : null;
  const token = owner === null ? undefined : tokens[owner];
  const answer = await call('POST', '/api/register', {
    ...(token === undefined ? {} : { token }),
    body: {
      name: `Mixed ${next()}`,
      model: pick(['gpt-4o', 'claude-opus-4', 'gemini-2.5-pro', 'llama-4']),
      ...(code === undefined ? {} : { referral_code: code }),
    },
  });
  if (is_good(answer)) {
    const { user, api_key } = answer.body;
    agents.push({ id: user.id, key: api_key, code: user.referral_code, owner, hooks: [] });
  }
  return answer;
};

const link: Act = async ({ call, agents, tokens, random, pick }) => {
  const agent = pick(agents);
  const owner = Math.floor(random() * tokens.length);
  if (agent === undefined) return null;
  const token = tokens[owner] ?? '';
  const answer = await call('POST', '/api/me/agents', { token, body: { api_key: agent.key } });
  if (is_good(answer)) agent.owner = owner;
  return answer;
};

/** What linked agents do. */
const asLinked =
  (act: (world: World, agent: MixedAgent) => Promise<Answered | null>): Act =>
  async (world) => {
    const agent = linked(world);
    return agent === undefined ? null : act(world, agent);
  };

const unlink = asLinked(async ({ call, tokens }, agent) => {
  const token = tokens[agent.owner ?? -1] ?? '';
  const answer = await call('DELETE', `/api/me/agents/${agent.id}`, { token });
  if (is_good(answer)) agent.owner = null;
  return answer;
});

const state = ({ options }: MixedQuestion, n: number): Record<string, unknown> => {
  const confidence = makeConfidence(n);
  if (options.length > 0) return stateOption(options, n, confidence);
  return n % 3 === 0 ? { probability: 100 - confidence } : { prediction: n % 2 === 0, confidence };
};

const predict: Act = async (world) => {
  const { call, pairs, predictions, chance, next } = world;
  const agent = linked(world) ?? world.pick(world.agents);
  const question = inStatus(world, 'open') ?? world.pick(world.questions);
  if (agent === undefined || question === undefined) return null;
  const pair = `${agent.id} ${question.id}`;
  // Now and then a second time.
  if (pairs.has(pair) && chance(0.8)) return null;
  pairs.add(pair);
  const n = next();
  const body = { ...state(question, n), reasoning: makeReasoning(n) };
  const path = `/api/questions/${question.id}/predict`;
  const answer = await call('POST', path, { key: agent.key, body });
  if (answer.status === 201) predictions.push(answer.body.prediction.id);
  return answer;
};

const addQuestion = async (world: World, path: string, options: CallOptions) => {
  const { next, chance, random, call, questions } = world;
  const body = {
    question: `Will the signal box number ${next()} be manned again before the autumn?`,
    category: 'industry',
    subcategory: 'transportation_mobility',
    closes_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
    ...(chance(0.3) ? { question_type: 'multi', options: ['never', 'by day', 'always'] } : {}),
    ...(options.admin === true ? { publish: true, weight: 1 + Math.floor(random() * 3) } : {}),
  };
  const answer = await call('POST', path, { ...options, body });
  if (answer.status === 201) questions.push(answer.body.question);
  return answer;
};

const create: Act = (world) => addQuestion(world, '/api/admin/questions', { admin: true });
const suggest = asLinked((world, { key }) => addQuestion(world, '/api/questions/suggest', { key }));

/** An admin's act on a question, and the status that it has after it. */
const decide =
  (
    name: string,
    from: readonly MixedQuestion['status'][],
    to: MixedQuestion['status'],
    bodyOf: (question: MixedQuestion, world: World) => unknown = () => ({}),
  ): Act =>
  async (world) => {
    const question = inStatus(world, ...from);
    if (question === undefined) return null;
    const path = `/api/admin/questions/${question.id}/${name}`;
    const body = bodyOf(question, world);
    const answer = await world.call('POST', path, { admin: true, body });
    if (is_good(answer)) question.status = to;
    return answer;
  };

const laterClose = () => ({ closes_at: new Date(Date.now() + 40 * 86_400_000).toISOString() });
const outcomeOf = ({ options }: MixedQuestion, world: World) =>
  options.length === 0
    ? { outcome: world.chance(0.5) }
    : { correct_options: world.chance(0.8) ? [world.pick(options)] : options.slice(0, 2) };

const hook_url = 'https://127.0.0.1:18443/mixed';
const events = ['prediction.placed', 'question.resolved', 'question.closed', 'question.created'];

/** Every event goes to every webhook that wants it: with more of them nothing else gets a turn. */
const most_hooks = 12;

const addHook = asLinked(async (world, agent) => {
  const hooks = world.agents.reduce((sum, one) => sum + one.hooks.length, 0);
  if (hooks >= most_hooks) return null;
  const wanted = events.filter(() => world.chance(0.5));
  const body = { url: hook_url, events: wanted.length === 0 ? events : wanted };
  const answer = await world.call('POST', '/api/webhooks', { key: agent.key, body });
  if (is_good(answer)) agent.hooks.push(answer.body.id);
  return answer;
});

const onHook =
  (act: (world: World, agent: MixedAgent, path: string) => Promise<Answered>): Act =>
  async (world) => {
    const agent = world.agents.find(({ hooks }) => hooks.length > 0 && world.chance(0.3));
    const id = agent === undefined ? undefined : world.pick(agent.hooks);
    return agent === undefined ? null : act(world, agent, `/api/webhooks/${id}`);
  };

const changeHook = onHook(({ call, chance, pick }, { key }, path) => {
  const body = chance(0.5) ? { active: chance(0.7) } : { events: [pick(events)] };
  return call('PATCH', path, { key, body });
});

const dropHook = onHook(({ call }, { key, hooks }, path) => {
  hooks.splice(hooks.indexOf(path.slice(path.lastIndexOf('/') + 1)), 1);
  return call('DELETE', path, { key });
});

const comment = asLinked(async ({ call, pick, questions, next }, { key }) => {
  const content = `Comment ${next()}: the timetable, workshop and stationmaster disagree here.`;
  const path = `/api/questions/${pick(questions)?.id}/comments`;
  return call('POST', path, { key, body: { content } });
});

const vote = asLinked(async ({ call, pick, predictions, chance }, { key }) => {
  const id = pick(predictions);
  if (id === undefined) return null;
  const path = `/api/predictions/${id}/${chance(0.7) ? 'upvote' : 'downvote'}`;
  return chance(0.8) ? call('POST', path, { key, body: {} }) : call('DELETE', path, { key });
});

/** How often each comes, of a thousand. */
const mixture: readonly (readonly [weight: number, name: string, act: Act])[] = [
  [60, 'register', register],
  [70, 'link', link],
  [25, 'unlink', unlink],
  [560, 'predict', predict],
  [25, 'create', create],
  [25, 'suggest', suggest],
  [15, 'publish', decide('publish', ['draft'], 'open')],
  [30, 'close', decide('close', ['open'], 'closed')],
  [8, 'reopen', decide('reopen', ['closed'], 'open', laterClose)],
  [25, 'resolve', decide('resolve', ['closed'], 'resolved', outcomeOf)],
  [10, 'resolve again', decide('resolve', ['resolved'], 'resolved', outcomeOf)],
  [8, 'void', decide('void', ['open', 'closed'], 'voided')],
  [12, 'add webhook', addHook],
  [12, 'change webhook', changeHook],
  [6, 'drop webhook', dropHook],
  [50, 'comment', comment],
  [59, 'vote', vote],
];
const total_weight = mixture.reduce((sum, [weight]) => sum + weight, 0);

/** Refusals that follow from calls that meet, or from rules that the clients do not know. */
const expected = new Set([
  'ACCOUNT_SUSPENDED',
  'AGENT_ALREADY_LINKED',
  'AGENT_NOT_FOUND',
  'AGENT_NOT_LINKED',
  'COMMENT_LIMIT_REACHED',
  'DUPLICATE_PREDICTION',
  'INVALID_TRANSITION',
  'NOT_FOUND',
  'QUESTION_NOT_FOUND',
  'QUESTION_NOT_OPEN',
  'SAME_OWNER_VOTE',
  'SUGGESTION_LIMIT_REACHED',
  'TIER_REQUIRED',
  'WEBHOOK_LIMIT_REACHED',
  'WEBHOOK_NOT_FOUND',
]);

export interface MixedOptions {
  readonly url: string;
  readonly sql: Sql;
  readonly operations: number;
  readonly clients: number;
  readonly seed: number;
  /** Called now and then with how many operations are done. */
  readonly onProgress?: (done: number) => void;
}

export interface MixedResult {
  /** How often each operation was answered well, and how often refused. */
  readonly counts: ReadonlyMap<string, { good: number; refused: number }>;
  /** Answers that no client should get, as sentences, some of them. */
  readonly odd: readonly string[];
  readonly placed: number;
  readonly seconds: number;
}

const draw = (world: World): (typeof mixture)[number] => {
  let at = world.random() * total_weight;
  for (const one of mixture) {
    at -= one[0];
    if (at < 0) return one;
  }
  return mixture[0] as (typeof mixture)[number];
};

const whyOdd = ({ status, body }: Answered): string | null => {
  if (status < 300 || (status < 500 && expected.has(body?.code))) return null;
  return `${status} ${JSON.stringify(body).slice(0, 200)}`;
};

const begin = async (world: World): Promise<void> => {
  for (let n = 0; n < 40; n += 1) await register(world);
  for (let n = 0; n < 60; n += 1) await link(world);
  for (let n = 0; n < 20; n += 1) await create(world);
};

export const runMixed = async (options: MixedOptions): Promise<MixedResult> => {
  const { operations, clients, onProgress } = options;
  const world = await makeWorld(options.url, options.sql, options.seed);
  await begin(world);
  const counts = new Map<string, { good: number; refused: number }>();
  const odd: string[] = [];
  const started_ms = performance.now();
  let done = 0;
  const runClient = async (): Promise<void> => {
    while (done < operations) {
      const [, name, act] = draw(world);
      const answer = await act(world);
      if (answer === null) continue;
      done += 1;
      if (done % 1_000 === 0) onProgress?.(done);
      const why = whyOdd(answer);
      if (why !== null && odd.length < 50) odd.push(`${name}: ${why}`);
      const count = counts.get(name) ?? { good: 0, refused: 0 };
      count[answer.status < 300 ? 'good' : 'refused'] += 1;
      counts.set(name, count);
    }
  };
  await Promise.all(Array.from({ length: clients }, runClient));
  const seconds = (performance.now() - started_ms) / 1_000;
  return { counts, odd, placed: world.predictions.length, seconds };
};

export const describeMixed = ({ counts, placed, seconds }: MixedResult): string => {
  const each = [...counts].map(([name, { good, refused }]) => `${name} ${good}+${refused}`);
  return `${placed} predictions; ${each.join(', ')} (answered + refused) in ${seconds.toFixed(0)} s`;
};

/** Everything in its way off: the limits are not what this is about. */
export const mixed_env = {
  LIMIT_IP: '100000000',
  LIMIT_KEY: '100000000',
  LIMIT_REGISTER: '100000000',
  LIMIT_LOGIN: '100000000',
  LIMIT_PREDICTIONS: '100000000',
  LIMIT_COMMENTS: '100000000',
  LIMIT_VOTES: '100000000',
  LIMIT_WEBHOOKS: '100000000',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
};

const findUnfinished = async (sql: Sql): Promise<readonly string[]> => {
  const [row] = await sql<{ decisions: number; waiting: number }[]>`
    select
      (select count(*)::integer from resolutions where state = 'running') as decisions,
      (select count(*)::integer from outbox) as waiting`;
  const { decisions = 0, waiting = 0 } = row ?? {};
  return [
    ...(decisions === 0 ? [] : [`${decisions} decisions are not settled`]),
    ...(waiting === 0 ? [] : [`${waiting} events wait in the outbox`]),
  ];
};

/** Looks until everything is settled and verify finds nothing; what it finds at the end. */
export const awaitAgreement = async (
  parts: VerifyParts,
  within_ms: number,
): Promise<readonly string[]> => {
  let found: readonly string[] = ['nothing was looked at'];
  const look = async (): Promise<boolean> => {
    try {
      const unfinished = await findUnfinished(parts.sql);
      found = unfinished.length > 0 ? unfinished : await findDifferences(parts);
    } catch (error) {
      found = [`it cannot be looked at: ${error}`];
    }
    return found.length === 0;
  };
  await until('all agrees', look, within_ms, 200).catch(() => undefined);
  return found;
};
