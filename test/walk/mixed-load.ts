import { makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import type { Sql } from '../../src/db/client.js';
import type { VerifyParts } from '../../src/tools/verify/parts.js';
import { findDifferences } from '../../src/tools/verify.js';
import { type Answered, type CallOptions, makeCaller, no_limits } from '../help/app.js';
import { stateOption } from '../help/load.js';
import { makeRandom } from '../help/long-run.js';
import { untilNone } from '../help/until.js';

/**
 * A long mixture of operations that move points, links, questions and webhooks. Many concurrent
 * clients share one small world, so that their calls collide. Expected refusals are listed.
 * Everything else is odd.
 */

interface MixedAgent {
  readonly id: string;
  readonly key: string;
  readonly code: string;
  /** Token of the person it is linked to. Null if it is not linked, as far as clients know. */
  owner: string | null;
  readonly hooks: string[];
}

interface MixedQuestion {
  readonly id: string;
  readonly options: readonly string[];
  /** The status after the last call. Calls may overtake each other, so some are refused. */
  status: 'draft' | 'open' | 'closed' | 'resolved' | 'voided';
}

const hook_url = 'https://127.0.0.1:18443/mixed';
const events = ['prediction.placed', 'question.resolved', 'question.closed', 'question.created'];
/** Every event goes to every matching webhook. More webhooks would leave no time for other work. */
const max_hooks = 12;
const days = (count: number) => new Date(Date.now() + count * 86_400_000).toISOString();
const isGood = ({ status }: Answered): boolean => status < 300;

/** Makes one call. Null if there is nothing to act on. */
type Act = () => Promise<Answered> | null;

const password = 'correct horse battery';

/** People with a verified address, by token. */
const makePeople = async (call: ReturnType<typeof makeCaller>, sql: Sql, count: number) => {
  const tokens: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const body = { email: `mixed${n}@people.dev`, password };
    await call('POST', '/api/auth/signup', { body });
    await sql`update humans set email_verified_at = now() where email = ${body.email}`;
    tokens.push((await call('POST', '/api/auth/login', { body })).body.token);
  }
  return tokens;
};

