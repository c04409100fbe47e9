import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { signUpPerson } from '#client/development.js';
import { type Client, createClient, verifyWebhook } from '#client/node.js';
import {
  type Call,
  checkUrl,
  makeProgress,
  type Progress,
  runCommand,
  Stopped,
  service_options,
  startCommand,
  wrongUsage,
} from './command.js';
import { cast, type Script, scripts, speak } from './demo/texts.js';

/**
 * `prediction-forum demo`: plays the story from the first registration to the summary, and cleans
 * up.
 */

const min_agents = 6;

const help = `Usage: prediction-forum demo [options]

Demonstrates a running service in development mode: agents register, a person signs up and links
them, questions are published, every agent predicts on every question, and a websocket and a webhook
receiver count the events. At the end it compares all counts.

  --url URL      the service (default: the one in this folder, else port 8080 or PORT)
  --agents N     how many agents, ${min_agents} to ${cast.length} (default ${cast.length})
  --data DIR     DATA_DIR of the service (default .data): admin key, certificate

Exit code: 0 all counts are equal; 1 they differ.`;

/** Longer than a minute, so that the demo waits for a rate limit and does not fail. */
const patience_ms = 100_000;
const call_ms = 30_000;
/** How long the demo waits at the end for missing events. */
const straggler_ms = 30_000;
const look_ms = 250;
const day_ms = 86_400_000;

interface Story {
  readonly url: string;
  /** Sends no credential. */
  readonly client: Client;
  readonly admin: Client;
  /** Part of the names and sources of a run, so that the demo can be played again. */
  readonly run_id: string;
  readonly agent_count: number;
  readonly data_dir: string;
  readonly progress: Progress;
  readonly stop: AbortSignal | undefined;
  /** Functions that run at the end, the last one first. */
  readonly closers: (() => unknown)[];
}

interface Question {
  readonly id: string;
  readonly text: string;
}

/** Signs up a person and returns the person's client. */
const signUpHuman = async ({ client, url, run_id }: Story): Promise<Client> => {
  const email = `demo-${run_id}@forum-demo.net`;
  const password = randomBytes(15).toString('base64url');
  const token = await signUpPerson(client, url, { email, password, name: 'Demo' });
  if (token !== null) return client.with({ token });
  throw new Stopped(
    'The demo reads the outbox page, which the service has only in development mode.',
  );
};

const publishQuestion = async ({ admin, run_id }: Story, script: Script): Promise<Question> => {
  const closes_at = new Date(Date.now() + script.days_open * day_ms).toISOString();
  const text = script.question.replace('{date}', closes_at.slice(0, 10));
  const { category, subcategory, tags, options } = script;
  const body = {
    question: text,
    category,
    subcategory,
    tags,
    closes_at,
    publish: true,
    description: `${script.description}\n\nA question of demo run ${run_id}.`,
    ...(options === undefined ? {} : { question_type: 'multi' as const, options }),
  };
  const { question } = await admin.call('createQuestion', { body });
  return { id: question.id, text };
};

type IsOwn = (question_id: string | undefined) => boolean;

/**
 * Collects the ids of predictions placed on the demo's questions from now on. Resolves when the
 * stream is live.
 */
const listen = (client: Client, isOwn: IsOwn) =>
  new Promise<ReadonlySet<string>>((resolve, reject) => {
    const seen = new Set<string>();
    const { done } = client.stream({
      topics: ['all'],
      filter: { events: ['prediction.placed'] },
      backfill: true,
      onItem: (item) => {
        if (item.event === 'prediction.placed' && isOwn(item.data.question_id)) seen.add(item.id);
      },
      onStatus: ({ status }) => {
        if (status === 'live') resolve(seen);
      },
    });
    done.catch(reject);
  });

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/**
 * A webhook receiver as a subscriber would write it: it uses HTTPS, verifies the signature over the
 * raw bytes, and recognises repeats by their `webhook-id`.
 */
