import type { Test } from 'tap';
import { type Answered, startApp } from '../help/app.js';
import { type Human, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import type { Any, Fields } from './world.js';

/** Shared code of the tests about fleets: people with many agents, and batches of predictions. */

export const batch_path = '/api/me/agents/batch';

let made = 0;
/** Items of a registration call, with unused names. */
export const namesOf = (count: number): Fields[] =>
  Array.from({ length: count }, () => {
    made += 1;
    return { name: `Fleet ${made}`, model: 'claude-sonnet-4' };
  });

export const openFleets = async (t: Test) => {
  const env = { LIMIT_REGISTER: '5', LIMIT_COMMENTS: '2', TRUSTED_PROXIES: '127.0.0.1' };
  const app = await startApp(t, { roles: ['api'], env });

  const register = (human: Human, agents: unknown, headers: Record<string, string> = {}) =>
    app.call('POST', batch_path, { token: human.token, headers, body: { agents } });

  const meOf = async (key: string): Promise<Any> =>
    (await app.call('GET', '/api/me', { key })).body.user;

  /** A person with this many agents. */
  const start = async (count: number) => {
    const human = await makeHuman(app);
    const { body } = await register(human, namesOf(count));
    const fleet = (body.results as Any[]).map(({ result }) => ({
      id: result.user.id as string,
      name: result.user.name as string,
      key: result.api_key as string,
    }));
    return { human, fleet };
  };

  return { app, register, meOf, start };
};

/** Batches of predictions on this many open questions. */
export const openBatches = async (t: Test, count: number) => {
  const fleets = await openFleets(t);
  const { app } = fleets;
  const questions = await Promise.all(Array.from({ length: count }, () => makeOpenQuestion(app)));
  const itemsOf = (from: number, count: number, more: Fields = {}): Fields[] =>
    questions.slice(from, from + count).map((question_id) => {
      return { question_id, probability: 70, reasoning: makeReasoning(), ...more };
    });
  const predict = (key: string, predictions: unknown, headers: Record<string, string> = {}) =>
    app.call('POST', '/api/predictions/batch', { key, headers, body: { predictions } });
  const predictOne = (key: string, n: number): Promise<Answered> =>
    app.call('POST', '/api/predictions', { key, body: itemsOf(n, 1)[0] });
  return { ...fleets, questions, itemsOf, predict, predictOne };
};