/** All operations of clients on one world, each with its frequency per thousand. */
const makeActs = (
  call: ReturnType<typeof makeCaller>,
  tokens: readonly string[],
  random: () => number,
) => {
  const agents: MixedAgent[] = [];
  const questions: MixedQuestion[] = [];
  const predictions: string[] = [];
  const pairs = new Set<string>();
  let made = 0;

  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  const chance = (share: number): boolean => random() < share;
  /** A number that was not used before. */
  const next = (): number => {
    made += 1;
    return made;
  };
  /** One of the matching items, if a few random tries find one. */
  const find = <T>(list: readonly T[], matches: (one: T) => boolean): T | undefined => {
    const tries = Array.from({ length: 12 }, () => pick(list));
    return tries.find((one): one is T => one !== undefined && matches(one));
  };
  const linked = () => find(agents, ({ owner }) => owner !== null);
  /** Makes a call and records the content of a successful answer. */
  const send = async (
    method: string,
    path: string,
    options: CallOptions,
    note: (body: Answered['body']) => void = () => undefined,
  ): Promise<Answered> => {
    const answer = await call(method, path, options);
    if (isGood(answer)) note(answer.body);
    return answer;
  };
  const asLinked =
    (act: (agent: MixedAgent) => Promise<Answered> | null): Act =>
    () => {
      const agent = linked();
      return agent === undefined ? null : act(agent);
    };

  /** Half of the agents have a recruiter, and a third are linked immediately. */
  const register: Act = () => {
    const code = chance(0.5) ? pick(agents)?.code : undefined;
    const owner = chance(0.33) ? (pick(tokens) ?? null) : null;
    const body = {
      name: `Mixed ${next()}`,
      model: pick(['gpt-4o', 'claude-opus-4', 'gemini-2.5-pro', 'llama-4']),
      ...(code === undefined ? {} : { referral_code: code }),
    };
    const as = owner === null ? {} : { token: owner };
    return send('POST', '/api/register', { ...as, body }, ({ user, api_key }) => {
      agents.push({ id: user.id, key: api_key, code: user.referral_code, owner, hooks: [] });
    });
  };

  const link: Act = () => {
    const [agent, token = ''] = [pick(agents), pick(tokens)];
    if (agent === undefined) return null;
    const body = { api_key: agent.key };
    return send('POST', '/api/me/agents', { token, body }, () => {
      agent.owner = token;
    });
  };

  const unlink = asLinked((agent) =>
    send('DELETE', `/api/me/agents/${agent.id}`, { token: agent.owner ?? '' }, () => {
      agent.owner = null;
    }),
  );

  const state = ({ options }: MixedQuestion, n: number): Record<string, unknown> => {
    const confidence = makeConfidence(n);
    if (options.length > 0) return stateOption(options, n, confidence);
    return n % 3 === 0
      ? { probability: 100 - confidence }
      : { prediction: n % 2 === 0, confidence };
  };

  const predict: Act = () => {
    const agent = linked() ?? pick(agents);
    const question = find(questions, ({ status }) => status === 'open') ?? pick(questions);
    if (agent === undefined || question === undefined) return null;
    const pair = `${agent.id} ${question.id}`;
    // Occasionally repeats a pair.
    if (pairs.has(pair) && chance(0.8)) return null;
    pairs.add(pair);
    const n = next();
    const body = { ...state(question, n), reasoning: makeReasoning(n) };
    const path = `/api/questions/${question.id}/predict`;
    return send('POST', path, { key: agent.key, body }, ({ prediction }) => {
      predictions.push(prediction.id);
    });
  };

  const addQuestion = (path: string, options: CallOptions): Promise<Answered> => {
    const body = {
      question: `Will the signal box number ${next()} be manned again before the autumn?`,
      category: 'industry',
      subcategory: 'transportation_mobility',
      closes_at: days(30),
      ...(chance(0.3) ? { question_type: 'multi', options: ['never', 'by day', 'always'] } : {}),
      ...(options.admin === true ? { publish: true, weight: 1 + Math.floor(random() * 3) } : {}),
    };
    return send('POST', path, { ...options, body }, ({ question }) => questions.push(question));
  };

  /** An admin's action on a question, and the status of the question after it. */
  const decide =
    (
      name: string,
      from: readonly MixedQuestion['status'][],
      to: MixedQuestion['status'],
      bodyOf: (question: MixedQuestion) => unknown = () => ({}),
    ): Act =>
    () => {
      const question = find(questions, ({ status }) => from.includes(status));
      if (question === undefined) return null;
      const path = `/api/admin/questions/${question.id}/${name}`;
      return send('POST', path, { admin: true, body: bodyOf(question) }, () => {
        question.status = to;
      });
    };
  const outcomeOf = ({ options }: MixedQuestion) =>
    options.length === 0
      ? { outcome: chance(0.5) }
      : { correct_options: chance(0.8) ? [pick(options)] : options.slice(0, 2) };

  const addHook = asLinked(({ key, hooks }) => {
    if (agents.reduce((sum, one) => sum + one.hooks.length, 0) >= max_hooks) return null;
    const wanted = events.filter(() => chance(0.5));
    const body = { url: hook_url, events: wanted.length === 0 ? events : wanted };
    return send('POST', '/api/webhooks', { key, body }, ({ id }) => hooks.push(id));
  });
  const onHook =
    (act: (agent: MixedAgent, id: string) => Promise<Answered>): Act =>
    () => {
      const agent = agents.find(({ hooks }) => hooks.length > 0 && chance(0.3));
      return agent === undefined ? null : act(agent, pick(agent.hooks) ?? '');
    };
  const changeHook = onHook(({ key }, id) => {
    const body = chance(0.5) ? { active: chance(0.7) } : { events: [pick(events)] };
    return send('PATCH', `/api/webhooks/${id}`, { key, body });
  });
  const dropHook = onHook(({ key, hooks }, id) => {
    hooks.splice(hooks.indexOf(id), 1);
    return send('DELETE', `/api/webhooks/${id}`, { key });
  });

  const comment = asLinked(({ key }) => {
    const content = `Comment ${next()}: the timetable, workshop and stationmaster disagree here.`;
    const path = `/api/questions/${pick(questions)?.id}/comments`;
    return send('POST', path, { key, body: { content } });
  });
  const vote = asLinked(({ key }) => {
    const id = pick(predictions);
    if (id === undefined) return null;
    const path = `/api/predictions/${id}/${chance(0.7) ? 'upvote' : 'downvote'}`;
    return chance(0.8) ? send('POST', path, { key, body: {} }) : send('DELETE', path, { key });
  });

  const mixture: Readonly<Record<string, readonly [weight: number, act: Act]>> = {
    register: [60, register],
    link: [70, link],
    unlink: [25, unlink],
    predict: [560, predict],
    create: [25, () => addQuestion('/api/admin/questions', { admin: true })],
    suggest: [25, asLinked(({ key }) => addQuestion('/api/questions/suggest', { key }))],
    publish: [15, decide('publish', ['draft'], 'open')],
    close: [30, decide('close', ['open'], 'closed')],
    reopen: [8, decide('reopen', ['closed'], 'open', () => ({ closes_at: days(40) }))],
    resolve: [25, decide('resolve', ['closed'], 'resolved', outcomeOf)],
    'resolve again': [10, decide('resolve', ['resolved'], 'resolved', outcomeOf)],
    void: [8, decide('void', ['open', 'closed'], 'voided')],
    'add webhook': [20, addHook],
    'change webhook': [12, changeHook],
    'drop webhook': [12, dropHook],
    comment: [50, comment],
    vote: [59, vote],
  };
  return { mixture, predictions };
};

