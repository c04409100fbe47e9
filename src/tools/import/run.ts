import { appendFileSync, readFileSync, statSync } from 'node:fs';
import { type Client, createClient, NoAnswer } from '../../client/node.js';
import { readArguments } from '../shared/arguments.js';
import { makeProgress, type Progress, type Screen, writeLine } from '../shared/terminal.js';
import { makeItem, type RecordType, record_types, text_limits, typeOf } from './items.js';
import { kindOf, readRecords, type SourceRecord } from './records.js';
import {
  type Counts,
  makeUpload,
  type Numbered,
  type Result,
  Stopped,
  stopFor,
  type Upload,
} from './upload.js';

/**
 * The whole import: file → records → items → service, with a bar, a list and a summary. The file is
 * read once for questions and agents, and again for forecasts and for resolutions where it has any,
 * so that what depends on something else comes after it, in whatever order the lines stand.
 */

const help = `Usage: npm run import -- FILE [options]

Puts the questions of a file into a running service, and forecasts and outcomes with them.

  --url URL               the service (default: the one of this folder, else port 8080 or PORT)
  --admin-key-file FILE   file with the admin key (default .data/admin-key)
  --publish               publish the questions; without it they become drafts
  --keys FILE             write the keys of new agents there, one JSON object a line

FILE is NDJSON (one JSON object a line) or CSV with a header line; .csv, .ndjson and .jsonl
say which, else the first character does. Fields of a record:

  question         text of 10 to ${text_limits.question} characters (required)
  closes_at        when predictions end (required)
  category         pillar; may be left out where subcategory is given
  subcategory      slug of the taxonomy
  description      up to ${text_limits.description} characters
  tags             list of tags of the taxonomy
  question_type    binary (default) or multi
  options          list of 2 to 10 texts, for multi
  opens_at         default: now
  resolution_date  default: closes_at
  resolution_source, resolution_url
  weight           1 to 5 (default 1)
  publish          true or false (default: whether --publish is given)
  source           where the question comes from
  source_id        its id there

A record with a type is something else, in any order within the file; questions go in first, then
agents and forecasts, then resolutions:

  {"type":"agent", "name", "model"}
                   only to say more of an agent than forecasts do
  {"type":"forecast", "source", "source_id", "agent", "model", "forecast_at", "reasoning", …}
                   with prediction and confidence, or probability; for multi selected_option and
                   confidence, or probabilities; forecast_at lies in the time in which the question
                   was open; without reasoning a note says that none was recorded
  {"type":"resolution", "source", "source_id", "resolved_to", "resolution_note"}
                   resolved_to is 1 or 0, an option (several by |), or void

Forecasts need published questions that are not decided. Their agents are registered by name and
belong to the owner of imports. Numbers are percent from 0 to 100, or fractions between 0 and 1. In CSV, probabilities are written one=30|other=70.

Times are ISO 8601, such as 2027-03-31T12:00:00Z or 2027-03-31; without a zone they are UTC. In
CSV, lists are separated by | and an empty cell is an absent field. Other fields are ignored.

A question that is already there, by source and source_id, is left as it is: run the same
command again to go on after an interruption. A record without a source is known by its content.
Texts over their limit are cut, which is reported. Bad lines are listed with the reason, and the
rest goes in.

Exit code: 0 everything is there; 2 some lines were bad; 1 the import could not go on.`;

export interface ImportArguments {
  readonly file: string;
  readonly url: string;
  readonly admin_key_file: string;
  readonly publish: boolean;
  /** Where the keys of new agents are written. */
  readonly keys_file: string | null;
}

/** The arguments, or a sentence that says what is wrong with them. */
export const readImportArguments = (argv: readonly string[]): ImportArguments | string => {
  const read = readArguments({
    ...{ argv, help, takes_one: true },
    options: {
      'admin-key-file': { type: 'string', default: '.data/admin-key' },
      publish: { type: 'boolean', default: false },
      keys: { type: 'string' },
    },
  });
  if (typeof read === 'string') return read;
  const { values, url, argument: file } = read;
  const { 'admin-key-file': admin_key_file, publish, keys } = values;
  return {
    ...{ file, url, admin_key_file, publish },
    keys_file: keys ?? null,
  };
};

