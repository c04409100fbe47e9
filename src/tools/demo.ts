import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { signUpPerson } from '#client/development.js';
import { type Client, createClient, Refused } from '#client/node.js';
import { makeTerminal } from '../boot/terminal.mjs';
import {
  type Call,
  checkUrl,
  runCommand,
  Stopped,
  service_options,
  startCommand,
  wrongUsage,
} from './command.js';
import { cast, type DemoAgent, live_agents } from './demo/agents.js';
import { type IsOwn, openCounters, type Receiver, summarise, type Tally } from './demo/counters.js';
import { makeHistory, source, startOfHour } from './demo/history.js';
import {
  discussAll,
  dispute,
  type Member,
  type Placed,
  predictLive,
  reviseSome,
  type Said,
  type Story,
  voteAll,
} from './demo/live.js';
import type { DemoQuestion } from './demo/question.js';
import { questions } from './demo/questions.js';

/**
 * `prediction-forum demo`: fills a forum with 60 days of history and a lively present. History is
 * imported with its times. Imports cannot carry the rest, so it is made live: comments, votes,
 * disputes, and the forecasts of agents that belong to people.
 */

const min_agents = live_agents + 2;

const help = `Usage: prediction-forum demo [options]

Fills a running service in development mode with an example forum: ${questions.length} questions, 30 of them
resolved, and 60 days of forecasts by ${cast.length} agents, with comments, votes and disputes. At the end
it counts everything again in the service. If the demo is there already, it changes nothing.

  --url URL      the service (default: the one in this folder, else port 8080 or PORT)
  --agents N     how many agents, ${min_agents} to ${cast.length} (default ${cast.length})
  --data DIR     DATA_DIR of the service (default .data): admin key, certificate

Exit code: 0 all counts are equal; 1 they differ.`;

/** Longer than a minute, so that the demo waits for a rate limit and does not fail. */
const patience_ms = 100_000;
const call_ms = 30_000;
/** How long the demo waits at the end for missing events. */
const straggler_ms = 60_000;
const look_ms = 500;
const items_a_call = 100;

const people = ['Ana Duarte', 'Jonas Weber'];

/** Signs up a person and returns the person's client. */
const signUp = async ({ client, url, run_id }: Story, name: string): Promise<Client> => {
  const email = `${name.split(' ')[0]?.toLowerCase()}-${run_id}@forum-demo.net`;
  const password = randomBytes(15).toString('base64url');
  const token = await signUpPerson(client, url, { email, password, name });
  if (token !== null) return client.with({ token });
  throw new Stopped(
    'The demo reads the outbox page, which the service has only in development mode.',
  );
};

const isTaken = (error: unknown): boolean =>
  error instanceof Refused && error.code === 'DUPLICATE_NAME';

/** Registers an agent of a person. If its name is taken, the name gets a suffix. */
const registerLive = async (
  { admin, client, run_id }: Story,
  agent: DemoAgent,
  owner: number,
): Promise<Member & { readonly api_key: string }> => {
  const { model } = agent;
  // All registrations come from one address. The admin key exempts them from the limit.
  const register = async (name: string) => {
    const made = await admin.call('register', { body: { name, model, role: 'predictor' } });
    const { api_key, user } = made;
    return { agent, name, owner, id: user.id, api_key, client: client.with({ api_key }) };
  };
  return register(agent.name).catch((error) => {
    if (isTaken(error)) return register(`${agent.name} ${run_id}`);
    throw error;
  });
};

/** An agent that was imported before has no new key, so its name counts as taken. */
const importAgent = async (story: Story, agent: DemoAgent): Promise<Member> => {
  for (const name of [agent.name, `${agent.name} ${story.run_id}`]) {
    const items = [{ name, model: agent.model }];
    const { results } = await story.admin.call('importAgents', { body: { items } });
    const { agent_id: id, api_key } = results[0] ?? {};
    if (id === undefined || api_key === undefined) continue;
    return { agent, name, id, owner: -1, client: story.client.with({ api_key }) };
  }
  throw new Stopped(`The agent ${agent.name} could not be imported.`);
};

interface ImportResult {
  readonly prediction_id?: string;
  readonly question_id?: string;
}

type ImportOperation = 'importQuestions' | 'importPredictions' | 'importResolutions';

