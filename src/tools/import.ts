import { appendFileSync, readFileSync } from 'node:fs';
import { type Client, createClient, type Fault } from '#client/node.js';
import { exit_codes } from '../boot/commands.mjs';
import {
  type Call,
  checkUrl,
  makeProgress,
  type Progress,
  runCommand,
  Stopped,
  service_options,
  startCommand,
} from './command.js';
import { checkFile, readRecords, type SourceRecord } from './import/files.js';
import {
  type Item,
  type ItemOptions,
  makeItem,
  type RecordType,
  record_types,
  telling_columns,
  text_limits,
  typeOf,
} from './import/records.js';

/**
 * `prediction-forum import`: file → records → items → service. The file is read up to three times:
 * for questions and agents, for forecasts, and for resolutions. So each record is imported after
 * the records that it depends on, no matter how the lines are ordered.
 */

const help = `Usage: prediction-forum import FILE [options]

Imports the questions of a file into a running service, with their forecasts and outcomes.

  --url URL               the service (default: the one in this folder, else port 8080 or PORT)
  --admin-key-file FILE   file with the admin key (default .data/admin-key)
  --publish               publish the questions; without it they become drafts
  --keys FILE             write the keys of new agents to this file, one JSON object per line

FILE is UTF-8 text: NDJSON (one JSON object per line), or CSV with a header line and with commas,
semicolons or tabs between cells. The name (.csv, .tsv, .ndjson, .jsonl) or else the first character
tells which. Files of "prediction-forum export" can be imported unchanged. Fields of a record:

  question         text of 10 to ${text_limits.question} characters (required)
  closes_at        when predictions end (required)
  category         pillar; may be left out if subcategory is given
  subcategory      slug of the taxonomy
  description      up to ${text_limits.description} characters
  tags             list of tags of the taxonomy
  question_type    binary (default), multi, numeric or date
  options          list of 2 to 10 texts, for multi
  range            for numeric and date: min, max, and if needed unit, open_min, open_max
  opens_at         default: now
  resolution_date  default: closes_at
  resolution_source, resolution_url
  weight           1 to 5 (default 1)
  publish          true or false (default: whether --publish is given)
  source           origin of the question
  source_id        its id at the origin

A record without a type is a question. Records can be in any order: questions are imported
first, then agents and forecasts, then resolutions:

  {"type":"agent", "name", "model"}
                   only needed to say more about an agent than its forecasts do
  {"type":"forecast", "source", "source_id", "agent", "model", "forecast_at", "reasoning", …}
                   with prediction and confidence, or probability; for multi selected_option and
                   confidence, or probabilities; for numeric and date quantiles or cdf (lists of
                   value and p), below and above. scale says whether these numbers are percent or
                   fraction. The question must have been open at forecast_at. If there is no
                   reasoning, a note says that it was not recorded
  {"type":"resolution", "source", "source_id", "resolved_to", "known_at", "resolution_note"}
                   resolved_to is an option of the question, a list of options (as JSON or with
                   | between them), or yes, no, 1, 0 or void. outcome, correct_options,
                   outcome_value or "void": true are unambiguous alternatives. known_at is when the
                   outcome became public; only forecasts before that time count

A decided question accepts no more forecasts, so import all of its forecasts before its resolution.

Forecasts need published questions that are not decided. Their agents are registered by name and
belong to the owner of imports. Without scale, a number strictly between 0 and 1 is a fraction, and
any other number is percent. 1 is refused, because it could be either. Probabilities are percent if
their sum is 100, and fractions if it is 1. Numbers are rounded to a hundredth of a percent. In CSV,
write probabilities as one=30|other=70 or as JSON, and range, quantiles and cdf as JSON.

Times are ISO 8601, such as 2027-03-31T12:00:00Z or 2027-03-31; without a zone they are UTC. In
CSV, column names may have capitals and blanks, numbers are decimal with a point, lists are JSON or
separated by |, and an empty cell is a missing field. Other fields are ignored.

A question that already exists (same source and source_id) stays unchanged, so run the same command
again to continue after an interruption. A record without a source is identified by its content.
Texts over their limit are cut, and the command says so. Bad lines are listed with the reason, and
the other lines are imported.

Exit code: 0 everything is imported; 4 some lines were bad; 1 the import could not continue.`;

