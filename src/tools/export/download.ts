import { setTimeout as delay } from 'node:timers/promises';
import { makeProgress, type Screen } from '../shared/terminal.js';
import type { ExportArguments } from './arguments.js';
import { keepState, openPart, type Part, type PartState, partBytes } from './part.js';

/** Reads an export into its part, and goes on where a connection breaks. */

/** The export cannot go on; the sentence says why. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
}

export interface DownloadParts {
  readonly args: ExportArguments;
  readonly screen: Screen;
  readonly stop: AbortSignal | undefined;
  readonly patience_ms: number;
  say(line: string): void;
}

export const addressOf = ({ url, subject }: Pick<ExportArguments, 'url' | 'subject'>): string =>
  new URL(`/api/export/${subject}`, url).href;

export const withQuery = (address: string, query: Readonly<Record<string, string>>): string =>
  `${address}?${new URLSearchParams(query)}`;

const reasonOf = (error: unknown): string => {
  const cause = error instanceof Error ? error.cause : undefined;
  if (typeof cause === 'object' && cause !== null && 'code' in cause) return String(cause.code);
  return error instanceof Error ? error.message : String(error);
};

/** What a service says about a refusal. */
export const sentenceOf = async (answer: Response): Promise<string> => {
  const text = await answer.text();
  try {
    const { error, fields = [] } = JSON.parse(text) as {
      error: string;
      fields?: { path: string; message: string }[];
    };
    return [error, ...fields.map(({ path, message }) => `${path}: ${message}`)].join(' ');
  } catch {
    return `status ${answer.status}`;
  }
};

const isTransient = ({ status }: Response): boolean => status === 429 || status === 503;

/** Asks until there is an answer that stands; waits as long as the service says. */
export const ask = async (
  url: string,
  { stop, patience_ms, say }: Pick<DownloadParts, 'stop' | 'patience_ms' | 'say'>,
): Promise<Response> => {
  const give_up_ms = performance.now() + patience_ms;
  const { origin } = new URL(url);
  for (;;) {
    stop?.throwIfAborted();
    let wait_ms = 500;
    let why: string;
    try {
      const answer = await fetch(url, stop === undefined ? {} : { signal: stop });
      if (answer.ok) return answer;
      const sentence = await sentenceOf(answer);
      if (!isTransient(answer)) throw new Stopped(`The service refuses: ${sentence}`);
      wait_ms = Math.max(1, Number(answer.headers.get('retry-after')) || 1) * 1_000;
      why = sentence;
    } catch (error) {
      if (error instanceof Stopped) throw error;
      stop?.throwIfAborted();
      why = reasonOf(error);
    }
    if (performance.now() + wait_ms > give_up_ms) {
      throw new Stopped(
        `Nothing can be had from ${origin} (${why}); if the service is elsewhere, give its --url.`,
      );
    }
    say(`waiting ${Math.ceil(wait_ms / 1_000)} s for ${origin} (${why})`);
    await delay(wait_ms, undefined, stop === undefined ? {} : { signal: stop });
  }
};

const totalRows = (answer: Response, format: string | undefined): number | null => {
  const text = answer.headers.get('x-export-rows');
  return text === null || format === 'parquet' ? null : Number(text);
};

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const with_rows = '[{bar}] {percentage} %  {value}/{total} rows  {size}  {rate}  {eta_formatted}';
/** Where rows cannot be counted. */
const bytes_only = '{size}  {rate}';

/** Appends what comes; false when the connection broke before the end. */
const receive = async (answer: Response, part: Part, parts: DownloadParts): Promise<boolean> => {
  const { screen, args, stop } = parts;
  const total = totalRows(answer, args.query['format']);
  const progress = makeProgress(screen, total === null ? bytes_only : with_rows);
  const [began_ms, began_bytes] = [performance.now(), part.bytes];
  const show = (): void => {
    const seconds = Math.max(0.001, (performance.now() - began_ms) / 1_000);
    const rate = `${megabytes((part.bytes - began_bytes) / seconds)}/s`;
    progress.update(part.rows, total ?? 1, { size: megabytes(part.bytes), rate });
  };
  show();
  try {
    for await (const piece of answer.body ?? []) {
      stop?.throwIfAborted();
      await part.append(piece as Uint8Array);
      show();
    }
    return true;
  } catch (error) {
    // Errors of the file have a code of their own; those of a connection do not last.
    if (typeof (error as { syscall?: unknown }).syscall === 'string') throw error;
    stop?.throwIfAborted();
    return false;
  } finally {
    progress.end();
  }
};

export interface Downloaded {
  readonly state: PartState;
  readonly bytes: number;
  readonly sha256: string;
  /** Part of it was there before, or came by another connection. */
  readonly was_resumed: boolean;
}

const findSnapshot = (answer: Response): string => {
  const snapshot = answer.headers.get('x-export-snapshot');
  if (snapshot === null) throw new Stopped('The service does not say which snapshot this is.');
  return snapshot;
};

const first_patience_ms = 10_000;

export const download = async (
  parts: DownloadParts,
  known: PartState | null,
): Promise<Downloaded> => {
  const { args, say } = parts;
  const { file, query } = args;
  const address = addressOf(args);
  let state = known;
  let was_resumed = known !== null && partBytes(file) > 0;
  for (;;) {
    const snapshot = state?.snapshot ?? args.snapshot;
    const bytes = state === null ? 0 : partBytes(file);
    const place = { count: 'true', skip_bytes: String(bytes), ...(snapshot && { snapshot }) };
    // Who begins may have the wrong address; who goes on knows that something was there.
    const patience_ms = Math.min(parts.patience_ms, state === null ? first_patience_ms : Infinity);
    const answer = await ask(withQuery(address, { ...query, ...place }), { ...parts, patience_ms });
    if (state === null) {
      state = { address, query, snapshot: findSnapshot(answer) };
      keepState(file, state);
    }
    const part = await openPart(file, query['format'] ?? '');
    const is_through = await receive(answer, part, parts).finally(() => part.close());
    if (is_through) return { state, bytes: part.bytes, sha256: part.sha256, was_resumed };
    if (part.bytes > bytes) was_resumed = true;
    say(`The connection broke after ${part.bytes} bytes; going on.`);
    await delay(500);
  }
};