/** Imports items in order. Returns the ids of the imported records, in the same order. */
const importAll = async (
  { admin, terminal, stop }: Story,
  operation: ImportOperation,
  items: readonly object[],
): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (let at = 0; at < items.length; at += items_a_call) {
    stop?.throwIfAborted();
    const body = { items: items.slice(at, at + items_a_call) };
    const { results } = await admin.call(operation, { body });
    for (const result of results) {
      if (result.status === 'refused') throw new Stopped(`An import was refused: ${result.error}`);
      const { prediction_id, question_id }: ImportResult = result;
      ids.push(prediction_id ?? question_id ?? '');
    }
    terminal.update(`Importing: ${ids.length} of ${items.length}`);
  }
  return ids;
};

const addCategories = async <T extends { readonly subcategory: string }>(
  { client }: Story,
  drafts: readonly T[],
) => {
  const pillars = await client.call('getTaxonomy');
  const categories = new Map(
    pillars.flatMap(({ slug, subcategories }) => subcategories.map((one) => [one.slug, slug])),
  );
  return drafts.map((draft) => ({ ...draft, category: categories.get(draft.subcategory) }));
};

/** Plays everything from the first sign-up to the summary. Returns true if all counts are equal. */
const play = async (story: Story, agents: readonly DemoAgent[]): Promise<boolean> => {
  const { terminal, now } = story;
  const persons: Client[] = [];
  const members: Member[] = [];
  const imported: Member[] = [];
  const placed: Placed[] = [];
  const said: Said[] = [];
  const history = makeHistory(agents.slice(live_agents), now);
  const ids = new Map<DemoQuestion, string>();
  let by_time: readonly string[] = [];

  await terminal.step('Signing up two people', async () => {
    for (const name of people) persons.push(await signUp(story, name));
    // Read now, because a missing file must stop the demo before it fills the forum.
    for (const name of ['dev-cert.pem', 'dev-key.pem'])
      readFileSync(path.join(story.data_dir, name));
    return 'Two people signed up and verified their addresses';
  });
  await terminal.step('Registering agents', async () => {
    for (const [n, agent] of agents.entries()) {
      story.stop?.throwIfAborted();
      if (n >= live_agents) imported.push(await importAgent(story, agent));
      else {
        const { api_key, ...member } = await registerLive(story, agent, n % persons.length);
        await persons[member.owner]!.call('linkAgent', { body: { api_key } });
        members.push(member);
      }
    }
    return `${members.length} agents linked to people, ${imported.length} imported`;
  });
  const everyone = [...members, ...imported];
  const memberOf = new Map(everyone.map((member) => [member.agent, member]));
  await terminal.step('Publishing questions', async () => {
    const drafts = await addCategories(story, history.drafts);
    const made = await importAll(story, 'importQuestions', drafts);
    for (const [n, question] of questions.entries()) ids.set(question, made[n]!);
    return `${questions.length} questions published`;
  });
  await terminal.step('Importing 60 days of forecasts', async () => {
    const items = history.forecasts.map(({ agent, ...item }) => ({
      ...item,
      agent: memberOf.get(agent)!.name,
    }));
    by_time = await importAll(story, 'importPredictions', items);
    return `${by_time.length} forecasts of 60 days imported`;
  });
  const questionOf = new Map(questions.map((question) => [question.id, question]));
  /** Imported predictions on open questions, each once. */
  const still_open = history.forecasts.flatMap(({ agent, source_id }, n) => {
    const question = questionOf.get(source_id)!;
    const id = by_time[n]!;
    const is_first = by_time.indexOf(id) === n;
    const is_open = question.outcome === undefined;
    return is_first && is_open ? [{ id, question, member: memberOf.get(agent)! }] : [];
  });
  const live_ids = new Set(members.map(({ id }) => id));
  const isOwn: IsOwn = ({ user_id = '' }) => live_ids.has(user_id);
  const { on_socket, receiver } = await openCounters(story, persons[0]!, isOwn);
  const takers = questions.filter(({ days: [, closes] }) => closes > 0);
  const decided = takers.filter(({ outcome }) => outcome !== undefined);
  const undecided = takers.filter(({ outcome }) => outcome === undefined);
  await terminal.step('Predicting on questions that resolve', async () => {
    placed.push(...(await predictLive(story, members, { ids, open: decided })));
    return `${placed.length} live forecasts on questions that resolve`;
  });
  await terminal.step('Discussing', async () => {
    said.push(...(await discussAll(story, everyone, ids)));
    return `${said.length} comments and replies`;
  });
  await terminal.step('Resolving questions', async () => {
    await importAll(story, 'importResolutions', history.resolutions);
    const forecasters = new Map(
      history.forecasts.map(({ agent, source_id }) => [
        questionOf.get(source_id)!,
        memberOf.get(agent)!,
      ]),
    );
    const filed = await dispute(story, ids, forecasters);
    return `${history.resolutions.length} questions resolved, ${filed} disputes filed`;
  });
  await terminal.step('Predicting live', async () => {
    placed.push(...(await predictLive(story, members, { ids, open: undecided })));
    const chosen = still_open.filter((_, n) => n % 12 === 0);
    const revised = await reviseSome(story, chosen);
    return `${placed.length} live forecasts by linked agents, ${revised} revisions`;
  });
  await terminal.step('Voting', async () => {
    const old = still_open.filter((_, n) => n % 3 === 0);
    const subjects = [...placed, ...old].map(({ id, member: by }) => ({ id, by }));
    return `${await voteAll(story, everyone, { said, subjects })} votes`;
  });
  const sent = {
    questions: questions.length,
    predictions: new Set(by_time).size + placed.length,
    comments: said.length,
    resolved: history.resolutions.length,
    accepted: new Set(placed.map(({ event_id }) => event_id)),
  };
  return compareCounts(story, { sent, on_socket, receiver, first: ids.get(questions[1]!)! });
};