export interface ImportOptions {
  readonly argv: readonly string[];
  readonly screen: Screen;
  /** Set while the person at the terminal wants it to end. */
  readonly stop?: AbortSignal;
  /** How long the service may be away before the import gives up. */
  readonly patience_ms?: number;
}

interface Run {
  readonly args: ImportArguments;
  readonly screen: Screen;
  readonly progress: Progress;
  readonly uploads: Readonly<Record<RecordType, Upload>>;
  readonly pillars: ReadonlyMap<string, string>;
  readonly total_bytes: number;
  /** What is said of an agent, by a line of its own or by its forecasts. */
  readonly agents: Map<string, Numbered>;
  /** Records of each type in the file. */
  readonly seen: Record<RecordType, number>;
  cut: number;
  listed: number;
  at_byte: number;
}

const default_patience_ms = 60_000;
const call_ms = 30_000;
/** Notices and bad lines beyond these are counted, not listed. */
const most_listed = 200;

const readPillars = async (client: Client): Promise<ReadonlyMap<string, string>> => {
  // The first call does not wait: whether a service is there at all is known at once.
  const answer = await client.attempt('getTaxonomy', { patience_ms: 0 });
  if (!answer.ok) throw stopFor(answer.fault);
  return new Map(
    answer.body.flatMap(({ slug, subcategories }) => subcategories.map((one) => [one.slug, slug])),
  );
};

const readAdminKey = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new Stopped(`The admin key cannot be read from ${file}; see --admin-key-file.`);
  }
};

const note = ({ created, exists, bad }: Counts): string =>
  `${created} created, ${exists} there already, ${bad} bad`;

const report = (run: Pick<Run, 'progress' | 'screen' | 'listed'>, line: number, text: string) => {
  run.listed += 1;
  if (run.listed > most_listed) return;
  run.progress.clear();
  writeLine(run.screen, `line ${line}: ${text}`);
};

const takeItem = async (run: Run, line: number, type: RecordType, record: SourceRecord) => {
  const upload = run.uploads[type];
  const made = makeItem(type, record, { pillars: run.pillars, publish: run.args.publish });
  if ('problems' in made) return upload.refuse(line, made.problems.join('; '));
  for (const notice of made.notices) {
    run.cut += 1;
    report(run, line, notice);
  }
  const { model: _, points: __, ...item } = made.item;
  await upload.add({ line, item });
};

/** A line of its own says more of an agent than a forecast does. */
const noteAgent = (run: Run, line: number, record: SourceRecord, is_own: boolean): void => {
  const { pillars, args } = run;
  const named = is_own ? record : { ...record, name: record['agent'] };
  const made = makeItem('agent', named, { pillars, publish: false });
  if ('problems' in made) {
    if (is_own) run.uploads.agent.refuse(line, made.problems.join('; '));
    return;
  }
  const name = String(made.item['name']);
  if (!is_own && run.agents.has(name)) return;
  run.agents.set(name, { line, item: { model: 'imported', ...made.item } });
};

type Take = (line: number, type: RecordType, record: SourceRecord) => Promise<void> | void;

/** One reading of the file; false when it was interrupted. */
const readFile = async (
  run: Run,
  stop: AbortSignal | undefined,
  { is_first, take }: { readonly is_first: boolean; readonly take: Take },
): Promise<boolean> => {
  const { file } = run.args;
  for await (const entry of readRecords(file, await kindOf(file))) {
    if (stop?.aborted) return false;
    run.at_byte = entry.at_byte;
    const type = 'problem' in entry ? entry : typeOf(entry.record);
    if (typeof type === 'object') {
      if (is_first) run.uploads.question.refuse(entry.line, type.problem);
    } else if ('record' in entry) await take(entry.line, type, entry.record);
  }
  run.at_byte = run.total_bytes;
  return true;
};

/** Sends everything that can be read; returns whether the end of the file was reached. */
const runFile = async (run: Run, stop: AbortSignal | undefined): Promise<boolean> => {
  const { uploads, seen } = run;
  const takeFirst: Take = (line, type, record) => {
    seen[type] += 1;
    if (type === 'question') return takeItem(run, line, type, record);
    if (type !== 'resolution') noteAgent(run, line, record, type === 'agent');
  };
  if (!(await readFile(run, stop, { is_first: true, take: takeFirst }))) return false;
  await uploads.question.flush();
  for (const agent of run.agents.values()) {
    if (stop?.aborted) return false;
    await uploads.agent.add(agent);
  }
  if (run.agents.size > 0) await uploads.agent.flush();
  for (const wanted of ['forecast', 'resolution'] as const) {
    if (seen[wanted] === 0) continue;
    const take: Take = (line, type, record) =>
      type === wanted ? takeItem(run, line, type, record) : undefined;
    if (!(await readFile(run, stop, { is_first: false, take }))) return false;
    await uploads[wanted].flush();
  }
  return true;
};

