import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, createClient, NoAnswer } from '../../client/node.js';
import { type Screen, writeLine } from '../shared/terminal.js';
import { type DemoArguments, readDemoArguments } from './arguments.js';
import { cast } from './cast.js';
import { scripts } from './questions.js';
import { type Receiver, startReceiver } from './receiver.js';
import {
  type Consensus,
  createWebhook,
  type DemoAgent,
  type DemoQuestion,
  deleteWebhook,
  linkAgent,
  makeRunId,
  predict,
  publishQuestion,
  readConsensus,
  registerAgent,
  type Story,
  StoryError,
  signUpHuman,
} from './story.js';
import { addressesOf, isComplete, summarise, type Tally } from './summary.js';
import { makeView, type View } from './view.js';

/** Plays the story from the first registration to the summary, and cleans up behind itself. */

export interface DemoOptions {
  readonly argv: readonly string[];
  readonly screen: Screen;
  /** Aborted when the person at the terminal wants it to end. */
  readonly stop?: AbortSignal;
  /** How long events may be late at the end. */
  readonly straggler_ms?: number;
}

interface Stage {
  readonly args: DemoArguments;
  readonly story: Story;
  readonly view: View;
  readonly stop: AbortSignal | undefined;
  readonly own: Set<string>;
  readonly closers: (() => unknown)[];
}

interface Play extends Stage {
  readonly agents: readonly DemoAgent[];
  readonly questions: readonly DemoQuestion[];
  /** Ids of the events `prediction.placed` seen on the websocket. */
  readonly seen: ReadonlySet<string>;
  readonly receiver: Receiver;
  readonly accepted: Set<string>;
  readonly consensus: Map<string, Consensus>;
}

/** Longer than a minute, so that a rate limit is waited out and not the end. */
const patience_ms = 100_000;
const call_ms = 30_000;
const straggler_ms = 30_000;
const look_ms = 1_000;
const draw_ms = 100;
/** Between two predictions of an agent, where somebody watches. */
const pause_ms = 150;

const readOwnFile = (file: string, what: string): string => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new StoryError(
      `${what} cannot be read from ${file}; see --data in npm run demo -- --help`,
    );
  }
};

const checkStop = (stop: AbortSignal | undefined): void => {
  if (stop?.aborted) throw new StoryError('Interrupted.');
};

const drawPlay = (play: Play, step: string): void => {
  const { view, accepted, agents, questions, seen, receiver, consensus } = play;
  view.draw({
    step,
    accepted: accepted.size,
    wanted: agents.length * questions.length,
    on_socket: seen.size,
    verified: receiver.verified.size,
    questions: questions.map(({ id, text }) => ({
      text,
      ...(consensus.get(id) ?? { total: 0, percent: 0, label: '', families: 0 }),
    })),
  });
};

/** Work on every item, a few at a time; the first failure ends it. */
const eachOf = async <T, R>(
  items: readonly T[],
  at_once: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<readonly R[]> => {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index] as T, index);
    }
  };
  await Promise.all(Array.from({ length: at_once }, worker));
  return results;
};

const makeClient = (base_url: string, view: View): Client =>
  createClient({
    ...{ base_url, patience_ms, timeout_ms: call_ms },
    onRetry: ({ wait_ms, why }) => {
      if (wait_ms >= 500) view.say(`waiting ${Math.ceil(wait_ms / 1000)} s (${why})`);
    },
  });

/** Ids of the placed predictions of own questions, from now on; fulfilled when it is live. */
const listen = (client: Client, isOwn: (question_id: string) => boolean) =>
  new Promise<ReadonlySet<string>>((resolve, reject) => {
    const seen = new Set<string>();
    const { done } = client.stream({
      topics: ['all'],
      filter: { events: ['prediction.placed'] },
      backfill: true,
      onItem: ({ id, data }) => {
        if (isOwn(data.question_id)) seen.add(id);
      },
      onStatus: ({ status }) => {
        if (status === 'live') resolve(seen);
      },
    });
    done.catch(reject);
  });

/** A person, the agents, the questions: everything before the first prediction. */
const prepare = async (stage: Stage): Promise<Play> => {
  const { args, story, view, stop, own, closers } = stage;
  const families = cast.slice(0, args.agents);
  const agents = await eachOf(families, 4, (member) => {
    checkStop(stop);
    return registerAgent(story, member);
  });
  view.say(`${agents.length} agents registered, each with a key of its own.`);
  const human = await signUpHuman(story);
  view.say('A person signed up, verified the address with the mailed link, and logged in.');
  await eachOf(agents, 4, (agent) => linkAgent(human, agent));
  view.say('The person linked all agents; their trust label is verified now.');
  const questions = await eachOf(scripts, 1, (script) => publishQuestion(story, script));
  for (const { id } of questions) own.add(id);
  view.say(`${questions.length} questions created and published.`);
  const isOwn = (id: string): boolean => own.has(id);
  const seen = await listen(story.client, isOwn);
  closers.push(story.client.close);
  view.say('A websocket listens to the topic "all".');
  const receiver = await startReceiver({
    cert: readOwnFile(path.join(args.data_dir, 'dev-cert.pem'), 'The development certificate'),
    key: readOwnFile(path.join(args.data_dir, 'dev-key.pem'), 'The key of the certificate'),
    isOwn,
  });
  closers.push(receiver.close);
  const webhook = await createWebhook(human, receiver.port);
  receiver.setSecret(webhook.secret);
  closers.push(() => deleteWebhook(human, webhook.id));
  view.say(`A webhook sends prediction.placed to https://127.0.0.1:${receiver.port}/events.`);
  const accepted = new Set<string>();
  return { ...stage, agents, questions, seen, receiver, accepted, consensus: new Map() };
};

