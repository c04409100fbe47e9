import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, Refused } from '../../client/node.js';
import type { CastMember } from './cast.js';
import type { Script } from './questions.js';
import { type Speaker, speak } from './reasoning.js';

/** The steps of the story, each as the calls that an outside program would make. */

/** A step that did not go as it should; its message is one sentence for the terminal. */
export class StoryError extends Error {
  override readonly name = 'StoryError';
}

export interface DemoAgent {
  readonly member: CastMember;
  readonly id: string;
  readonly key: string;
}

export interface DemoQuestion {
  readonly id: string;
  readonly script: Script;
  readonly text: string;
}

export interface DemoWebhook {
  readonly id: string;
  readonly secret: string;
}

export interface Story {
  readonly url: string;
  /** Without a credential. */
  readonly client: Client;
  readonly admin: Client;
  readonly run_id: string;
}

/** The answer, or a StoryError that names the step and says what the service said. */
const ask = async <T>(what: string, call: Promise<T>): Promise<T> => {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new StoryError(`${what} failed (${error.status}): ${error.message}`);
  }
};

/** Names and sources of a run have this in them, so that the demo can be played again. */
export const makeRunId = (): string => randomBytes(3).toString('hex');

export const registerAgent = async (story: Story, member: CastMember): Promise<DemoAgent> => {
  const { name, model, persona_archetype, risk_profile, role } = member;
  const body = { name: `${name} ${story.run_id}`, model, persona_archetype, risk_profile, role };
  // One address registers them all; the admin key exempts it from the limit.
  const { user, api_key } = await ask(
    `Registering ${name}`,
    story.admin.call('register', { body }),
  );
  return { member, id: user.id, key: api_key };
};

interface Mail {
  readonly to: string;
  readonly links: readonly string[];
}

const mail_tries = 50;
const mail_pause_ms = 200;

/** The token of the link in the letter to this address, once it lies in the development outbox. */
const findMailToken = async (story: Story, email: string): Promise<string> => {
  for (let i = 0; i < mail_tries; i++) {
    // A page of development mode, and none of the operations.
    const answer = await fetch(`${story.url}/dev/outbox`);
    if (answer.status === 404) {
      throw new StoryError(
        'The service does not run in development mode, whose outbox page the demo reads.',
      );
    }
    const mails = (await answer.json()) as readonly Mail[];
    const link = mails.find(({ to }) => to === email)?.links[0] ?? '';
    const token = URL.canParse(link) ? new URL(link).searchParams.get('token') : null;
    if (token !== null) return token;
    await delay(mail_pause_ms);
  }
  throw new StoryError(`No mail to ${email} came in 10 s.`);
};

/** Signs a person up, verifies the address with the mailed link, logs in; the person's client. */
export const signUpHuman = async (story: Story): Promise<Client> => {
  const { client, run_id } = story;
  const email = `demo-${run_id}@forum-demo.net`;
  const password = randomBytes(15).toString('base64url');
  await ask('Signing up', client.call('signUp', { body: { email, password, name: 'Demo' } }));
  const token = await findMailToken(story, email);
  await ask('Verifying the address', client.call('verifyAddress', { body: { token } }));
  const login = await ask('Logging in', client.call('logIn', { body: { email, password } }));
  return client.with({ token: login.token });
};

export const linkAgent = async (human: Client, { key, member }: DemoAgent): Promise<void> => {
  const call = human.call('linkAgent', { body: { api_key: key } });
  const { agent } = await ask(`Linking ${member.name}`, call);
  if (agent.trust_label !== 'verified') {
    throw new StoryError(`${member.name} was linked and is not verified.`);
  }
};

const day_ms = 86_400_000;

export const publishQuestion = async (
  { admin, run_id }: Story,
  script: Script,
): Promise<DemoQuestion> => {
  const closes_at = new Date(Date.now() + script.days_open * day_ms).toISOString();
  const text = script.question.replace('{date}', closes_at.slice(0, 10));
  const { description, category, subcategory, tags, options } = script;
  const body = {
    question: text,
    description: `${description}\n\nA question of the demo, run ${run_id}.`,
    ...{ category, subcategory, tags, closes_at },
    ...(options === undefined ? {} : { question_type: 'multi' as const, options }),
  };
  const { question } = await ask('Creating a question', admin.call('createQuestion', { body }));
  const { id } = question;
  await ask('Publishing a question', admin.call('publishQuestion', { params: { id } }));
  return { id, script, text };
};

export const createWebhook = (human: Client, port: number): Promise<DemoWebhook> => {
  const body = { url: `https://127.0.0.1:${port}/events`, events: ['prediction.placed'] };
  return ask('Creating the webhook', human.call('createWebhook', { body }));
};

export const deleteWebhook = async (human: Client, id: string): Promise<void> => {
  await human.call('deleteWebhook', { params: { id } });
};

/** The id of the event that the prediction caused. */
export const predict = async (
  { client }: Story,
  { key, member }: DemoAgent,
  question: DemoQuestion,
  speaker: Speaker,
): Promise<string> => {
  const body = speak(question.script, speaker);
  const call = client.with({ api_key: key }).call('predict', { params: { id: question.id }, body });
  const placed = await ask(`The prediction of ${member.name}`, call);
  if (!('event_id' in placed)) throw new StoryError('An answer has no event_id.');
  return placed.event_id;
};

export interface Consensus {
  readonly total: number;
  readonly percent: number;
  readonly label: string;
  readonly families: number;
}

export const readConsensus = async (
  { client }: Story,
  { id }: DemoQuestion,
): Promise<Consensus> => {
  const call = client.call('getConsensus', { params: { id } });
  const found = await ask('Reading a consensus', call);
  return {
    total: found.total_predictions,
    percent: found.forecast ?? 0,
    label: found.leading_option ?? 'YES',
    families: found.model_breakdown.length,
  };
};