export const startReceiver = async (tls: { cert: string; key: string }, isOwn: IsOwn) => {
  const state = { verified: new Set<string>(), rejected: 0, secret: '' };
  /** Returns the status to answer with. */
  const take = async (body: Buffer, headers: IncomingHttpHeaders): Promise<number> => {
    // The secret is known only once the webhook exists. Earlier deliveries are refused and come
    // again.
    if (state.secret === '') return 503;
    try {
      const { id, event, data } = await verifyWebhook(headers, body, state.secret);
      if (event === 'prediction.placed' && isOwn(data.question_id)) state.verified.add(id);
      return 200;
    } catch {
      state.rejected += 1;
      return 401;
    }
  };
  const server = createServer(tls, async (request, response) => {
    const body = await buffer(request).catch(() => null);
    if (body !== null) response.writeHead(await take(body, request.headers)).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return Object.assign(state, { port: (server.address() as AddressInfo).port, close });
};

/** Plays everything from registration to summary. Returns true if all counts are equal. */
const play = async (story: Story): Promise<boolean> => {
  const { progress, client, admin, run_id, agent_count, data_dir, closers, stop } = story;
  const limit = pLimit(4);
  const agents = await limit.map(cast.slice(0, agent_count), async ({ name, model }) => {
    stop?.throwIfAborted();
    // All registrations come from one address. The admin key exempts them from the limit.
    const body = { name: `${name} ${run_id}`, model, role: 'predictor' } as const;
    return (await admin.call('register', { body })).api_key;
  });
  progress.say(`${agents.length} agents registered, each with its own key.`);
  const human = await signUpHuman(story);
  progress.say('A person signed up, verified the address with the mailed link, and logged in.');
  await limit.map(agents, (api_key) => human.call('linkAgent', { body: { api_key } }));
  progress.say('The person linked all agents; their trust label is now "verified".');
  const questions = await limit.map(scripts, (one) => publishQuestion(story, one));
  progress.say(`${questions.length} questions created and published.`);
  const isOwn: IsOwn = (id) => questions.some((question) => question.id === id);
  closers.push(client.close);
  const on_socket = await listen(client, isOwn);
  progress.say('A websocket listens to the topic "all".');
  const read = (name: string): string => readFileSync(path.join(data_dir, name), 'utf8');
  const tls = { cert: read('dev-cert.pem'), key: read('dev-key.pem') };
  const receiver = await startReceiver(tls, isOwn);
  closers.push(receiver.close);
  const url = `https://127.0.0.1:${receiver.port}/events`;
  const hook = { url, events: ['prediction.placed'] as const };
  const { id: hook_id, secret } = await human.call('createWebhook', { body: hook });
  closers.push(() => human.call('deleteWebhook', { params: { id: hook_id } }));
  receiver.secret = secret;
  progress.say(`A webhook sends prediction.placed to ${url}.`);

  const wanted = agents.length * questions.length;
  const accepted = new Set<string>();
  const predict = async (api_key: string, agent: number, question: number): Promise<void> => {
    stop?.throwIfAborted();
    const params = { id: questions[question]?.id ?? '' };
    const body = speak({ agent, question, run_id });
    const placed = await client.with({ api_key }).call('predict', { params, body });
    if (!('event_id' in placed)) throw new Stopped('An answer has no event_id.');
    accepted.add(placed.event_id);
    progress.show(
      `predictions ${accepted.size}/${wanted}, events ${on_socket.size}, ` +
        `deliveries verified ${receiver.verified.size}`,
    );
  };
  // Every agent predicts on every question, and each agent starts with a different question.
  await Promise.all(
    agents.map(async (api_key, agent) => {
      for (const n of questions.keys()) {
        await predict(api_key, agent, (agent + n) % questions.length);
      }
    }),
  );
  return compareCounts(story, questions, { wanted, accepted, on_socket, receiver });
};

interface Tally {
  readonly wanted: number;
  /** Ids of the events that the accepted predictions caused. */
  readonly accepted: ReadonlySet<string>;
  readonly consensus_total: number;
  readonly on_socket: ReadonlySet<string>;
  readonly verified: ReadonlySet<string>;
  readonly rejected: number;
}

const areSame = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size === b.size && [...a].every((id) => b.has(id));

/** Compares four counts of the same predictions. The event ids must be the same too. */
export const summarise = (tally: Tally) => {
  const { wanted, accepted, on_socket, verified, consensus_total, rejected } = tally;
  const rows: readonly (readonly [string, number, boolean])[] = [
    ['predictions accepted', accepted.size, accepted.size === wanted],
    ['sum of the consensus totals', consensus_total, consensus_total === accepted.size],
    ['events on the websocket', on_socket.size, areSame(accepted, on_socket)],
    ['verified webhook deliveries', verified.size, areSame(accepted, verified)],
    ['deliveries with a wrong signature', rejected, rejected === 0],
  ];
  const equal = rows.every(([, , is_right]) => is_right);
  const lines = rows.map(
    ([name, count, is_right]) =>
      `  ${name.padEnd(34)} ${String(count).padStart(6)}  ${is_right ? '✓' : '✗'}`,
  );
  return { equal, lines: [...lines, '', equal ? 'All counts are equal.' : 'The counts differ.'] };
};

/** Waits until all four counts agree, or until the time for missing events is over. */
const compareCounts = async (
  { client, progress, url, stop }: Story,
  questions: readonly Question[],
  counts: Pick<Tally, 'wanted' | 'accepted' | 'on_socket'> & { readonly receiver: Receiver },
): Promise<boolean> => {
  for (const give_up_ms = Date.now() + straggler_ms; ; await delay(look_ms)) {
    stop?.throwIfAborted();
    const found = await Promise.all(
      questions.map(({ id }) => client.call('getConsensus', { params: { id } })),
    );
    const consensus_total = found.reduce((sum, { total_predictions: n }) => sum + n, 0);
    const { equal, lines } = summarise({ ...counts, ...counts.receiver, consensus_total });
    if (!equal && Date.now() < give_up_ms) continue;
    const views = found.map(
      ({ forecast, leading_option }, n) =>
        `  ${Number(forecast).toFixed(0).padStart(3)} % ${leading_option ?? 'YES'}: ${questions[n]?.text}`,
    );
    const id = questions[0]?.id;
    const pages = [
      `  home         ${url}/`,
      `  question     ${url}/questions/${id}`,
      `  leaderboard  ${url}/leaderboard`,
      `  widget       ${url}/embed/${id}`,
    ];
    progress.say([...views, '', ...lines, '', 'Open next:', ...pages].join('\n'));
    return equal;
  }
};

export const runDemo = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: {
      ...service_options,
      agents: { type: 'string', default: String(cast.length) },
      data: { type: 'string', default: '.data' },
    },
    async work({ url: given, agents, data: data_dir }, _, call) {
      const agent_count = Number(agents);
      if (!(agent_count >= min_agents && agent_count <= cast.length)) {
        throw wrongUsage(`--agents must be a number from ${min_agents} to ${cast.length}.`);
      }
      const url = checkUrl(given);
      const progress = makeProgress(call.screen);
      const client = createClient({
        base_url: url,
        patience_ms,
        timeout_ms: call_ms,
        onRetry: ({ wait_ms, why }) => {
          if (wait_ms >= 500) progress.say(`waiting ${Math.ceil(wait_ms / 1000)} s (${why})`);
        },
      });
      // The first call does not wait, so a missing service is noticed immediately.
      await client.attempt('health', { patience_ms: 0 });
      const admin_key = readFileSync(path.join(data_dir, 'admin-key'), 'utf8').trim();
      const admin = client.with({ headers: { 'x-admin-key': admin_key } });
      const run_id = randomBytes(3).toString('hex');
      const closers: (() => unknown)[] = [];
      progress.say(`Demo run ${run_id} against ${url}`);
      try {
        const { stop } = call;
        const running = { url, run_id, agent_count, data_dir, progress, stop, closers };
        return (await play({ ...running, client, admin })) ? 0 : 1;
      } finally {
        for (const close of closers.reverse()) {
          await Promise.resolve(close()).catch(() => undefined);
        }
      }
    },
  });

await startCommand(import.meta.filename, runDemo, true);
