import { appendFileSync, readFileSync, statSync } from 'node:fs';
import { type Bar, makeBar, type Screen } from '../shared/bar.js';
import { type Caller, makeCaller, pick, sentenceOf, Unreachable } from '../shared/call.js';
import { writeLine } from '../shared/printable.js';
import { type ImportArguments, readImportArguments } from './arguments.js';
import { type ItemOptions, makeItem } from './item.js';
import { type Counts, type Lot, makeLot } from './lot.js';
import { type Mapping, makeMapping, makeSeasonMapping, type SeasonMapping } from './mapping.js';
import { isProblem } from './readers.js';
import { kindOf, readRecords, type SourceRecord } from './records.js';
import { makeSeasonItem, type RecordType, record_types, typeOf } from './season.js';
import { makeUploader, type Numbered, type Outcome, paths, Stopped } from './upload.js';

/**
 * The whole import: file → records → items → service, with a bar, a list and a summary. The file is
 * read once for questions and agents, and again for forecasts and for resolutions where it has any,
 * so that what depends on something else comes after it, in whatever order the lines stand.
 */

export interface ImportOptions {
  readonly argv: readonly string[];
  readonly screen: Screen;
  /** Set while the person at the terminal wants it to end. */
  readonly stop?: AbortSignal;
  /** How long the service may be away before the import gives up. */
  readonly patience_ms?: number;
}

/** What is said of an agent, by a line of its own or by its forecasts. */
interface Named {
  readonly line: number;
  readonly item: Record<string, unknown>;
}

interface Run {
  readonly args: ImportArguments;
  readonly screen: Screen;
  readonly bar: Bar;
  readonly lots: Readonly<Record<RecordType, Lot>>;
  readonly mapping: Mapping | null;
  readonly season: SeasonMapping | null;
  readonly items: ItemOptions;
  readonly total_bytes: number;
  readonly agents: Map<string, Named>;
  /** Records of each type in the file. */
  readonly seen: Record<RecordType, number>;
  cut: number;
  listed: number;
  at_byte: number;
}

const default_patience_ms = 60_000;
/** Notices and bad lines beyond these are counted, not listed. */
const most_listed = 200;

const readPillars = async (caller: Caller): Promise<ReadonlyMap<string, string>> => {
  const answer = await caller.call({ path: '/api/taxonomy' });
  if (answer.status !== 200 || !Array.isArray(answer.body)) {
    throw new Stopped(`${caller.url} did not give its taxonomy: ${sentenceOf(answer)}`);
  }
  const pillars = new Map<string, string>();
  for (const pillar of answer.body as readonly unknown[]) {
    const subcategories = pick(pillar, 'subcategories');
    if (!Array.isArray(subcategories)) continue;
    for (const each of subcategories)
      pillars.set(String(pick(each, 'slug')), String(pick(pillar, 'slug')));
  }
  return pillars;
};

const readAdminKey = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new Stopped(`The admin key cannot be read from ${file}; see --admin-key-file.`);
  }
};

const readMapping = (map: ImportArguments['map']) => {
  if (map === null) return { mapping: null, season: null };
  const file = 'file' in map ? map.file : new URL(`./maps/${map.name}.json`, import.meta.url);
  try {
    const content: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return { mapping: makeMapping(content), season: makeSeasonMapping(content) };
  } catch (error) {
    throw new Stopped(`${file}: ${error instanceof Error ? error.message : error}`);
  }
};

const note = ({ created, exists, bad }: Counts): string =>
  `${created} created, ${exists} there already, ${bad} bad`;

const report = (run: Pick<Run, 'bar' | 'screen' | 'listed'>, line: number, text: string): void => {
  run.listed += 1;
  if (run.listed > most_listed) return;
  run.bar.clear();
  writeLine(run.screen, `line ${line}: ${text}`);
};

interface Typed {
  readonly type: RecordType;
  readonly record: SourceRecord;
}

