import { type Answer, type Caller, pick, sentenceOf } from '../shared/call.js';
import type { RecordType } from './season.js';

/** Sends items to the service in batches and says what became of each. */

export interface Numbered {
  readonly line: number;
  readonly item: Readonly<Record<string, unknown>>;
}

export type Outcome =
  | { readonly kind: 'created' | 'exists'; readonly api_key?: string; readonly agent_id?: string }
  | { readonly kind: 'refused'; readonly reason: string };

export interface Uploader {
  /** The outcome of each item, in their order. Throws a Stopped when the service is the reason. */
  send(items: readonly Numbered[]): Promise<readonly Outcome[]>;
}

/** Nothing is wrong with the file; the import cannot go on. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
}

export const most_items = 100;
/** Bytes of the items of one call; the service takes 4 MiB. */
export const most_bytes = 2_000_000;

const outcomeOf = (result: unknown): Outcome => {
  const status = pick(result, 'status');
  if (status === 'created' || status === 'exists') {
    const [api_key, agent_id] = [pick(result, 'api_key'), pick(result, 'agent_id')];
    return {
      kind: status,
      ...(typeof api_key === 'string' ? { api_key } : {}),
      ...(typeof agent_id === 'string' ? { agent_id } : {}),
    };
  }
  const error = String(pick(result, 'error') ?? 'refused without a reason');
  const fields = pick(result, 'fields');
  const parts = Array.isArray(fields)
    ? fields
        .filter((field) => !error.includes(String(pick(field, 'message'))))
        .map((field) => `${pick(field, 'path')}: ${pick(field, 'message')}`)
    : [];
  return { kind: 'refused', reason: [error, ...parts].join('; ') };
};

const outcomesOf = (answer: Answer, count: number): readonly Outcome[] => {
  const results = pick(answer.body, 'results');
  if (!Array.isArray(results) || results.length !== count) {
    throw new Stopped('The service answered without a result for each item.');
  }
  const ordered = [...results].sort((a, b) => Number(pick(a, 'index')) - Number(pick(b, 'index')));
  return ordered.map(outcomeOf);
};

const stopFor = ({ status, body }: Answer, url: string): Stopped => {
  if (status === 401 || status === 404) {
    return new Stopped(`${url} does not accept this admin key; see --admin-key-file.`);
  }
  return new Stopped(`The service could not import: ${sentenceOf({ status, body })}`);
};

/** Where each type of item goes. */
export const paths: Readonly<Record<RecordType, string>> = {
  question: '/api/admin/questions/import',
  agent: '/api/admin/agents/import',
  forecast: '/api/admin/predictions/import',
  resolution: '/api/admin/resolutions/import',
};

export const makeUploader = (
  caller: Caller,
  admin_key: string,
  path = paths.question,
): Uploader => {
  const send = async (items: readonly Numbered[]): Promise<readonly Outcome[]> => {
    if (items.length === 0) return [];
    const answer = await caller.call({
      method: 'POST',
      path,
      headers: { 'x-admin-key': admin_key },
      body: { items: items.map(({ item }) => item) },
    });
    if (answer.status === 200) return outcomesOf(answer, items.length);
    if (answer.status !== 400 && answer.status !== 413) throw stopFor(answer, caller.url);
    // One item makes the whole call unreadable; halves find it, and the others still go in.
    if (items.length === 1) return [{ kind: 'refused', reason: sentenceOf(answer) }];
    const middle = items.length >> 1;
    return [...(await send(items.slice(0, middle))), ...(await send(items.slice(middle)))];
  };
  return { send };
};
