import { makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import type { Answered } from './app.js';
import { stateOption } from './load.js';
import type { MixedAgent, MixedQuestion, World } from './mixed-world.js';

/** The operations of the mixed load. Each makes one call; null: there is nothing to do it on. */

export type Act = (world: World) => Promise<Answered | null>;

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
export const register: Act = async (world) => {
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

export const link: Act = async ({ call, agents, tokens, random, pick }) => {
  const agent = pick(agents);
  const owner = Math.floor(random() * tokens.length);
  if (agent === undefined) return null;
  const token = tokens[owner] ?? '';
  const answer = await call('POST', '/api/me/agents', { token, body: { api_key: agent.key } });
  if (is_good(answer)) agent.owner = owner;
  return answer;
};

export const unlink: Act = async (world) => {
  const agent = linked(world);
  if (agent?.owner == null) return null;
  const token = world.tokens[agent.owner] ?? '';
  const answer = await world.call('DELETE', `/api/me/agents/${agent.id}`, { token });
  if (is_good(answer)) agent.owner = null;
  return answer;
};

const state = ({ options }: MixedQuestion, n: number): Record<string, unknown> => {
  const confidence = makeConfidence(n);
  if (options.length > 0) return stateOption(options, n, confidence);
  return n % 3 === 0 ? { probability: 100 - confidence } : { prediction: n % 2 === 0, confidence };
};

export const predict: Act = async (world) => {
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
  if (answer.status === 201) {
    predictions.push({ id: answer.body.prediction.id, agent_id: agent.id });
  }
  return answer;
};

const draft = ({ next, chance }: World) => ({
  question: `Will the signal box number ${next()} be manned again before the autumn?`,
  category: 'industry',
  subcategory: 'transportation_mobility',
  closes_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
  ...(chance(0.3) ? { question_type: 'multi', options: ['never', 'by day', 'always'] } : {}),
});

const keep = (world: World, answer: Answered): Answered => {
  if (answer.status === 201) {
    const { id, options, status } = answer.body.question;
    world.questions.push({ id, options, status });
  }
  return answer;
};

export const create: Act = async (world) => {
  const body = { ...draft(world), publish: true, weight: 1 + Math.floor(world.random() * 3) };
  return keep(world, await world.call('POST', '/api/admin/questions', { admin: true, body }));
};

export const suggest: Act = async (world) => {
  const agent = linked(world);
  if (agent === undefined) return null;
  const options = { key: agent.key, body: draft(world) };
  return keep(world, await world.call('POST', '/api/questions/suggest', options));
};

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

const outcomeOf = ({ options }: MixedQuestion, world: World) =>
  options.length === 0
    ? { outcome: world.chance(0.5) }
    : { correct_options: world.chance(0.8) ? [world.pick(options)] : options.slice(0, 2) };

export const publish = decide('publish', ['draft'], 'open');
export const close = decide('close', ['open'], 'closed');
export const reopen = decide('reopen', ['closed'], 'open', () => ({
  closes_at: new Date(Date.now() + 40 * 86_400_000).toISOString(),
}));
export const resolve = decide('resolve', ['closed'], 'resolved', outcomeOf);
export const resolveAgain = decide('resolve', ['resolved'], 'resolved', outcomeOf);
export const voidOne = decide('void', ['open', 'closed'], 'voided');

const hook_url = 'https://127.0.0.1:18443/mixed';
const events = ['prediction.placed', 'question.resolved', 'question.closed', 'question.created'];

/** Every event goes to every webhook that wants it: with more of them nothing else gets a turn. */
const most_hooks = 12;

export const addHook: Act = async (world) => {
  const agent = linked(world);
  const hooks = world.agents.reduce((sum, one) => sum + one.hooks.length, 0);
  if (agent === undefined || hooks >= most_hooks) return null;
  const wanted = events.filter(() => world.chance(0.5));
  const body = { url: hook_url, events: wanted.length === 0 ? events : wanted };
  const answer = await world.call('POST', '/api/webhooks', { key: agent.key, body });
  if (is_good(answer)) agent.hooks.push(answer.body.id);
  return answer;
};

const onHook =
  (work: (world: World, agent: MixedAgent, id: string) => Promise<Answered>): Act =>
  async (world) => {
    const agent = world.agents.find(({ hooks }) => hooks.length > 0 && world.chance(0.3));
    const id = agent === undefined ? undefined : world.pick(agent.hooks);
    return agent === undefined || id === undefined ? null : work(world, agent, id);
  };

export const changeHook = onHook((world, { key }, id) => {
  const body = world.chance(0.5) ? { active: world.chance(0.7) } : { events: [world.pick(events)] };
  return world.call('PATCH', `/api/webhooks/${id}`, { key, body });
});

export const dropHook = onHook(async (world, { key, hooks }, id) => {
  hooks.splice(hooks.indexOf(id), 1);
  return world.call('DELETE', `/api/webhooks/${id}`, { key });
});

export const comment: Act = async (world) => {
  const agent = linked(world);
  const question = world.pick(world.questions);
  if (agent === undefined || question === undefined) return null;
  const content = `Comment ${world.next()}: the timetable, workshop and stationmaster disagree here.`;
  const path = `/api/questions/${question.id}/comments`;
  return world.call('POST', path, { key: agent.key, body: { content } });
};

export const vote: Act = async (world) => {
  const agent = linked(world);
  const prediction = world.pick(world.predictions);
  if (agent === undefined || prediction === undefined) return null;
  const way = world.chance(0.7) ? 'upvote' : 'downvote';
  const method = world.chance(0.8) ? 'POST' : 'DELETE';
  const path = `/api/predictions/${prediction.id}/${way}`;
  return world.call(method, path, {
    key: agent.key,
    ...(method === 'POST' ? { body: {} } : {}),
  });
};
