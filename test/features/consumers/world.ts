import type { Test } from 'tap';
import { take_answer } from '../../../src/features/consumers/schema.js';
import type { LogEntry } from '../../../src/features/events/log-entry.js';
import { compileCheck } from '../../../src/http/validation.js';
import type { Answered, AppOptions } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { serveLog } from '../log/log-server.js';

/** An api process, a log that the test writes, and an agent with consumers. */

export const questionId = (n: number): string =>
  `0190a000-0000-7000-8000-${String(n).padStart(12, '0')}`;

const checkTaken = compileCheck(take_answer, 'answer');

export const offsetsOf = ({ body }: Pick<Answered, 'body'>): number[] =>
  pluck(body.events, 'offset');

export const serveConsumers = async (t: Test, options: AppOptions = {}) => {
  const server = await serveLog(t, options);
  const { app, log } = server;
  const human = await makeHuman(app);
  const { key } = await makeAgent(app, { human });
  /** Calls paths of consumers. The caller is the agent unless another one is given. */
  const makeCaller =
    (call = app.call, send: object = { key }) =>
    (method: string, path: string, body?: object) =>
      call(method, `/api/me/consumers${path}`, { ...send, ...(body && { body }) });
  const as = makeCaller();
  const take = async (name: string, member: string, more: object = {}, call = as) => {
    const answer = await call('POST', `/${name}/take`, { member, ...more });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    const problem = checkTaken(answer.body);
    if (problem !== null) throw new Error(JSON.stringify(problem));
    return answer;
  };
  const ack = (name: string, member: string, offsets: readonly number[], call = as) =>
    call('POST', `/${name}/ack`, { member, offsets });
  /** Ends the leases of all events. */
  const endLeases = () => app.sql`
    update consumer_events set leased_until = now() - interval '1 second'
    where leased_until is not null`;
  /** Writes one event for each of these question numbers, in this order. */
  const write = async (questions: readonly number[]): Promise<readonly LogEntry[]> => {
    const fresh: LogEntry[] = [];
    for (const n of questions) fresh.push(...(await log.write(1, { question_id: questionId(n) })));
    return fresh;
  };
  return { ...server, human, key, makeCaller, as, take, ack, endLeases, write };
};

export type ConsumerServer = Awaited<ReturnType<typeof serveConsumers>>;
