import { type SettingName, settings } from '../../config.js';
import { catalogue } from '../../features/events/index.js';
import { countedBy, type LimitName, limit_table } from '../../features/limits/index.js';
import type { EventDef } from '../../kit/event.js';
import { common_faults, type FaultDef } from '../../kit/fault.js';
import { faultsOf } from '../../kit/http/openapi.js';
import type { Auth, Route } from '../../kit/http/route.js';
import { close_codes, ws_faults } from '../../kit/ws/frames.js';
import { default_limits, type HubLimits } from '../../kit/ws/hub.js';
import { all_routes } from '../../routes.js';
import { asCode, asPhrase, makeTable } from './markdown.js';

/** The tables of docs/reference.md, each from the values that the service itself is made of. */

const callers: Readonly<Record<Auth, string>> = {
  public: 'anybody',
  agent: 'an agent',
  linked: 'a linked agent',
  human: 'a person',
  either: 'an agent or a person',
  member: 'a linked agent or a person',
  admin: 'an admin',
};

const routes: readonly Route[] = (all_routes as readonly Route[]).filter(
  ({ documented }) => documented,
);

/** Routes of one feature together, features in the order in which they are mounted. */
const routesByTag = (): readonly Route[] => {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  return tags.flatMap((tag) => routes.filter((route) => route.tag === tag));
};

const routeTable = (): string =>
  makeTable(
    ['Method', 'Path', 'Who may call', 'Limit', 'What it does'],
    routesByTag().map(({ method, path, auth, limits, summary }) => [
      method,
      asCode(path),
      callers[auth],
      limits.map(asCode).join(', '),
      asPhrase(summary),
    ]),
  );

const fieldsOf = ({ data }: EventDef): string => {
  const required = new Set(data.required ?? []);
  return Object.keys(data.properties)
    .map((name) => asCode(required.has(name) ? name : `${name}?`))
    .join(', ');
};

const eventTable = (): string =>
  makeTable(
    ['Event', 'When', 'Who hears it', 'Data'],
    catalogue.map((def) => [
      asCode(def.name),
      asPhrase(def.about),
      def.audience === 'everyone' ? 'everybody' : 'the author it is about',
      fieldsOf(def),
    ]),
  );

/** Every refusal over HTTP, by code and then by status; one that two routes share stands once. */
export const allFaults = (): readonly FaultDef[] => {
  const found = new Set<FaultDef>(Object.values(common_faults));
  for (const route of all_routes as readonly Route[]) {
    for (const def of faultsOf(route)) found.add(def);
  }
  return [...found].sort((a, b) =>
    a.code === b.code ? a.status - b.status : a.code < b.code ? -1 : 1,
  );
};

const faultTable = (): string =>
  makeTable(
    ['Code', 'Status', 'Category', 'Try again', 'Sentence'],
    allFaults().map(({ code, status, category, retryable, sentence }) => [
      asCode(code),
      String(status),
      category,
      retryable ? 'yes' : '',
      sentence,
    ]),
  );

const socketFaultTable = (): string =>
  makeTable(
    ['Code', 'Category', 'Sentence'],
    Object.values(ws_faults).map(({ code, category, sentence }) => [
      asCode(code),
      category,
      sentence,
    ]),
  );

const adviceOf = (code: number): string =>
  code < 4_100
    ? 'do not try again unchanged'
    : code < 4_200
      ? 'wait, a little longer each time, then try again'
      : 'connect again now, within the spread given';

const closeCodeTable = (): string =>
  makeTable(
    ['Close code', 'Name', 'What to do'],
    Object.entries(close_codes).map(([name, code]) => [String(code), asCode(name), adviceOf(code)]),
  );

const showNumber = (value: number): string => value.toLocaleString('en-US');

/** What a limit counts; those that no route names yet wait for the features they belong to. */
const tellCounted = (name: LimitName): string => {
  const counted = countedBy(name, routes);
  if (counted.length === 0) return 'nothing yet';
  return counted.map((what) => (what.startsWith('every') ? what : asCode(what))).join(', ');
};

const limitTable = (): string =>
  makeTable(
    ['Limit', 'Per minute', 'Of each', 'Counts', 'Setting'],
    Object.entries(limit_table).map(([name, { setting, per }]) => [
      asCode(name),
      showNumber(Number(settings[setting].fallback)),
      per === 'address' ? 'address (IPv6: /64)' : 'agent or person',
      tellCounted(name as LimitName),
      asCode(setting),
    ]),
  );