interface Numbered {
  readonly line: number;
  readonly item: Item;
}

interface Result {
  readonly index: number;
  readonly status: 'created' | 'exists' | 'refused';
  readonly agent_id?: string;
  readonly api_key?: string;
  readonly error?: string;
  readonly fields?: readonly { readonly path: string; readonly message: string }[];
}

interface Counts {
  created: number;
  exists: number;
  bad: number;
}

export interface Run {
  readonly client: Client;
  readonly progress: Progress;
  readonly counts: Readonly<Record<RecordType, Counts>>;
  /** Number of lines per reason for a refusal or a warning. */
  readonly reasons: Map<string, number>;
  /** Number of texts that were cut to their limit. */
  cut: number;
  /** File for the keys of new agents. */
  readonly keys?: string | undefined;
}

const max_items = 100;
/** Maximum size of the items of one call, in bytes. The service accepts 4 MiB. */
const max_bytes = 2_000_000;

const operations = {
  question: 'importQuestions',
  agent: 'importAgents',
  forecast: 'importPredictions',
  resolution: 'importResolutions',
} as const satisfies Record<RecordType, string>;

const reasonOf = ({ error = 'refused without a reason', fields = [] }: Result): string => {
  const parts = fields.filter(({ message }) => !error.includes(message));
  return [error, ...parts.map(({ path, message }) => `${path}: ${message}`)].join('; ');
};

/** Makes the error for a problem with the service itself. */
const stopFor = ({ status, error }: Fault): Stopped =>
  new Stopped(
    status === 401 || status === 404
      ? 'The service does not accept this admin key. See --admin-key-file.'
      : `The service could not import: ${error}`,
  );

/** Returns the result of each item, in order. Throws if the service itself has the problem. */
const send = async (
  client: Client,
  type: RecordType,
  items: readonly Numbered[],
): Promise<readonly Result[]> => {
  const body = { items: items.map(({ item }) => item) };
  const answer = await client.attempt(operations[type], { body });
  if (answer.ok) {
    const results: readonly Result[] = answer.body.results;
    if (results.length === items.length) return [...results].sort((a, b) => a.index - b.index);
    throw new Stopped('The answer of the service has the wrong number of results.');
  }
  const { status, fault } = answer;
  if (status !== 400 && status !== 413) throw stopFor(fault);
  // One item makes the whole call unreadable. Halving finds it, and the other items are imported.
  if (items.length === 1) return [{ index: 0, status: 'refused', error: fault.error }];
  const middle = items.length >> 1;
  return [
    ...(await send(client, type, items.slice(0, middle))),
    ...(await send(client, type, items.slice(middle))),
  ];
};

type Items = Iterable<Numbered> | AsyncIterable<Numbered>;