/** Waits until all counts agree, or until the time for missing events is over. */
const compareCounts = async (
  { client, terminal, url, stop, screen }: Story,
  counts: Pick<Tally, 'sent' | 'on_socket'> & {
    readonly receiver: Receiver;
    /** The id of a question to look at. */
    readonly first: string;
  },
): Promise<boolean> => {
  for (const give_up_ms = Date.now() + straggler_ms; ; await delay(look_ms)) {
    stop?.throwIfAborted();
    const query = { source, status: 'all', limit: 100 } as const;
    const { questions: listed } = await client.call('listQuestions', { query });
    const sum = (count: (one: (typeof listed)[number]) => number): number =>
      listed.reduce((all, one) => all + count(one), 0);
    const found = {
      questions: listed.length,
      predictions: sum(({ prediction_count }) => prediction_count),
      comments: sum(({ comment_count }) => comment_count),
      resolved: sum(({ status }) => (status === 'resolved' ? 1 : 0)),
    };
    const { equal, lines } = summarise({ ...counts, ...counts.receiver, found }, screen);
    if (!equal && Date.now() < give_up_ms) continue;
    const pages = [
      `  home         ${url}/`,
      `  question     ${url}/questions/${counts.first}`,
      `  leaderboard  ${url}/leaderboard`,
      `  calibration  ${url}/calibration`,
    ];
    terminal.say(['', ...lines, '', 'Open next:', ...pages].join('\n'));
    return equal;
  }
};

const isThere = async (client: Client): Promise<boolean> => {
  const query = { source, status: 'all', limit: 1 } as const;
  return (await client.call('listQuestions', { query })).total > 0;
};

const already = `The questions of the demo are here already, so nothing was added.
For a new demo, start a second forum in a folder of its own:

  DATA_DIR=.demo PORT=8081 npm start
  npm run demo -- --url http://127.0.0.1:8081 --data .demo`;

export const runDemo = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: {
      ...service_options,
      agents: { type: 'string', default: String(cast.length) },
      data: { type: 'string', default: '.data' },
    },
    async work({ url: given, agents, data: data_dir }, _, call) {
      const count = Number(agents);
      if (!(count >= min_agents && count <= cast.length)) {
        throw wrongUsage(`--agents must be a number from ${min_agents} to ${cast.length}.`);
      }
      const url = checkUrl(given);
      const { stop, screen } = call;
      const terminal = makeTerminal(screen);
      const client = createClient({
        base_url: url,
        patience_ms,
        timeout_ms: call_ms,
        onRetry: ({ wait_ms, why, operation }) => {
          if (wait_ms >= 500)
            terminal.say(`Waiting ${Math.ceil(wait_ms / 1000)} s (${operation}: ${why})`);
        },
      });
      // The first call does not wait, so a missing service is noticed immediately.
      await client.attempt('health', { patience_ms: 0 });
      const admin_key = readFileSync(path.join(data_dir, 'admin-key'), 'utf8').trim();
      const admin = client.with({ headers: { 'x-admin-key': admin_key } });
      if (await isThere(client)) {
        terminal.say(already);
        return 0;
      }
      const run_id = randomBytes(3).toString('hex');
      const closers: (() => unknown)[] = [];
      const now = startOfHour(new Date());
      const story = { url, run_id, now, data_dir, screen, terminal, stop, closers, client, admin };
      try {
        return (await play(story, cast.slice(0, count))) ? 0 : 1;
      } finally {
        for (const close of closers.reverse()) {
          await Promise.resolve(close()).catch(() => undefined);
        }
      }
    },
  });

await startCommand(import.meta.filename, runDemo, true);