/** What a record of the file holds: one thing, or with a mapping perhaps several. */
const split = ({ mapping, season, args }: Run, record: SourceRecord): Typed[] | string => {
  if (mapping === null || season === null) {
    const type = typeOf(record);
    return isProblem(type) ? type.problem : [{ type, record }];
  }
  const forecasts = args.forecasts ? season.forecasts(record) : [];
  const resolutions = args.resolutions ? season.resolutions(record) : [];
  return [
    { type: 'question', record: mapping(record) },
    ...forecasts.map((made): Typed => ({ type: 'forecast', record: made })),
    ...resolutions.map((made): Typed => ({ type: 'resolution', record: made })),
  ];
};

const addQuestion = async (run: Run, line: number, record: SourceRecord): Promise<void> => {
  const made = makeItem(record, run.items);
  if ('problems' in made) return run.lots.question.refuse(line, made.problems.join('; '));
  for (const notice of made.notices) {
    run.cut += 1;
    report(run, line, notice);
  }
  await run.lots.question.add({ line, item: made.item });
};

/** A line of its own says more of an agent than a forecast does. */
const noteAgent = (run: Run, line: number, record: SourceRecord, is_own: boolean): void => {
  const made = makeSeasonItem('agent', is_own ? record : { ...record, name: record['agent'] });
  if ('problems' in made) {
    if (is_own) run.lots.agent.refuse(line, made.problems.join('; '));
    return;
  }
  const name = String(made.item['name']);
  if (!is_own && run.agents.has(name)) return;
  run.agents.set(name, { line, item: { model: 'imported', ...made.item } });
};

const addLater = async (run: Run, line: number, { type, record }: Typed): Promise<void> => {
  if (type !== 'forecast' && type !== 'resolution') return;
  const made = makeSeasonItem(type, record);
  if ('problems' in made) return run.lots[type].refuse(line, made.problems.join('; '));
  const { model: _, ...item } = made.item;
  await run.lots[type].add({ line, item });
};

/** The first reading: questions are sent, agents gathered, the rest counted. */
const takeFirst = async (run: Run, line: number, { type, record }: Typed): Promise<void> => {
  run.seen[type] += 1;
  if (type === 'question') await addQuestion(run, line, record);
  else if (type !== 'resolution') noteAgent(run, line, record, type === 'agent');
};

/** One reading of the file; false when it was interrupted. */
const readFile = async (
  run: Run,
  stop: AbortSignal | undefined,
  { is_first, take }: { is_first: boolean; take(line: number, typed: Typed): Promise<void> },
): Promise<boolean> => {
  for await (const entry of readRecords(run.args.file, await kindOf(run.args.file))) {
    if (stop?.aborted) return false;
    const parts = 'problem' in entry ? entry.problem : split(run, entry.record);
    run.at_byte = entry.at_byte;
    if (typeof parts !== 'string') for (const typed of parts) await take(entry.line, typed);
    else if (is_first) run.lots.question.refuse(entry.line, parts);
  }
  run.at_byte = run.total_bytes;
  return true;
};

/** Sends everything that can be read; returns whether the end of the file was reached. */
const runFile = async (run: Run, stop: AbortSignal | undefined): Promise<boolean> => {
  const { lots, seen } = run;
  const take = (line: number, typed: Typed) => takeFirst(run, line, typed);
  if (!(await readFile(run, stop, { is_first: true, take }))) return false;
  await lots.question.flush();
  for (const agent of run.agents.values()) {
    if (stop?.aborted) return false;
    await lots.agent.add(agent);
  }
  if (run.agents.size > 0) await lots.agent.flush();
  for (const type of ['forecast', 'resolution'] as const) {
    if (seen[type] === 0) continue;
    const takeLater = async (line: number, typed: Typed): Promise<void> => {
      if (typed.type === type) await addLater(run, line, typed);
    };
    if (!(await readFile(run, stop, { is_first: false, take: takeLater }))) return false;
    await lots[type].flush();
  }
  return true;
};

