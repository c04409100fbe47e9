import type { Test } from 'tap';
import { offsetsOf, questionId, serveConsumers } from '../features/consumers/world.js';
import { pluck } from '../help/pluck.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/** One consumer of two questions per test, members on sockets, and time that a test can skip. */

export const serveMembers = async (t: Test) => {
  const server = await serveConsumers(t);
  const { app, as, take, write } = server;
  let made = 0;

  /** A new consumer of two new questions. Leases are long, so only releases cause redelivery. */
  const make = async (more: object = {}, call = as) => {
    made += 1;
    await app.sql`delete from consumers`;
    const [name, one, other] = [`c${made}`, made * 10, made * 10 + 1];
    const topics = [`question:${questionId(one)}`, `question:${questionId(other)}`];
    const { body } = await call('PUT', `/${name}`, { topics, ack_wait_seconds: 600, ...more });
    if (body.name !== name) throw new Error(JSON.stringify(body));
    const update = async (questions: readonly number[]) =>
      pluck(await write(questions), 'offset') as number[];
    return {
      name,
      /** Writes this many events of the first question. */
      u: (count: number) => update(Array(count).fill(one)),
      /** Writes this many events of the second question. */
      v: (count: number) => update(Array(count).fill(other)),
      act: async (act: string, member: string, offsets: readonly unknown[], rest: object = {}) =>
        call('POST', `/${name}/${act}`, { member, offsets, ...rest }),
      take: async (member: string, rest: object = {}) =>
        (await take(name, member, { limit: 100, ...rest }, call)).body.events as readonly {
          offset: number;
          deliveries: number;
        }[],
      offsets: async (member: string, rest: object = {}) =>
        offsetsOf(await take(name, member, { limit: 100, ...rest }, call)),
      get: async () => (await call('GET', `/${name}`)).body,
      parked: async () => offsetsOf(await call('GET', `/${name}/parked?limit=100`)),
    };
  };

  /** A member on a socket. */
  const open = async (
    t: Test,
    consumer: string,
    member: string,
    { in_flight = 20, port = app.port, key = server.key } = {},
  ) => {
    const client = await connect(t, port, { headers: { 'x-api-key': key } });
    await client.ask({ op: 'consume', consumer, member, in_flight });
    const deliveries = () =>
      client.frames.filter(({ op }) => op === 'delivery') as unknown as readonly {
        offset: number;
        deliveries: number;
      }[];
    return {
      client,
      deliveries,
      offsets: () => deliveries().map(({ offset }) => offset),
      got: (count: number) =>
        until(`${count} deliveries`, () => deliveries().length >= count, 5_000),
      call: (act: string, offsets: readonly number[], rest: object = {}) =>
        client.ask({
          op: 'call',
          route: `POST /api/me/consumers/${consumer}/${act}`,
          body: { member, offsets, ...rest },
        }),
    };
  };

  /** Makes every lease and delay end this many seconds earlier, as if that time had passed. */
  const pass = (seconds: number) =>
    app.sql`
      update consumer_events
      set leased_until = leased_until - make_interval(secs => ${seconds})`.then(() => undefined);

  /** Seconds left of an event's lease or delay. Negative if it is over. */
  const left = async (offset: number): Promise<number> => {
    const [row] = await app.sql<{ left: number }[]>`
      select extract(epoch from leased_until - now())::float8 as left
      from consumer_events where "offset" = ${offset}`;
    return row?.left ?? Number.NaN;
  };

  return { ...server, make, open, pass, left };
};