/** Keys are shown once, so they are on the disk before the next call. */
const keepKey = (keys_file: string | null, entry: Numbered, result: Result): void => {
  const { agent_id, api_key } = result;
  if (keys_file === null || api_key === undefined) return;
  const line = JSON.stringify({ name: entry.item['name'], agent_id, api_key });
  appendFileSync(keys_file, `${line}\n`, { mode: 0o600 });
};

const prepare = async (args: ImportArguments, options: ImportOptions): Promise<Run> => {
  const { screen, patience_ms = default_patience_ms } = options;
  let total_bytes: number;
  try {
    total_bytes = statSync(args.file).size;
  } catch {
    throw new Stopped(`There is no file ${args.file}.`);
  }
  const progress = makeProgress(screen, '[{bar}] {percentage} %  {note}');
  const client = createClient({
    ...{ base_url: args.url, patience_ms, timeout_ms: call_ms },
    headers: { 'x-admin-key': readAdminKey(args.admin_key_file) },
    onRetry: ({ wait_ms, why }) => {
      progress.clear();
      writeLine(screen, `waiting ${Math.ceil(wait_ms / 1_000)} s (${why})`);
    },
  });
  const makeUploadOf = (type: RecordType): Upload => {
    const upload: Upload = makeUpload({
      ...{ type, client },
      onBad: (line, reason) => report(run, line, reason),
      onDone: (entry, result) => keepKey(args.keys_file, entry, result),
      onSent: () => {
        const what = type === 'question' ? '' : `${type}s: `;
        progress.update(run.at_byte, total_bytes, { note: what + note(upload.counts) });
      },
    });
    return upload;
  };
  const run: Run = {
    ...{ args, screen, progress, total_bytes, cut: 0, listed: 0, at_byte: 0 },
    pillars: await readPillars(client),
    uploads: {
      question: makeUploadOf('question'),
      agent: makeUploadOf('agent'),
      forecast: makeUploadOf('forecast'),
      resolution: makeUploadOf('resolution'),
    },
    agents: new Map(),
    seen: { question: 0, agent: 0, forecast: 0, resolution: 0 },
  };
  return run;
};

const summary = ({ uploads, cut, listed }: Run): string => {
  const sentences = [`${note(uploads.question.counts)}.`];
  for (const type of ['agent', 'forecast', 'resolution'] as const) {
    const { counts } = uploads[type];
    if (counts.created + counts.exists + counts.bad > 0)
      sentences.push(`${type}s: ${note(counts)}.`);
  }
  if (cut > 0) sentences.push(`${cut} texts were cut to their limit.`);
  if (listed > most_listed) sentences.push(`Only the first ${most_listed} are listed.`);
  return sentences.join(' ');
};

const explain = (error: unknown, url: string): string => {
  if (error instanceof NoAnswer) {
    return `Nothing answers at ${url}; start the service with npm start, or give --url`;
  }
  return error instanceof Error ? error.message : String(error);
};

/** Exit code: 0 everything is there, 2 some lines were bad, 1 the import could not go on. */
export const runImport = async (options: ImportOptions): Promise<number> => {
  const { screen, stop, argv } = options;
  const args = readImportArguments(argv);
  if (typeof args === 'string') {
    writeLine(screen, args);
    return argv.includes('--help') ? 0 : 1;
  }
  let run: Run | undefined;
  try {
    run = await prepare(args, options);
    const complete = await runFile(run, stop);
    run.progress.end();
    writeLine(screen, summary(run));
    if (!complete) {
      screen.write('Interrupted; run the same command again to go on.\n');
      return 1;
    }
    return record_types.some((type) => run?.uploads[type].counts.bad) ? 2 : 0;
  } catch (error) {
    run?.progress.end();
    if (run !== undefined) writeLine(screen, summary(run));
    writeLine(screen, explain(error, args.url));
    return 1;
  }
};
