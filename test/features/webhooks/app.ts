import type { Test } from 'tap';
import { startApp } from '../../help/app.js';
import { startReceiver } from '../../help/receiver.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { until } from '../../help/until.js';

/** The service with a receiver, for tests of the routes. All tests of a file share both. */

export const events = ['question.created'];

export const startHookApp = async (t: Test, env: Readonly<Record<string, string>> = {}) => {
  const receiver = await startReceiver();
  const app = await startApp(t, {
    roles: ['api', 'relay', 'signer'],
    env: {
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_CA_FILE: receiver.ca_file,
      LIMIT_WEBHOOKS: '1000000',
      ...env,
    },
  });
  t.teardown(() => receiver.close());
  const human = await makeHuman(app);

  /** The offset of the newest event, once all committed events are in the log. */
  const readHead = (): Promise<number> =>
    until('the log has all', async () => {
      const [row] = await app.sql<{ left: number; head: number }[]>`
        select (select count(*)::int from outbox) as left, "offset" as head from log_head`;
      return row?.left === 0 && { head: row.head };
    }).then(({ head }) => head);

  /** Deletes everything that earlier tests made, and returns the calls of a new agent. */
  const begin = async () => {
    for (const table of ['webhooks', 'webhook_replays', 'deliveries', 'attempts'] as const) {
      await app.sql`delete from ${app.sql(table)}`;
    }
    receiver.clear();
    const { key } = await makeAgent(app, { human });
    /** Paths are relative to `/api/webhooks`. */
    const call = (method: string, path: string, body?: unknown) =>
      app.call(method, `/api/webhooks${path}`, { key, ...(body !== undefined && { body }) });
    const create = async (body: Readonly<Record<string, unknown>> = {}, path = '/') => {
      const made = await call('POST', '', { url: receiver.url(path), events, ...body });
      if (made.status !== 201) throw new Error(JSON.stringify(made.body));
      return made.body;
    };
    /** The deliveries of a webhook, oldest first, once all are in one of these states. */
    const settled = (id: string, count: number, ...states: readonly string[]) =>
      until(`${count} deliveries ${states.join(' or ')}`, async () => {
        const { deliveries } = (await call('GET', `/${id}/deliveries?limit=100`)).body;
        const is_done =
          deliveries.length === count &&
          deliveries.every((one: { status: string }) => states.includes(one.status));
        return is_done && deliveries.reverse();
      });
    return { key, call, create, settled };
  };
  return { app, receiver, human, readHead, begin };
};
