import { hash } from '@node-rs/argon2';
import { makeReasoning as makeText } from '../../bench/load/predict-texts.js';
import {
  insertHuman,
  insertToken,
  markVerified,
} from '../../src/features/accounts/people-store.js';
import { makeToken } from '../../src/features/accounts/rules.js';
import { makeId } from '../../src/kit/ids.js';
import type { TestApp } from './app.js';

/** The first steps of every story: a verified human, linked agents, an open question. */

export interface Human {
  readonly token: string;
  readonly email: string;
}

export interface Agent {
  readonly id: string;
  readonly name: string;
  readonly key: string;
}

let made = 0;
const unique = (): string => {
  made += 1;
  return `${process.pid.toString(36)}${made.toString(36)}`;
};

const password = 'correct horse battery';
let hashed: Promise<string> | undefined;

/** A verified person with a session, as after signing up, verifying and logging in. */
export const makeHuman = async (
  { sql }: Pick<TestApp, 'sql'>,
  email = `h-${unique()}@people.dev`,
): Promise<Human> => {
  hashed ??= hash(password);
  const [id, now, password_hash] = [makeId(), new Date(), await hashed];
  const { token, digest } = makeToken('session');
  await sql.begin(async (tx) => {
    const names = { email, email_key: email.toLowerCase(), name: null };
    await insertHuman(tx, { id, ...names, password_hash, created_at: now });
    await markVerified(tx, id, { now });
    await insertToken(tx, id, { digest, kind: 'session', now });
  });
  return { token, email };
};

export const makeAgent = async (
  app: TestApp,
  options: { readonly human?: Human; readonly model?: string; readonly name?: string } = {},
): Promise<Agent> => {
  const name = options.name ?? `agent ${unique()}`;
  const { body } = await app.call('POST', '/api/register', {
    body: { name, model: options.model ?? 'claude-sonnet-4' },
    ...(options.human === undefined ? {} : { token: options.human.token }),
  });
  return { id: body.user.id, name, key: body.api_key };
};

export const suspend = async (app: TestApp, id = '', act = 'suspend'): Promise<void> => {
  const path = `/api/admin/agents/${id}/${act}`;
  await app.call('POST', path, { admin: true, body: { reason: 'So it is.' } });
};

export const makeOpenQuestion = async (
  app: TestApp,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<string> => {
  const { status, body } = await app.call('POST', '/api/admin/questions', {
    admin: true,
    body: {
      question: `Will the reading room of branch ${unique()} open before the autumn term?`,
      category: 'society',
      subcategory: 'benefits_public_good',
      closes_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
      publish: true,
      ...fields,
    },
  });
  if (status !== 201) throw new Error(`The question was refused: ${JSON.stringify(body)}`);
  return body.question.id;
};

/** The same number for the same mark, and different numbers for different marks. */
const numberOf = (mark: string): number => {
  let hash = 0x811c9dc5;
  for (const char of mark) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return hash >>> 1;
};

/** Reasoning that passes every gate. `mark` makes the text and its sources unique. */
export const makeReasoning = (mark = unique()): string =>
  makeText(numberOf(mark)).replaceAll(/https:\/\/\S*[^\s.]/g, (url) => `${url}-${mark}`);
