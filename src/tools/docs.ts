import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { commands } from '../boot/commands.mjs';
import { type SettingName, settings } from '../config.js';
import { catalogue } from '../features/events/catalogue.js';
import * as columns from '../features/exports/columns.js';
import { countedBy, type LimitName, limit_table, per_texts } from '../features/limits/rules.js';
import { faultsOf } from '../http/openapi.js';
import type { Route } from '../http/route.js';
import type { EventDef } from '../kit/event.js';
import { common_faults, type FaultDef } from '../kit/fault.js';
import { api_routes } from '../routes.js';
import { close_codes, default_limits, type HubLimits, ws_faults } from '../socket/frames.js';
import { runAdmin } from './admin.js';
import { runBackup } from './backup.js';
import { type Call, runCommand, startCommand, writeLine } from './command.js';
import { runDemo } from './demo.js';
import { runDoctor } from './doctor.js';
import { runExport } from './export.js';
import { runImport } from './import.js';
import { runKey } from './key.js';
import { runMcp } from './mcp.js';
import { runMigrate } from './migrate.js';
import { runQuickstart } from './quickstart.js';
import { runRebuild } from './rebuild.js';
import { runRestore } from './restore.js';
import { runStart } from './start.js';
import { runVerify } from './verify.js';
import { runWebhook } from './webhook.js';

/**
 * `npm run docs`: generates the tables of docs/reference from the service's own values. Writes
 * them, or compares them with the files if `--check` is given.
 */

const help = `Usage: npm run docs [-- --check]

Writes the tables of docs/reference from the source, and the --help texts into commands.md.

  --check   change nothing; exit code 1 if a document is out of date`;

const escapeCell = (text: string): string => text.replace(/\s+/g, ' ').replaceAll('|', '\\|');

