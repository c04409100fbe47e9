import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { mediaType, redirectFault, retryAfterMs } from '#client/calls.js';
import { format_names } from '../features/exports/schema.js';
import { writeWhole } from '../process/embedded/data-dir.js';
import {
  type Call,
  checkUrl,
  makeProgress,
  type Progress,
  runCommand,
  Stopped,
  service_options,
  startCommand,
  unreachable,
  wrongUsage,
} from './command.js';

/**
 * `prediction-forum export`: service → FILE.part → compared with its manifest → FILE.
 * FILE.part.json says which export the part belongs to. An interrupted export continues at the
 * length of the part, because every byte of it came from the service, in order.
 */

const subjects = [
  'predictions',
  'revisions',
  'questions',
  'resolutions',
  'comments',
  'consensus-history',
];

const named = new Intl.ListFormat('en', { type: 'disjunction' }).format(subjects);

const help = `Usage: prediction-forum export SUBJECT [--out FILE] [--format FORMAT] [options]

Writes data of a running service into a file. SUBJECT is ${named}.

  --out FILE        the file (default SUBJECT.FORMAT)
  --format FORMAT   ${format_names.join(', ')} (default ndjson)
  --url URL         the service (default: the one in this folder, else port 8080 or PORT)
  --force           replace an existing file

Which rows:

  --since TIME, --until TIME        when the prediction was made; ISO 8601 with a zone
  --question-id ID, --category SLUG, --subcategory SLUG, --model-family NAME
  --status STATUS                   open, closed, resolved or voided (predictions)
  --as-of TIME                      as it was known at this time
  --snapshot TIME                   rows recorded before TIME; the same TIME gives the same file
  --excel                           CSV with ; between cells, as Excel opens it in much of Europe
  --names                           with ids and names of agents, if they are public

During the export the file is called FILE.part, and FILE.part.json belongs to it. If it is
interrupted, run the same command again. It continues, and the finished file is the same to the last
byte. It is checked against the SHA-256 that the service reports. FILE.manifest.json describes it.

Exit code: 0 the file is complete and correct; 1 it is not; 2 and 3 as for every command.`;

const text = { type: 'string' } as const;

const filters = {
  since: text,
  until: text,
  'question-id': text,
  category: text,
  subcategory: text,
  'model-family': text,
  status: text,
  'as-of': text,
};

interface Part {
  readonly address: string;
  readonly query: Readonly<Record<string, string>>;
  readonly snapshot: string;
}

interface Download {
  readonly file: string;
  readonly address: string;
  readonly query: Readonly<Record<string, string>>;
  /** The snapshot that was given on the command line. */
  readonly snapshot: string | undefined;
  readonly stop: AbortSignal | undefined;
  readonly patience_ms: number;
  readonly progress: Progress;
}

const partFile = (file: string): string => `${file}.part`;
const noteFile = (file: string): string => `${file}.part.json`;

const readPart = (file: string): Part | null =>
  existsSync(partFile(file)) && existsSync(noteFile(file))
    ? (JSON.parse(readFileSync(noteFile(file), 'utf8')) as Part)
    : null;

/** The note (FILE.part.json) is written first. A part without a note belongs to no export. */
const beginPart = (file: string, part: Part): void => {
  rmSync(partFile(file), { force: true });
  writeWhole(noteFile(file), `${JSON.stringify(part, null, 2)}\n`, 0o644);
};

const sentenceOf = async (answer: Response): Promise<string> => {
  try {
    const { error, fields = [] } = (await answer.json()) as {
      error: string;
      fields?: { path: string; message: string }[];
    };
    return [error, ...fields.map((field) => `${field.path}: ${field.message}`)].join(' ');
  } catch {
    return `status ${answer.status}`;
  }
};

const causeOf = (error: unknown): string => {
  const { cause, message } = error as Error & { cause?: { code?: string } };
  return cause?.code ?? message;
};

