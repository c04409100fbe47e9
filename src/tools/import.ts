import { appendFileSync, readFileSync } from 'node:fs';
import { type Client, createClient, type Fault } from '../client/node.js';
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
import {
  type Item,
  makeItem,
  type RecordType,
  record_types,
  text_limits,
  typeOf,
} from './import/items.js';
import { readRecords, type SourceRecord } from './import/records.js';

/**
 * `npm run import`: file → records → items → service. The file is read once for questions and
 * agents, and again for forecasts and for resolutions where it has any, so that what depends on
 * something else comes after it, in whatever order the lines stand.
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

/** Items of one type on their way to the service: gathered, sent together, counted. */
interface Upload {
  readonly counts: Readonly<Record<'created' | 'exists' | 'bad', number>>;
  add(entry: Numbered): Promise<void>;
  /** Counts an item that cannot be sent. */
  refuse(line: number, reason: string): void;
  flush(): Promise<void>;
}

interface UploadParts {
  readonly type: RecordType;
  readonly client: Client;
  readonly onBad: (line: number, reason: string) => void;
  readonly onKey?: (key: { name: unknown; agent_id: string | undefined; api_key: string }) => void;
  readonly onSent?: () => void;
}

const most_items = 100;
/** Bytes of the items of one call; the service takes 4 MiB. */
const most_bytes = 2_000_000;

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

/** Where the service is the reason. */
const stopFor = ({ status, error }: Fault): Stopped =>
  new Stopped(
    status === 401 || status === 404
      ? 'The service does not accept this admin key; see --admin-key-file.'
      : `The service could not import: ${error}`,
  );

/** The result of each item, in their order. Throws where the service is the reason. */
const send = async (
  parts: Pick<UploadParts, 'client' | 'type'>,
  items: readonly Numbered[],
): Promise<readonly Result[]> => {
  if (items.length === 0) return [];
  const body = { items: items.map(({ item }) => item) };
  const answer = await parts.client.attempt(operations[parts.type], { body });
  if (answer.ok) {
    const results: readonly Result[] = answer.body.results;
    if (results.length === items.length) return [...results].sort((a, b) => a.index - b.index);
    throw new Stopped('The service answered without a result for each item.');
  }
  const { status, fault } = answer;
  if (status !== 400 && status !== 413) throw stopFor(fault);
  // One item makes the whole call unreadable; halves find it, and the others still go in.
  if (items.length === 1) return [{ index: 0, status: 'refused', error: fault.error }];
  const middle = items.length >> 1;
  return [
    ...(await send(parts, items.slice(0, middle))),
    ...(await send(parts, items.slice(middle))),
  ];
};

export const makeUpload = (parts: UploadParts): Upload => {
  const counts = { created: 0, exists: 0, bad: 0 };
  let batch: Numbered[] = [];
  let bytes = 0;
  const refuse = (line: number, reason: string): void => {
    counts.bad += 1;
    parts.onBad(line, reason);
  };
  const flush = async (): Promise<void> => {
    const sending = batch;
    batch = [];
    bytes = 0;
    for (const [at, result] of (await send(parts, sending)).entries()) {
      const entry = sending[at] as Numbered;
      if (result.status === 'refused') refuse(entry.line, reasonOf(result));
      else counts[result.status] += 1;
      const { agent_id, api_key } = result;
      if (api_key !== undefined) parts.onKey?.({ name: entry.item['name'], agent_id, api_key });
    }
    parts.onSent?.();
  };
  return {
    counts,
    refuse,
    flush,
    async add(entry) {
      const size = Buffer.byteLength(JSON.stringify(entry.item));
      if (batch.length === most_items || bytes + size > most_bytes) await flush();
      batch.push(entry);
      bytes += size;
    },
  };
};

interface Run {
  readonly publish: boolean;
  readonly progress: Progress;
  readonly stop: AbortSignal | undefined;
  readonly file: string;
  readonly uploads: Readonly<Record<RecordType, Upload>>;
  readonly pillars: ReadonlyMap<string, string>;
  /** What is said of an agent, by a line of its own or by its forecasts. */
  readonly agents: Map<string, Numbered>;
  readonly seen: Set<RecordType>;
  cut: number;
}

const default_patience_ms = 60_000;
const call_ms = 30_000;

const readPillars = async (client: Client): Promise<ReadonlyMap<string, string>> => {
  // The first call does not wait: whether a service is there at all is known at once.
  const answer = await client.attempt('getTaxonomy', { patience_ms: 0 });
  if (!answer.ok) throw stopFor(answer.fault);
  return new Map(
    answer.body.flatMap(({ slug, subcategories }) => subcategories.map((one) => [one.slug, slug])),
  );
};