/** A new limit does not compile before it has a sentence here. */
const socket_limits: Readonly<Record<keyof HubLimits, string>> = {
  frames_per_s: 'Frames that a client may send in a second',
  frames_burst: 'Frames that it may send at once',
  frame_bytes: 'Bytes of one frame from a client that is no call',
  calls: 'Calls of a socket that may wait for their answers',
  topics: 'Topics of all sockets of one agent or person, in one api process',
  filters: 'Different filters on one topic, in one api process',
  topics_anonymous: 'Topics of a socket without one',
  connections_key: 'Sockets of one agent or person, in all api processes',
  connections_ip: 'Sockets of one address, in all api processes',
  lifetime_ms: 'Milliseconds until a socket is sent away to connect again, ± 20 %',
  hello_ms: 'Milliseconds within which a socket without a credential says something',
  tick_ms: 'Milliseconds between two ticks, ± 10 %',
  state_gap_ms: 'Fewest milliseconds between two states of one topic',
  backpressure_bytes: 'Unread bytes above which a socket leaves the live stream',
  unread_bytes: 'The same of all sockets of a process; above it newcomers close with 4100',
  unread_ms: 'Milliseconds for which everything may stay unread',
  replay_events: 'Events of one replay',
  replay_span: 'How far behind the head a replay may look',
  replay_ms: 'Milliseconds that a replay may take',
  ahead_ms: 'Milliseconds to wait for an offset that this process has not reached',
  drain_ms: 'Milliseconds over which all sockets are sent away at a stop',
};

const socketLimitTable = (): string =>
  makeTable(
    ['Limit', 'Value', 'What it bounds'],
    Object.entries(socket_limits).map(([name, about]) => [
      asCode(name),
      showNumber(default_limits[name as keyof HubLimits]),
      about,
    ]),
  );

/** Defaults that depend on the machine the table is made on. */
const told_defaults: Readonly<Partial<Record<SettingName, string>>> = {
  API_PROCESSES: 'cores − 1',
};

const settingTable = (): string =>
  makeTable(
    ['Setting', 'Default', 'Meaning'],
    Object.entries(settings).map(([name, { fallback, about, secret }]) => {
      const told = told_defaults[name as SettingName];
      const value = fallback === undefined || fallback === '' ? '' : asCode(fallback);
      return [asCode(name), told ?? value, secret === true ? `**Secret.** ${about}` : about];
    }),
  );

/** What each npm script is for; a script that is not here stops the tables. */
const script_words: Readonly<Record<string, string>> = {
  start: 'Runs the service: sets everything up, then starts and watches its processes',
  test: 'Passes the tests, or those whose path is given: `npm test -- test/kit`',
  demo: 'Plays the whole story against a running service and checks its own counts',
  import: 'Puts the questions of a file into a running service',
  export: 'Puts data of a running service into a file, and goes on after an interruption',
  bench: 'Measures one question beside its peers',
  doctor: 'Prints every setting with its source and checks what the service needs',
  verify: 'Compares everything that a running service keeps twice',
  backup: 'Writes everything that the database holds into one file, while the service runs',
  restore: 'Puts such a file back into an empty database; the service must not run',
  soak: 'Kills and pauses random parts under load; takes minutes and a seed',
  followed: '200 sockets follow while api processes, the relay and Redis are killed in turn',
  faults:
    'Webhooks under load while signers sleep for 45 s and Redis for a minute; settling while its timers are killed and sleep; full disks, a read-only Postgres and lost connections for 30 s',
  mixed: 'Mixed operations of 32 clients, then verify; takes a number of operations and a seed',
  walk: 'The files and functions that one prediction enters, from the socket to the commit',
  docs: 'Writes the tables of this file; with `-- --check` only says whether they are right',
  build: 'Installs and compiles, and starts nothing',
  check: 'Looks for faults of form and type',
  format: 'Puts the sources into their form',
};

const commandOf = (script: string): string =>
  script === 'start' || script === 'test' ? `npm ${script}` : `npm run ${script}`;

const scriptTable = (scripts: Readonly<Record<string, string>>): string => {
  const rows = Object.keys(scripts).map((name) => {
    const words = script_words[name];
    if (words === undefined) throw new Error(`Say in script_words what \`npm run ${name}\` does.`);
    return [asCode(commandOf(name)), words];
  });
  return makeTable(['Command', 'What it does'], rows);
};

/** Every table by the name of its markers; `scripts` as package.json has them. */
export const makeTables = (
  scripts: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> =>
  new Map([
    ['scripts', scriptTable(scripts)],
    ['routes', routeTable()],
    ['events', eventTable()],
    ['faults', faultTable()],
    ['socket-faults', socketFaultTable()],
    ['close-codes', closeCodeTable()],
    ['limits', limitTable()],
    ['socket-limits', socketLimitTable()],
    ['settings', settingTable()],
  ]);