/** Refusals that follow from colliding calls, or from rules that the clients do not know. */
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
  readonly seed: number;
  /** Called occasionally with the number of finished operations. */
  readonly onProgress?: (done: number) => void;
}

const clients = 32;

export const runMixed = async (options: MixedOptions) => {
  const { url, sql, operations, seed, onProgress } = options;
  const call = makeCaller(url);
  const random = makeRandom(seed);
  const { mixture, predictions } = makeActs(call, await makePeople(call, sql, 6), random);
  for (const [name, count] of Object.entries({ register: 40, link: 60, create: 20 })) {
    for (let n = 0; n < count; n += 1) await mixture[name]?.[1]();
  }
  const all = Object.entries(mixture).flatMap(([name, [weight]]) => Array(weight).fill(name));
  /** How many times each operation succeeded, and how many times it was refused. */
  const counts = Object.fromEntries(
    Object.keys(mixture).map((name) => [name, { good: 0, refused: 0 }]),
  );
  /** Descriptions of some answers that no client should get. */
  const odd: string[] = [];
  const started_ms = performance.now();
  let done = 0;
  const runClient = async (): Promise<void> => {
    while (done < operations) {
      const name: string = all[Math.floor(random() * all.length)];
      const answer = await mixture[name]?.[1]();
      if (answer == null) continue;
      done += 1;
      if (done % 1_000 === 0) onProgress?.(done);
      const { status, body } = answer;
      const is_odd = !isGood(answer) && (status >= 500 || !expected.has(body?.code));
      if (is_odd && odd.length < 50) {
        odd.push(`${name}: ${status} ${JSON.stringify(body).slice(0, 200)}`);
      }
      counts[name]![isGood(answer) ? 'good' : 'refused'] += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, runClient));
  const seconds = ((performance.now() - started_ms) / 1_000).toFixed(0);
  const each = Object.entries(counts).map(([name, { good, refused }]) => {
    return `${name} ${good}+${refused}`;
  });
  const summary = `${predictions.length} predictions; ${each.join(', ')} (answered + refused) in ${seconds} s`;
  return { counts, odd, placed: predictions.length, summary };
};

/** The limits are not the subject of this test. */
export const mixed_env = { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };

const findUnfinished = async (sql: Sql): Promise<readonly string[]> => {
  const rows = await sql<{ what: string }[]>`
    select 'the decision of ' || question_id || ' is not settled' as what from resolutions where state = 'running'
    union all
    select count(*) || ' events wait in the outbox' from outbox having count(*) > 0`;
  return rows.map(({ what }) => what);
};

/** Waits until everything is settled and verify finds nothing. Returns the remaining findings. */
export const awaitAgreement = (parts: VerifyParts, within_ms: number) =>
  untilNone(async () => {
    const unfinished = await findUnfinished(parts.sql);
    return unfinished.length > 0 ? unfinished : findDifferences(parts);
  }, within_ms);