/** Repeats the request until there is a final answer. Waits as long as the service says. */
const request = async (url: string, download: Download, max_ms = Infinity): Promise<Response> => {
  const { stop, patience_ms, progress } = download;
  const give_up_ms = performance.now() + Math.min(patience_ms, max_ms);
  const { origin } = new URL(url);
  for (;;) {
    const signal = stop ?? null;
    const answer = await fetch(url, { signal, redirect: 'manual' }).catch((error: unknown) => {
      stop?.throwIfAborted();
      return causeOf(error);
    });
    if (typeof answer !== 'string' && answer.ok) {
      if (mediaType(answer) !== 'text/html') return answer;
      throw new Stopped(`${origin} answers with a page, not with an export. Check --url.`);
    }
    if (typeof answer !== 'string' && answer.status >= 300 && answer.status < 400) {
      const target = url.slice(origin.length);
      throw new Stopped(redirectFault(answer, { method: 'GET', url, target }).error);
    }
    const why = typeof answer === 'string' ? answer : await sentenceOf(answer);
    if (typeof answer !== 'string' && answer.status !== 429 && answer.status !== 503) {
      throw new Stopped(`The service refused the export: ${why}`);
    }
    const wait_ms = typeof answer === 'string' ? 500 : retryAfterMs(answer.headers) || 1_000;
    if (performance.now() + wait_ms > give_up_ms) {
      throw unreachable(
        `${origin} sends no export (${why}). If the service is elsewhere, give its --url.`,
      );
    }
    progress.say(`waiting ${Math.ceil(wait_ms / 1_000)} s for ${origin} (${why})`);
    await delay(wait_ms, undefined, stop === undefined ? {} : { signal: stop });
  }
};

/** Appends the received bytes; false if the connection broke before the end. */
const receive = async (answer: Response, download: Download, begun: number): Promise<boolean> => {
  const { file, stop, progress } = download;
  const rows = answer.headers.get('x-export-rows');
  const handle = await open(partFile(file), 'a');
  let bytes = begun;
  try {
    for await (const piece of answer.body ?? []) {
      stop?.throwIfAborted();
      await handle.writeFile(piece as Uint8Array);
      bytes += (piece as Uint8Array).byteLength;
      progress.show(`${(bytes / 1e6).toFixed(1)} MB${rows === null ? '' : ` of ${rows} rows`}`);
    }
    return true;
  } catch (error) {
    // File errors have a syscall and are final. Connection errors are temporary.
    if (typeof (error as { syscall?: unknown }).syscall === 'string') throw error;
    stop?.throwIfAborted();
    return false;
  } finally {
    await handle.sync();
    await handle.close();
  }
};

const partBytes = async (file: string): Promise<{ bytes: number; sha256: string }> => {
  const hash = createHash('sha256');
  let bytes = 0;
  if (existsSync(partFile(file))) {
    for await (const piece of createReadStream(partFile(file))) {
      hash.update(piece as Buffer);
      bytes += (piece as Buffer).byteLength;
    }
  }
  return { bytes, sha256: hash.digest('hex') };
};

const withQuery = (address: string, query: Readonly<Record<string, string>>): string =>
  `${address}?${new URLSearchParams(query)}`;

/** Limit for the first answer. It is short, because the address may be wrong. */
const first_patience_ms = 10_000;

/** Reads an export into its part, and continues after a broken connection. */
const fetchPart = async (download: Download, known: Part | null): Promise<Part> => {
  const { file, address, query, progress } = download;
  let part = known;
  for (;;) {
    const { bytes } = part === null ? { bytes: 0 } : await partBytes(file);
    const snapshot = part?.snapshot ?? download.snapshot;
    const place = { count: 'true', skip_bytes: String(bytes), ...(snapshot && { snapshot }) };
    const max_ms = part === null ? first_patience_ms : Infinity;
    const answer = await request(withQuery(address, { ...query, ...place }), download, max_ms);
    if (part === null) {
      part = { address, query, snapshot: answer.headers.get('x-export-snapshot') ?? '' };
      beginPart(file, part);
    }
    if (await receive(answer, download, bytes)) return part;
    progress.say('The connection broke. Continuing.');
    await delay(500);
  }
};