const takeItem = async (run: Run, line: number, type: RecordType, record: SourceRecord) => {
  const { item, notices } = makeItem(type, record, run);
  for (const notice of notices) {
    run.cut += 1;
    run.progress.say(`line ${line}: ${notice}`);
  }
  await run.uploads[type].add({ line, item });
};

/** A line of its own says more of an agent than a forecast does. */
const noteAgent = (run: Run, line: number, record: SourceRecord, is_own: boolean): void => {
  const named = is_own ? record : { ...record, name: record['agent'] };
  const { item } = makeItem('agent', named, run);
  const name = String(item['name']);
  if (!is_own && (run.agents.has(name) || item['name'] === undefined)) return;
  run.agents.set(name, { line, item: { model: 'imported', ...item } });
};

type Take = (line: number, type: RecordType, record: SourceRecord) => Promise<void> | void;

const readFile = async (run: Run, take: Take, refuse: Upload['refuse'] = () => undefined) => {
  for await (const entry of readRecords(run.file)) {
    run.stop?.throwIfAborted();
    const type = 'problem' in entry ? entry : typeOf(entry.record);
    if (typeof type === 'object') refuse(entry.line, type.problem);
    else if ('record' in entry) await take(entry.line, type, entry.record);
  }
};

const sendFile = async (run: Run): Promise<void> => {
  const { uploads, seen } = run;
  const takeFirst: Take = (line, type, record) => {
    seen.add(type);
    if (type === 'question') return takeItem(run, line, type, record);
    if (type !== 'resolution') noteAgent(run, line, record, type === 'agent');
  };
  await readFile(run, takeFirst, uploads.question.refuse);
  await uploads.question.flush();
  for (const agent of run.agents.values()) {
    run.stop?.throwIfAborted();
    await uploads.agent.add(agent);
  }
  await uploads.agent.flush();
  for (const wanted of ['forecast', 'resolution'] as const) {
    if (!seen.has(wanted)) continue;
    await readFile(run, (line, type, record) =>
      type === wanted ? takeItem(run, line, type, record) : undefined,
    );
    await uploads[wanted].flush();
  }
};

const describe = ({ created, exists, bad }: Upload['counts']): string =>
  `${created} created, ${exists} there already, ${bad} bad`;

const summarise = ({ uploads, cut }: Run): string => {
  const sentences = record_types
    .filter((type) => type === 'question' || Object.values(uploads[type].counts).some(Boolean))
    .map((type) => `${type}s: ${describe(uploads[type].counts)}.`);
  if (cut > 0) sentences.push(`${cut} texts were cut to their limit.`);
  return sentences.join(' ');
};

export const runImport = (call: Call): Promise<number> =>
  runCommand(call, {
    ...{ help, takes_one: true },
    options: {
      ...service_options,
      'admin-key-file': { type: 'string', default: '.data/admin-key' },
      publish: { type: 'boolean', default: false },
      keys: { type: 'string' },
    },
    async work({ url, 'admin-key-file': key_file, publish, keys }, file) {
      const progress = makeProgress(call.screen);
      const client = createClient({
        ...{ base_url: checkUrl(url), timeout_ms: call_ms },
        patience_ms: call.patience_ms ?? default_patience_ms,
        headers: { 'x-admin-key': readFileSync(key_file, 'utf8').trim() },
        onRetry: ({ wait_ms, why }) =>
          progress.say(`waiting ${Math.ceil(wait_ms / 1_000)} s (${why})`),
      });
      const makeUploadOf = (type: RecordType): Upload => {
        const upload: Upload = makeUpload({
          ...{ type, client },
          onBad: (line, reason) => progress.say(`line ${line}: ${reason}`),
          // Keys are shown once, so they are on the disk before the next call.
          onKey: (key) => {
            if (keys !== undefined)
              appendFileSync(keys, `${JSON.stringify(key)}\n`, { mode: 0o600 });
          },
          onSent: () => progress.show(`${type}s: ${describe(upload.counts)}`),
        });
        return upload;
      };
      const [question, agent] = [makeUploadOf('question'), makeUploadOf('agent')];
      const [forecast, resolution] = [makeUploadOf('forecast'), makeUploadOf('resolution')];
      const uploads = { question, agent, forecast, resolution };
      const pillars = await readPillars(client);
      const given = { publish, progress, stop: call.stop, file, uploads, pillars };
      const run: Run = { ...given, agents: new Map(), seen: new Set(), cut: 0 };
      try {
        await sendFile(run);
      } finally {
        progress.say(summarise(run));
      }
      return record_types.some((type) => uploads[type].counts.bad > 0) ? 2 : 0;
    },
  });

await startCommand(import.meta.filename, runImport, true);
