import { pino } from 'pino';
import type { Test } from 'tap';
import { makeAddressReader } from '../../src/http/call.js';
import type { AgentCaller } from '../../src/http/caller.js';
import {
  App,
  exclusive_port,
  type TemplatedApp,
  us_socket_local_port,
} from '../../src/http/uws.js';
import { common_faults, refuse } from '../../src/kit/fault.js';
import { type ConnectionCounter, makeCounts } from '../../src/socket/connections.js';
import {
  type HubLimits,
  keyOf,
  type Publication,
  passes,
  type TopicRef,
  ws_faults,
} from '../../src/socket/frames.js';
import { type Hub, mountHub } from '../../src/socket/hub.js';
import { makeRecent } from '../../src/socket/recent.js';
import type { HubOptions, LogSource } from '../../src/socket/session.js';

/** Counts the connections of one process. */
const makeOwnCounter = (): ConnectionCounter => {
  const own = makeCounts();
  return {
    async take(name, most) {
      if (own.of(name) >= most) return false;
      own.add(name, 1);
      return true;
    },
    leave: (name) => own.add(name, -1),
    onFull: () => undefined,
  };
};

export const agentNamed = (name: string): AgentCaller => ({
  kind: 'agent',
  id: name,
  name,
  model: 'test',
  model_family: 'other',
  owner_id: null,
});

/** Accepts keys such as `key-NAME`. The key `down` simulates an unavailable store. */
const authenticate: HubOptions['authenticate'] = async ({ api_key, authorization }) => {
  const key = api_key !== '' ? api_key : authorization.replace('Bearer ', '');
  if (key === 'down') throw new Error('the store is away');
  if (key === 'suspended') return refuse(common_faults.ACCOUNT_SUSPENDED);
  if (!/^(slow-)?key-/.test(key)) return refuse(common_faults.INVALID_API_KEY);
  return agentNamed(key.replace(/^(slow-)?key-/, ''));
};

const plain = (label: string): TopicRef => ({ topic: label, label });
const ownTopic = (id: string): TopicRef => ({ topic: `me:${id}`, label: 'me' });

/** A point that a test can block until it calls the function that `hold` returns. */
const makeHold = () => {
  let held: Promise<void> | undefined;
  return {
    passed: () => held,
    hold(): () => void {
      let release = (): void => undefined;
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
  };
};

/** Counts how often replays read the record, and can make those reads fail. */
const empty_reads = { count: 0, newest: 0, fails: false };

type Findable = Parameters<LogSource['newest']>;

const makeSource = (record: readonly Publication[], reads: typeof empty_reads) => {
  const find = (...[refs, { after, until }]: Findable): readonly Publication[] =>
    record
      .slice(after, until)
      .filter((p) =>
        refs.some((ref) => p.topics.some(({ topic }) => topic === ref.topic) && passes(ref, p)),
      );
  const { passed, hold } = makeHold();
  const check = (): void => {
    if (reads.fails) throw new Error('the record is away');
  };
  const read: LogSource['read'] = async (refs, span) => {
    reads.count += 1;
    await passed();
    check();
    return find(refs, span).slice(0, span.limit);
  };
  const source: LogSource = {
    oldest: () => 1,
    read,
    count: async (refs, span) => (await read(refs, span)).length,
    nthNewest: async (refs, span) => find(refs, span).at(-span.limit)?.offset ?? null,
    async newest(refs, span) {
      reads.newest += 1;
      check();
      const found = new Map<string, number>();
      for (const ref of refs) {
        const last = find([ref], span).at(-1);
        if (last !== undefined) found.set(keyOf(ref), last.offset);
      }
      return found;
    },
  };
  return { source, hold };
};

/** A hub, by default over an empty log. It accepts topics that do not start with `no:`. */
export const mountTestHub = (
  app: TemplatedApp,
  options: Partial<HubOptions> & Pick<HubOptions, 'log' | 'authenticate'>,
): Hub => {
  const hub = mountHub(app, {
    path: '/ws',
    node: 'test',
    recent: makeRecent({ most: 4_096, max_chars: 8_388_608 }),
    connections: makeOwnCounter(),
    readAddress: makeAddressReader([]),
    readToken: (token) => ({ api_key: token, authorization: '', admin_key: '' }),
    resolveTopic: (label, caller) => {
      if (label.startsWith('no:')) return refuse(ws_faults.INVALID_TOPIC);
      if (label !== 'me') return plain(label);
      return caller.kind === 'agent' ? ownTopic(caller.id) : refuse(common_faults.MISSING_AUTH);
    },
    defaultTopics: (caller) => (caller.kind === 'agent' ? [plain('all'), ownTopic(caller.id)] : []),
    source: makeSource([], empty_reads).source,
    readFilter: ({ filter }) => {
      if (filter === undefined) return null;
      const { odd } = filter as { odd?: unknown };
      if (typeof odd !== 'boolean') return refuse(ws_faults.INVALID_FILTER);
      const matches = ({ offset }: Publication): boolean => (offset % 2 === 1) === odd;
      return { key: String(odd), shown: { odd }, matches };
    },
    backfill: ({ label }, after) => `/log?topic=${label}&after=${after}`,
    ...options,
  });
  hub.begin(0);
  return hub;
};

export type HubServer = Awaited<ReturnType<typeof startHub>>;

/** Starts a hub on its own port, over a log that is an array. */
export const startHub = async (
  t: Pick<Test, 'teardown'>,
  limits: Partial<HubLimits> = {},
  head = 0,
  more: Pick<HubOptions, 'ops' | 'states' | 'digestAt'> = {},
) => {
  const app = App();
  /** Everything published so far. The offset is the index plus one. */
  const record: Publication[] = [];
  const reads = { ...empty_reads };
  /** Log messages at level warn and above. */
  const logged: string[] = [];
  const lookups = makeHold();
  const { source, hold: holdReads } = makeSource(record, reads);
  const hub = mountTestHub(app, {
    ...more,
    limits,
    source,
    log: pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) }),
    authenticate: async (sent) => {
      if (sent.api_key.startsWith('slow-')) await lookups.passed();
      return authenticate(sent);
    },
  });
  const port = await new Promise<number>((resolve) => {
    app.listen(0, exclusive_port, (socket) => {
      if (socket) resolve(us_socket_local_port(socket));
    });
  });
  t.teardown(() => {
    hub.close();
    app.close();
  });
  /** Adds this many publications on these topics to the record and publishes them. */
  const publish = (count: number, topics: readonly string[] = ['all'], body?: string): void => {
    const batch = range(record.length + 1, record.length + count).map((offset) => ({
      offset,
      id: `id-${offset}`,
      topics: topics.map((topic) => ({ topic, label: topic.startsWith('me:') ? 'me' : topic })),
      body: body ?? `{"event":"test","data":{"n":${offset}},"timestamp":"now"}`,
    }));
    record.push(...batch);
    hub.publish(batch);
  };
  if (head > 0) publish(head);
  return { port, hub, record, publish, reads, holdReads, holdLookups: lookups.hold, logged };
};

/** The integers from `from` to `to`, both included. */
export const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