/** Makes a Markdown table. Escapes `|` in a cell, and turns line ends into spaces. */
export const makeTable = (
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string => {
  const line = (cells: readonly string[]): string => `| ${cells.map(escapeCell).join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
};

const asCode = (text: string): string => `\`${text}\``;

/** Prepares text for a table cell: a single sentence loses its full stop. */
const asPhrase = (text: string): string =>
  /\.\s/.test(text) || !text.endsWith('.') ? text : text.slice(0, -1);

const routes: readonly Route[] = (api_routes as readonly Route[]).filter(
  ({ documented }) => documented,
);

const fieldsOf = ({ data }: EventDef): string => {
  const required = new Set(data.required ?? []);
  return Object.keys(data.properties)
    .map((name) => asCode(required.has(name) ? name : `${name}?`))
    .join(', ');
};

/** Returns every refusal over HTTP, by code and then by status. A shared refusal is listed once. */
export const allFaults = (): readonly FaultDef[] => {
  const found = new Set<FaultDef>(Object.values(common_faults));
  for (const route of api_routes as readonly Route[]) {
    for (const def of faultsOf(route)) found.add(def);
  }
  return [...found].sort((a, b) =>
    a.code === b.code ? a.status - b.status : a.code < b.code ? -1 : 1,
  );
};

const adviceOf = (code: number): string =>
  code < 4_100
    ? 'do not try again unchanged'
    : code < 4_200
      ? 'wait a little longer each time, then try again'
      : 'connect again within the given spread';

const showNumber = (value: number): string => value.toLocaleString('en-US');

/** Lists the routes that count against a limit. Some limits have no routes yet. */
const tellCounted = (name: LimitName): string => {
  const counted = countedBy(name, routes);
  if (counted.length === 0) return 'nothing yet';
  return counted.map((what) => (what.startsWith('every') ? what : asCode(what))).join(', ');
};

/** If a new limit has no sentence here, the program does not compile. */
const socket_limits: Readonly<Record<keyof HubLimits, string>> = {
  frames_per_s: 'Frames that a client may send per second',
  frames_burst: 'Frames that a client may send at once',
  frame_bytes: 'Bytes of one frame from a client, except for calls',
  calls: 'Calls of one socket that may wait for answers',
  topics: 'Topics of all sockets of one agent or person, in one api process',
  filters: 'Different filters on one topic, in one api process',
  topics_anonymous: 'Topics of one socket without a credential',
  connections_key: 'Sockets of one agent or person, in all api processes',
  connections_ip: 'Sockets of one address, in all api processes',
  lifetime_ms: 'Milliseconds until a socket has to connect again, ± 20 %',
  alive_ms: 'Milliseconds in which a socket must answer a ping',
  hello_ms: 'Milliseconds in which a socket without a credential must send a frame',
  tick_ms: 'Milliseconds between two ticks, ± 10 %',
  state_gap_ms: 'Minimum milliseconds between two states of one topic',
  backpressure_bytes: 'Unread bytes above which a socket leaves the live stream',
  unread_bytes: 'The same for all sockets of a process; above it, new sockets are closed with 4100',
  unread_ms: 'Milliseconds for which a socket may leave sent data unread',
  replay_events: 'Events of one replay',
  replay_span: 'Offsets that a replay may go back from the head',
  replay_ms: 'Milliseconds that a replay may take',
  ahead_ms: 'Milliseconds to wait for an offset that this process has not reached',
  drain_ms: 'Milliseconds over which all sockets are closed at shutdown',
};

/** Texts for defaults that depend on the machine on which the table is made. */
const fixed_defaults: Readonly<Partial<Record<SettingName, string>>> = {
  API_PROCESSES: 'cores − 1',
};

/** The columns of each export. */
const exports: Readonly<Record<string, readonly columns.Column[]>> = {
  predictions: columns.prediction_columns,
  revisions: columns.revision_columns,
  questions: [...columns.question_columns, ...columns.question_details],
  resolutions: columns.resolution_columns,
  comments: columns.comment_columns,
  'consensus-history': columns.consensus_columns,
};

const columnTables = Object.fromEntries(
  Object.entries(exports).map(([name, of_export]) => [
    `${name}-columns`,
    () => [
      ['Column', 'Type', 'Meaning'],
      ...of_export.map(({ name: column, type, about }) => [asCode(column), type, asPhrase(about)]),
    ],
  ]),
);

/** The head and the rows of each table, keyed by the name of its markers. */
const tables: Readonly<Record<string, () => readonly (readonly string[])[]>> = {
  ...columnTables,
  events: () => [
    ['Event', 'When', 'Audience', 'Data'],
    ...catalogue.map((def) => [
      asCode(def.name),
      asPhrase(def.about),
      def.audience === 'everyone' ? 'everybody' : 'the author that it concerns',
      fieldsOf(def),
    ]),
  ],
  faults: () => [
    ['Code', 'Status', 'Category', 'Try again', 'Sentence'],
    ...allFaults().map(({ code, status, category, retryable, sentence }) => [
      asCode(code),
      String(status),
      category,
      retryable ? 'yes' : '',
      sentence,
    ]),
  ],
  'socket-faults': () => [
    ['Code', 'Category', 'Sentence'],
    ...Object.values(ws_faults).map((def) => [asCode(def.code), def.category, def.sentence]),
  ],
  'close-codes': () => [
    ['Close code', 'Name', 'Action'],
    ...Object.entries(close_codes).map(([name, code]) => [
      String(code),
      asCode(name),
      adviceOf(code),
    ]),
  ],
  limits: () => [
    ['Limit', 'Per minute', 'Per', 'Counts', 'Setting'],
    ...Object.entries(limit_table).map(([name, { setting, per }]) => [
      asCode(name),
      showNumber(Number(settings[setting].fallback)) + (per === 'owner' ? ' a day' : ''),
      per_texts[per],
      tellCounted(name as LimitName),
      asCode(setting),
    ]),
  ],
  'socket-limits': () => [
    ['Limit', 'Value', 'Meaning'],
    ...Object.entries(socket_limits).map(([name, about]) => [
      asCode(name),
      showNumber(default_limits[name as keyof HubLimits]),
      about,
    ]),
  ],
  settings: () => [
    ['Setting', 'Default', 'Meaning'],
    ...Object.entries(settings).map(([name, { fallback, about, secret }]) => {
      const fixed = fixed_defaults[name as SettingName];
      const value = fallback === undefined || fallback === '' ? '' : asCode(fallback);
      return [asCode(name), fixed ?? value, secret === true ? `**Secret.** ${about}` : about];
    }),
  ],
};

/** The tables of each page of docs/reference. */
const pages: Readonly<Record<string, readonly string[]>> = {
  events: ['events'],
  errors: ['faults'],
  socket: ['socket-faults', 'close-codes', 'socket-limits'],
  limits: ['limits'],
  settings: ['settings'],
  exports: Object.keys(columnTables),
};

const makeTables = (names: readonly string[]): ReadonlyMap<string, string> =>
  new Map(
    names.map((name) => {
      const [head = [], ...rows] = tables[name]?.() ?? [];
      return [name, makeTable(head, rows)];
    }),
  );

export interface Filled {
  readonly text: string;
  /** Names of the blocks whose content was out of date. */
  readonly changed: readonly string[];
  /** Blocks without a pair of markers, and markers without a block. */
  readonly problems: readonly string[];
}

/** Puts each block between `<!-- name:begin -->` and `<!-- name:end -->`. */
export const fillBlocks = (document: string, blocks: ReadonlyMap<string, string>): Filled => {
  const changed: string[] = [];
  const markers = document.matchAll(/^<!-- ([a-z-]+):(?:begin|end) -->$/gm);
  const problems = [...new Set(Array.from(markers, ([, name = '']) => name))]
    .filter((name) => !blocks.has(name))
    .map((name) => `There is no table "${name}".`);
  let text = document;
  for (const [name, block] of blocks) {
    const [begin, end] = [`<!-- ${name}:begin -->\n`, `<!-- ${name}:end -->`];
    const [before = '', after = '', ...more] = text.split(begin);
    const at = after.indexOf(end);
    if (more.length > 0 || at === -1) {
      problems.push(`The table "${name}" needs one pair of markers.`);
      continue;
    }
    const wanted = `\n${block}\n\n`;
    if (after.slice(0, at) !== wanted) changed.push(name);
    text = before + begin + wanted + after.slice(at);
  }
  return { text, changed, problems };
};

const helps: Readonly<Record<string, (call: Call) => Promise<number>>> = {
  start: (call) => runStart(call, ''),
  migrate: runMigrate,
  doctor: runDoctor,
  verify: runVerify,
  rebuild: runRebuild,
  backup: runBackup,
  restore: runRestore,
  import: runImport,
  export: runExport,
  admin: runAdmin,
  key: runKey,
  webhook: runWebhook,
  demo: runDemo,
  mcp: runMcp,
  quickstart: runQuickstart,
};

/** Fills the page of commands with the `--help` of every command. */
export const fillCommands = async (text: string): Promise<Filled> => {
  const parts: string[] = [];
  for (const [name, [, about]] of Object.entries(commands)) {
    let help = '';
    await helps[name]?.({ argv: ['--help'], screen: { write: (piece) => (help += piece) } });
    parts.push(`## ${name}\n\nIt ${about}.\n\n\`\`\`text\n${help}\`\`\``);
  }
  return fillBlocks(text, new Map([['commands', parts.join('\n\n')]]));
};

/** The pages that are generated, with the function that fills their current text. */
export const documents: Readonly<Record<string, (text: string) => Filled | Promise<Filled>>> = {
  'docs/reference/commands.md': fillCommands,
  ...Object.fromEntries(
    Object.entries(pages).map(([page, names]) => [
      `docs/reference/${page}.md`,
      (text: string) => fillBlocks(text, makeTables(names)),
    ]),
  ),
};

export const runDocs = (
  call: Call,
  root = path.resolve(import.meta.dirname, '../../..'),
): Promise<number> =>
  runCommand(call, {
    help,
    options: { check: { type: 'boolean' } },
    async work({ check }, _, { screen }) {
      let code = 0;
      for (const [name, fill] of Object.entries(documents)) {
        const file = path.join(root, name);
        const { text, changed, problems } = await fill(readFileSync(file, 'utf8'));
        for (const problem of problems) writeLine(screen, `${name}: ${problem}`);
        if (problems.length > 0) code = 1;
        if (problems.length > 0) continue;
        const blocks = changed.join(', ');
        const is_wrong = check === true && changed.length > 0;
        if (is_wrong) code = 1;
        if (check !== true && changed.length > 0) writeFileSync(file, text);
        writeLine(
          screen,
          changed.length === 0
            ? `${name} is up to date.`
            : is_wrong
              ? `${name} is out of date: ${blocks}. Run: npm run docs`
              : `${name}: rewritten: ${blocks}.`,
        );
      }
      return code;
    },
  });

await startCommand(import.meta.filename, runDocs);