async function* inBatches(items: Items): AsyncGenerator<readonly Numbered[]> {
  let batch: Numbered[] = [];
  let bytes = 0;
  for await (const one of items) {
    const size = Buffer.byteLength(JSON.stringify(one.item));
    if (batch.length === max_items || bytes + size > max_bytes) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(one);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** For each reason, the first lines are listed. Further lines are only counted. */
const max_named = 3;

const refuse = (run: Run, type: RecordType, line: number, reason: string): void => {
  run.counts[type].bad += 1;
  note(run, line, reason);
};

const note = (run: Run, line: number, why: string): void => {
  // The reason may quote text of several lines.
  const reason = why.replace(/\s+/g, ' ');
  const count = (run.reasons.get(reason) ?? 0) + 1;
  run.reasons.set(reason, count);
  if (count <= max_named) run.progress.say(`line ${line}: ${reason}`);
};

const sayReasons = ({ reasons, progress }: Run): void => {
  for (const [reason, count] of reasons) {
    if (count > max_named) progress.say(`${count.toLocaleString('en')} lines: ${reason}`);
  }
};

const describe = ({ created, exists, bad }: Counts): string =>
  `${created} created, ${exists} there already, ${bad} bad`;

/** Sends items of one type together, and counts the results. */
export const upload = async (run: Run, type: RecordType, items: Items): Promise<void> => {
  const counts = run.counts[type];
  for await (const batch of inBatches(items)) {
    for (const [at, result] of (await send(run.client, type, batch)).entries()) {
      const { line, item } = batch[at] as Numbered;
      if (result.status === 'refused') refuse(run, type, line, reasonOf(result));
      else counts[result.status] += 1;
      const { agent_id, api_key } = result;
      if (run.keys !== undefined && api_key !== undefined) {
        // Keys are shown once, so they are written to the disk before the next call.
        const key = { name: item['name'], agent_id, api_key };
        appendFileSync(run.keys, `${JSON.stringify(key)}\n`, { mode: 0o600 });
      }
    }
    run.progress.show(`${type}s: ${describe(counts)}`);
  }
};

const default_patience_ms = 60_000;
const call_ms = 30_000;

const readPillars = async (client: Client): Promise<ReadonlyMap<string, string>> => {
  // The first call does not wait, so a missing service is noticed immediately.
  const answer = await client.attempt('getTaxonomy', { patience_ms: 0 });
  if (!answer.ok) throw stopFor(answer.fault);
  return new Map(
    answer.body.flatMap(({ slug, subcategories }) => subcategories.map((one) => [one.slug, slug])),
  );
};

interface Source extends ItemOptions {
  readonly file: string;
  readonly stop: AbortSignal | undefined;
}

/** Yields the readable records of a file, with their types. */
async function* readTyped({ file, stop }: Source, onProblem = (_: number, __: string) => {}) {
  for await (const entry of readRecords(file)) {
    stop?.throwIfAborted();
    const type = 'problem' in entry ? entry : typeOf(entry.record);
    if (typeof type === 'object') onProblem(entry.line, type.problem);
    else if ('record' in entry) yield { ...entry, type };
  }
}

const sendFile = async (run: Run, source: Source): Promise<void> => {
  const seen = new Set<RecordType>();
  /** Agents by name: from the agent's own line, or else from the line of its first forecast. */
  const agents = new Map<string, Numbered>();

  const itemOf = (line: number, type: RecordType, record: SourceRecord): Numbered => {
    const { item, notices } = makeItem(type, record, source);
    for (const notice of notices) run.progress.say(`line ${line}: ${notice}`);
    run.cut += notices.length;
    return { line, item };
  };
  /** An agent's own line has more fields than a forecast, so it takes precedence. */
  const noteAgent = (line: number, record: SourceRecord, is_own: boolean): void => {
    const named = is_own ? record : { ...record, name: record['agent'] };
    const { item } = makeItem('agent', named, source);
    const name = String(item['name']);
    if (!is_own && (agents.has(name) || item['name'] === undefined)) return;
    agents.set(name, { line, item: { model: 'imported', ...item } });
  };
  /** By question: the time at which the question's outcome became public. */
  const known = new Map<string, string>();
  const keyOf = (item: Item): string => `${item['source']}\n${item['source_id']}`;
  const noteKnown = (record: SourceRecord): void => {
    const { item } = makeItem('resolution', record, source);
    if (item['known_at'] !== undefined) known.set(keyOf(item), String(item['known_at']));
  };
  const warnOfLate = ({ line, item }: Numbered): void => {
    const [at, end] = [item['forecast_at'], known.get(keyOf(item))];
    if (at === undefined || end === undefined || Date.parse(String(at)) < Date.parse(end)) return;
    note(run, line, 'the forecast is not before known_at of its question and will not count');
  };
  async function* readQuestions(): AsyncGenerator<Numbered> {
    const onProblem = (line: number, problem: string) => refuse(run, 'question', line, problem);
    for await (const { line, type, record } of readTyped(source, onProblem)) {
      seen.add(type);
      if (type === 'question') yield itemOf(line, type, record);
      else if (type === 'resolution') noteKnown(record);
      else noteAgent(line, record, type === 'agent');
    }
  }
  async function* readOthers(wanted: RecordType): AsyncGenerator<Numbered> {
    let before: SourceRecord | undefined;
    let held: Numbered | undefined;
    for await (const { line, type, record } of readTyped(source)) {
      if (type !== wanted) continue;
      // Exports have each revision of a decision, in order. The last one counts.
      if (held !== undefined && !isRevisionOf(record, before)) yield held;
      held = itemOf(line, type, record);
      if (type === 'forecast') warnOfLate(held);
      before = record;
    }
    if (held !== undefined) yield held;
  }

  await upload(run, 'question', readQuestions());
  source.stop?.throwIfAborted();
  await upload(run, 'agent', agents.values());
  if (seen.has('forecast')) await upload(run, 'forecast', readOthers('forecast'));
  if (!seen.has('resolution')) return;
  const { bad } = run.counts.forecast;
  run.progress.say(
    bad === 0
      ? 'Resolutions come next. The questions that they decide accept no more forecasts.'
      : `Resolutions come next, although ${bad} forecasts were refused. Decided questions accept no more forecasts.`,
  );
  await upload(run, 'resolution', readOthers('resolution'));
};

const isRevisionOf = (record: SourceRecord, before: SourceRecord | undefined): boolean =>
  record['decided_by'] !== undefined && record['question_id'] === before?.['question_id'];

const summarise = ({ counts, cut }: Run): string => {
  const sentences = record_types
    .filter((type) => type === 'question' || Object.values(counts[type]).some(Boolean))
    .map((type) => `${type}s: ${describe(counts[type])}.`);
  if (cut > 0) sentences.push(`${cut} texts were cut to their limit.`);
  return sentences.join(' ');
};

export const makeCounts = (): Pick<Run, 'counts' | 'reasons' | 'cut'> => {
  const none = () => ({ created: 0, exists: 0, bad: 0 });
  const counts = { question: none(), agent: none(), forecast: none(), resolution: none() };
  return { counts, reasons: new Map(), cut: 0 };
};

export const runImport = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    takes: [1, 1],
    options: {
      ...service_options,
      'admin-key-file': { type: 'string', default: '.data/admin-key' },
      publish: { type: 'boolean', default: false },
      keys: { type: 'string' },
    },
    async work({ url, 'admin-key-file': key_file, publish, keys }, [file = ''], call) {
      const progress = makeProgress(call.screen);
      const client = createClient({
        base_url: checkUrl(url),
        timeout_ms: call_ms,
        patience_ms: call.patience_ms ?? default_patience_ms,
        headers: { 'x-admin-key': readFileSync(key_file, 'utf8').trim() },
        onRetry: ({ wait_ms, why }) =>
          progress.say(`waiting ${Math.ceil(wait_ms / 1_000)} s (${why})`),
      });
      const pillars = await readPillars(client);
      const run: Run = { client, progress, ...makeCounts(), keys };
      try {
        const source = { file, publish, pillars, stop: call.stop };
        if (await checkFile(file, telling_columns)) await sendFile(run, source);
        else progress.say('The file is empty.');
      } finally {
        sayReasons(run);
        progress.say(summarise(run));
      }
      const has_bad = record_types.some((type) => run.counts[type].bad > 0);
      const { ok, partial } = exit_codes;
      return { code: has_bad ? partial : ok, result: { ...run.counts, cut: run.cut } };
    },
  });

await startCommand(import.meta.filename, runImport, true);
