import { pino } from 'pino';
import type { Test } from 'tap';
import {
  App,
  exclusive_port,
  makeAddressReader,
  us_socket_local_port,
} from '../../src/http/request.js';
import type { AgentCaller } from '../../src/http/route.js';
import { anonymous } from '../../src/http/route.js';
import { common_faults, refuse } from '../../src/kit/fault.js';
import { type ConnectionCounter, makeCounts } from '../../src/socket/connections.js';
import {
  keyOf,
  type Publication,
  passes,
  type TopicRef,
  ws_faults,
} from '../../src/socket/frames.js';
import { type Hub, type HubLimits, type HubOptions, mountHub } from '../../src/socket/hub.js';
import { makeRecent, type Recent } from '../../src/socket/recent.js';

export const makeTestRecent = (): Recent<Publication> =>
  makeRecent({ most: 4_096, most_chars: 8_388_608 });

/** Counts the connections of one process. */
export const makeOwnCounter = (): ConnectionCounter => {
  const own = makeCounts();
  return {
    async take(name, most) {
      if (own.of(name) >= most) return false;
      own.add(name, 1);
      return true;
    },
    leave: (name) => own.add(name, -1),
  };
};

/** A hub on a port of its own, over a log that is an array. */
export interface HubServer {
  readonly port: number;
  readonly hub: Hub;
  /** Everything that was ever published; the offset is the index plus one. */
  readonly record: Publication[];
  /** Puts so many further publications on these topics into the record and publishes them. */
  publish(count: number, topics?: readonly string[], body?: string): void;
  /** Reads of the record by replays, and a way to hold them up. */
  readonly reads: { count: number; newest: number; gate: Promise<void> | null; fails: boolean };
  /** A way to hold up the lookups of keys that begin with `slow-`. */
  readonly lookups: { gate: Promise<void> | null };
  /** Messages of what was logged at warn and above. */
  readonly logged: string[];
}

interface Span {
  readonly after: number;
  readonly until: number;
}

export const agentNamed = (name: string): AgentCaller => ({
  kind: 'agent',
  id: name,
  name,
  model: 'test',
  model_family: 'other',
  owner_id: null,
});

/** Keys are `key-NAME`; `down` is a store that is away. */
const authenticate: HubOptions['authenticate'] = async ({ api_key, authorization }) => {
  const key = api_key !== '' ? api_key : authorization.replace('Bearer ', '');
  if (key === 'down') throw new Error('the store is away');
  if (key === 'suspended') return refuse(common_faults.ACCOUNT_SUSPENDED);
  if (!/^(slow-)?key-/.test(key)) return refuse(common_faults.INVALID_API_KEY);
  return agentNamed(key.replace(/^(slow-)?key-/, ''));
};

export const startHub = async (
  t: Pick<Test, 'teardown'>,
  limits: Partial<HubLimits> = {},
  head = 0,
  more: Pick<HubOptions, 'ops' | 'states'> = {},
): Promise<HubServer> => {
  const app = App();
  const record: Publication[] = [];
  const reads: HubServer['reads'] = { count: 0, newest: 0, gate: null, fails: false };
  const lookups: HubServer['lookups'] = { gate: null };
  const logged: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) });
  const find = (refs: readonly TopicRef[], { after, until }: Span): Publication[] =>
    record
      .slice(after, until)
      .filter((p) =>
        refs.some((ref) => p.topics.some(({ topic }) => topic === ref.topic) && passes(ref, p)),
      );
  const ask = async (refs: readonly TopicRef[], span: Span & { readonly limit: number }) => {
    reads.count += 1;
    await reads.gate;
    if (reads.fails) throw new Error('the record is away');
    return find(refs, span).slice(0, span.limit);
  };
  const source: HubOptions['source'] = {
    oldest: () => 1,
    read: ask,
    count: async (refs, span) => (await ask(refs, span)).length,
    nthNewest: async (refs, span) => find(refs, span).at(-span.limit)?.offset ?? null,
    async newest(refs, span) {
      reads.newest += 1;
      if (reads.fails) throw new Error('the record is away');
      const found = refs.map((ref) => [keyOf(ref), find([ref], span).at(-1)?.offset] as const);
      return new Map(found.filter((one): one is [string, number] => one[1] !== undefined));
    },
  };
  const hub = mountHub(app, {
    ...more,
    path: '/ws',
    recent: makeTestRecent(),
    connections: makeOwnCounter(),
    node: 'test',
    log,
    limits,
    readAddress: makeAddressReader([]),
    authenticate: async (sent) => {
      if (sent.api_key.startsWith('slow-')) await lookups.gate;
      return authenticate(sent);
    },
    readToken: (token) => ({ api_key: token, authorization: '', admin_key: '' }),
    resolveTopic: (label, caller) => {
      if (label === 'me') {
        if (caller.kind !== 'agent') return refuse(common_faults.MISSING_AUTH);
        return { topic: `me:${caller.id}`, label };
      }
      return label.startsWith('no:') ? refuse(ws_faults.INVALID_TOPIC) : { topic: label, label };
    },
    defaultTopics: (caller) =>
      caller.kind === 'agent'
        ? [
            { topic: 'all', label: 'all' },
            { topic: `me:${caller.id}`, label: 'me' },
          ]
        : [],
    source,
    readFilter: (given) => {
      const { odd } = given as { odd?: unknown };
      if (typeof odd !== 'boolean') return refuse(ws_faults.INVALID_FILTER);
      const matches = ({ offset }: Publication): boolean => (offset % 2 === 1) === odd;
      return { key: String(odd), shown: { odd }, matches };
    },
    backfill: ({ label }, after) => `/log?topic=${label}&after=${after}`,
  });
  const port = await new Promise<number>((resolve) => {
    (app.listen as (...args: unknown[]) => void).call(
      app,
      '127.0.0.1',
      0,
      exclusive_port,
      (socket: Parameters<typeof us_socket_local_port>[0]) => resolve(us_socket_local_port(socket)),
    );
  });
  t.teardown(() => {
    hub.close();
    app.close();
  });
  const publish: HubServer['publish'] = (count, topics = ['all'], body) => {
    const batch: Publication[] = [];
    for (let i = 0; i < count; i += 1) {
      const offset = record.length + 1;
      const publication = {
        offset,
        id: `id-${offset}`,
        topics: topics.map((topic) => ({ topic, label: topic.startsWith('me:') ? 'me' : topic })),
        body: body ?? `{"event":"test","data":{"n":${offset}},"timestamp":"now"}`,
      };
      record.push(publication);
      batch.push(publication);
    }
    hub.publish(batch);
  };
  hub.begin(0);
  if (head > 0) publish(head);
  return { port, hub, record, publish, reads, lookups, logged };
};

/** 1 to n, or from a to b. */
export const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);

export { anonymous };
