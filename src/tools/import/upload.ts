import type { Client, Fault } from '../../client/node.js';
import { Stopped } from '../command.js';
import type { Item, RecordType } from './items.js';

/** Items of one type on their way to the service: gathered, sent together, counted. */

export interface Numbered {
  readonly line: number;
  readonly item: Item;
}

/** What the service says of one item. */
interface Result {
  readonly index: number;
  readonly status: 'created' | 'exists' | 'refused';
  readonly agent_id?: string;
  readonly api_key?: string;
  readonly error?: string;
  readonly fields?: readonly { readonly path: string; readonly message: string }[];
}

export interface Upload {
  readonly counts: Readonly<Record<'created' | 'exists' | 'bad', number>>;
  add(entry: Numbered): Promise<void>;
  /** Counts an item that cannot be sent. */
  refuse(line: number, reason: string): void;
  flush(): Promise<void>;
}

interface UploadParts {
  readonly type: RecordType;
  /** With the admin key. */
  readonly client: Client;
  readonly onBad: (line: number, reason: string) => void;
  /** A new agent has got its key. */
  readonly onKey?: (key: { name: unknown; agent_id: string | undefined; api_key: string }) => void;
  /** After each call. */
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
export const stopFor = ({ status, error }: Fault): Stopped =>
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