const refreshConsensus = async ({ story, questions, consensus }: Play): Promise<number> => {
  let total = 0;
  for (const question of questions) {
    const read = await readConsensus(story, question);
    consensus.set(question.id, read);
    total += read.total;
  }
  return total;
};

/** Every agent predicts on every question, each beginning with another one. */
const predictAll = async (play: Play, watched: boolean): Promise<void> => {
  const { agents, questions, story, accepted, stop } = play;
  await Promise.all(
    agents.map(async (agent, at) => {
      for (let i = 0; i < questions.length; i++) {
        checkStop(stop);
        const index = (at + i) % questions.length;
        const question = questions[index] as DemoQuestion;
        const speaker = { member: agent.member, agent: at, question: index, run_id: story.run_id };
        accepted.add(await predict(story, agent, question, speaker));
        if (watched) await delay(pause_ms * (0.5 + Math.random()));
      }
    }),
  );
};

const tallyOf = ({ accepted, seen, receiver }: Play, consensus_total: number): Tally => ({
  accepted,
  consensus_total,
  on_socket: seen,
  verified: receiver.verified,
  rejected: receiver.rejected,
});

/** Waits until all four counts agree, or until what is missing is too late. */
const awaitStragglers = async (play: Play, within_ms: number): Promise<Tally> => {
  const give_up_ms = performance.now() + within_ms;
  for (;;) {
    const tally = tallyOf(play, await refreshConsensus(play));
    if (isComplete(tally) || performance.now() > give_up_ms) return tally;
    checkStop(play.stop);
    await delay(look_ms / 4);
  }
};

const perform = async (play: Play, options: DemoOptions): Promise<boolean> => {
  let step = 'predicting';
  let looking = true;
  const drawing = setInterval(() => drawPlay(play, step), draw_ms);
  const watching = (async () => {
    while (looking) {
      await refreshConsensus(play).catch(() => undefined);
      await delay(look_ms);
    }
  })();
  try {
    await predictAll(play, options.screen.isTTY === true);
    step = 'waiting for the last events';
    looking = false;
    await watching;
    const tally = await awaitStragglers(play, options.straggler_ms ?? straggler_ms);
    step = 'done';
    drawPlay(play, step);
    play.view.end();
    const { equal, lines } = summarise(tally, play.agents.length * play.questions.length);
    const pages = addressesOf(play.story.url, play.questions[0]?.id ?? '');
    for (const line of [...lines, ...pages]) play.view.say(line);
    return equal;
  } finally {
    looking = false;
    clearInterval(drawing);
  }
};

const explain = (error: unknown, url: string): string => {
  if (error instanceof NoAnswer) {
    return `Nothing answers at ${url}; start the service with npm start, or give --url`;
  }
  return error instanceof Error ? error.message : String(error);
};

/** Exit code: 0 when all counts are equal, else 1. */
export const runDemo = async (options: DemoOptions): Promise<number> => {
  const { screen } = options;
  const args = readDemoArguments(options.argv);
  if (typeof args === 'string') {
    writeLine(screen, `${args}`);
    return options.argv.includes('--help') ? 0 : 1;
  }
  const view = makeView(screen);
  const closers: (() => unknown)[] = [];
  try {
    // The first call does not wait: whether a service is there at all is known at once.
    const client = makeClient(args.url, view);
    await client.attempt('health', { patience_ms: 0 });
    const admin_key = readOwnFile(args.admin_key_file, 'The admin key');
    const admin = client.with({ headers: { 'x-admin-key': admin_key } });
    const story = { url: args.url, client, admin, run_id: makeRunId() };
    view.say(`Demo run ${story.run_id} against ${args.url}`);
    const own = new Set<string>();
    const play = await prepare({ args, story, view, stop: options.stop, own, closers });
    return (await perform(play, options)) ? 0 : 1;
  } catch (error) {
    view.end();
    writeLine(screen, `${explain(error, args.url)}`);
    return 1;
  } finally {
    for (const close of closers.reverse()) {
      await Promise.resolve(close()).catch(() => undefined);
    }
  }
};