/** Keys are shown once, so they are on the disk before the next call. */
const keepKey = (keys_file: string | null, entry: Numbered, outcome: Outcome): void => {
  if (keys_file === null || outcome.kind === 'refused' || outcome.api_key === undefined) return;
  const { agent_id, api_key } = outcome;
  const line = JSON.stringify({ name: entry.item['name'], agent_id, api_key });
  appendFileSync(keys_file, `${line}\n`, { mode: 0o600 });
};

const prepare = async (args: ImportArguments, options: ImportOptions): Promise<Run> => {
  const { screen } = options;
  let total_bytes: number;
  try {
    total_bytes = statSync(args.file).size;
  } catch {
    throw new Stopped(`There is no file ${args.file}.`);
  }
  const maps = readMapping(args.map);
  const admin_key = readAdminKey(args.admin_key_file);
  const bar = makeBar(screen);
  const caller = makeCaller({
    url: args.url,
    patience_ms: options.patience_ms ?? default_patience_ms,
    onWait: (ms, why) => {
      bar.clear();
      writeLine(screen, `waiting ${Math.ceil(ms / 1000)} s (${why})`);
    },
  });
  // The first call does not wait: whether a service is there at all is known at once.
  const pillars = await readPillars(makeCaller({ url: args.url, patience_ms: 0 }));
  const makeLotOf = (type: RecordType): Lot => {
    const lot: Lot = makeLot({
      type,
      uploader: makeUploader(caller, admin_key, paths[type]),
      onBad: (line, reason) => report(run, line, reason),
      onDone: (entry, outcome) => keepKey(args.keys_file, entry, outcome),
      onSent: () => {
        const what = type === 'question' ? '' : `${type}s: `;
        bar.update(Math.min(1, run.at_byte / Math.max(1, total_bytes)), what + note(lot.counts));
      },
    });
    return lot;
  };
  const lots = Object.fromEntries(record_types.map((type) => [type, makeLotOf(type)]));
  const run: Run = {
    ...{ args, screen, bar, ...maps, total_bytes, cut: 0, listed: 0, at_byte: 0 },
    lots: lots as Run['lots'],
    items: { pillars, publish: args.publish },
    agents: new Map(),
    seen: { question: 0, agent: 0, forecast: 0, resolution: 0 },
  };
  return run;
};

const countBad = ({ lots }: Run): number =>
  record_types.reduce((sum, type) => sum + lots[type].counts.bad, 0);

const summary = (run: Run): string => {
  const { lots, cut, listed } = run;
  const sentences = [`${note(lots.question.counts)}.`];
  for (const type of ['agent', 'forecast', 'resolution'] as const) {
    const { counts } = lots[type];
    if (counts.created + counts.exists + counts.bad > 0)
      sentences.push(`${type}s: ${note(counts)}.`);
  }
  if (cut > 0) sentences.push(`${cut} texts were cut to their limit.`);
  if (listed > most_listed) sentences.push(`Only the first ${most_listed} are listed.`);
  return sentences.join(' ');
};

const explain = (error: unknown, url: string): string => {
  if (error instanceof Unreachable) {
    return `Nothing answers at ${url} (${error.message}); start the service with npm start, or give --url`;
  }
  return error instanceof Error ? error.message : String(error);
};

/** Exit code: 0 everything is there, 2 some lines were bad, 1 the import could not go on. */
export const runImport = async (options: ImportOptions): Promise<number> => {
  const { screen, stop } = options;
  const args = readImportArguments(options.argv);
  if (typeof args === 'string') {
    writeLine(screen, `${args}`);
    return options.argv.includes('--help') ? 0 : 1;
  }
  let run: Run | undefined;
  try {
    run = await prepare(args, options);
    const complete = await runFile(run, stop);
    run.bar.clear();
    writeLine(screen, `${summary(run)}`);
    if (!complete) {
      screen.write('Interrupted; run the same command again to go on.\n');
      return 1;
    }
    return countBad(run) > 0 ? 2 : 0;
  } catch (error) {
    run?.bar.clear();
    if (run !== undefined) writeLine(screen, `${summary(run)}`);
    writeLine(screen, `${explain(error, args.url)}`);
    return 1;
  }
};