interface Manifest {
  readonly rows: number;
  readonly file: { readonly bytes: number; readonly sha256: string };
}

/** Returns the manifest of the export; null if the part does not match it. */
const compare = async (download: Download, { snapshot }: Part): Promise<Manifest | null> => {
  const { address, query, file } = download;
  const url = withQuery(`${address}/manifest`, { ...query, snapshot });
  const manifest = (await (await request(url, download)).json()) as Manifest;
  const { bytes, sha256 } = await partBytes(file);
  return bytes === manifest.file.bytes && sha256 === manifest.file.sha256 ? manifest : null;
};

/** Exports into the file, and returns its rows, bytes and SHA-256. */
const exportFile = async (download: Download) => {
  const { file, address, query, snapshot, progress } = download;
  const known = readPart(file);
  if (known !== null) {
    const is_same =
      JSON.stringify([known.address, known.query]) === JSON.stringify([address, query]);
    if (!is_same || (snapshot ?? known.snapshot) !== known.snapshot) {
      throw new Stopped(
        `${partFile(file)} belongs to another export. Run that one again, or delete the file.`,
      );
    }
    progress.say(`Continuing the export of ${known.snapshot}.`);
  }
  let manifest = await compare(download, await fetchPart(download, known));
  if (manifest === null) {
    // A moderator hid something meanwhile, so the old and the new bytes do not fit together.
    progress.say('The rows have changed since the export started. Starting again.');
    manifest = await compare(download, await fetchPart(download, null));
  }
  if (manifest === null) {
    rmSync(noteFile(file));
    throw new Stopped('The SHA-256 of the file is wrong. Run the command again.');
  }
  renameSync(partFile(file), file);
  writeWhole(`${file}.manifest.json`, `${JSON.stringify(manifest, null, 2)}\n`, 0o644);
  rmSync(noteFile(file));
  const { rows } = manifest;
  const { bytes, sha256 } = manifest.file;
  progress.say(`${file}: ${rows} rows, ${bytes} bytes, SHA-256 ${sha256}`);
  return { file, rows, bytes, sha256 };
};

export const runExport = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    takes: [1, 1],
    options: {
      ...service_options,
      ...filters,
      out: text,
      format: text,
      snapshot: text,
      names: { type: 'boolean' },
      excel: { type: 'boolean' },
      force: { type: 'boolean' },
    },
    async work(
      { url, out, excel, format = excel ? 'csv' : 'ndjson', snapshot, names, force, ...members },
      [subject = ''],
      call,
    ) {
      if (!subjects.includes(subject)) {
        throw wrongUsage(`SUBJECT must be ${named}, not ${subject}.`);
      }
      if (!(format_names as readonly string[]).includes(format)) {
        throw wrongUsage(`--format must be one of ${format_names.join(', ')}, not ${format}.`);
      }
      const query: Record<string, string> = {
        format,
        ...(excel === true && { excel: 'true' }),
        ...(names === true && { names: 'true' }),
      };
      for (const name of Object.keys(filters) as (keyof typeof filters)[]) {
        const value = members[name];
        if (value !== undefined) query[name.replaceAll('-', '_')] = value;
      }
      const file = out ?? `${subject}.${format}`;
      if (existsSync(file) && force !== true) {
        throw new Stopped(`${file} already exists. Give --force to replace it, or another --out.`);
      }
      const address = new URL(`/api/export/${subject}`, checkUrl(url)).href;
      const result = await exportFile({
        file,
        address,
        query,
        snapshot,
        stop: call.stop,
        patience_ms: call.patience_ms ?? 90_000,
        progress: makeProgress(call.screen),
      });
      return { code: 0, result };
    },
  });

await startCommand(import.meta.filename, runExport, true);
