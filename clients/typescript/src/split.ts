import {
  type AnyInput,
  type CallAnswer,
  type CallDefaults,
  pause,
  perform,
  placeOf,
} from './calls.js';
import type { OperationId } from './types.js';

/**
 * Splits long lists of ids in a query into several calls, because long URLs fail on real networks,
 * and joins the answers into one.
 */

/** Maximum URL length in bytes. */
const address_most = 1_200;

/** If a query has such a list, the answer has everything that matches any value of the list. */
const list_names = ['ids', 'question_ids', 'topic'];

const look_again_ms = 1_000;

const listOf = (input: AnyInput, name: string): readonly unknown[] => {
  const value = input.query?.[name];
  return Array.isArray(value) ? value : [];
};

/** Splits an input so that each URL is short enough, if possible. */
const splitInput = (
  input: AnyInput,
  lengthOf: (input: AnyInput) => number,
): readonly AnyInput[] => {
  const name = [...list_names].sort((a, b) => listOf(input, b).length - listOf(input, a).length)[0];
  const list = listOf(input, name ?? '');
  if (list.length < 2 || lengthOf(input) < address_most) return [input];
  const half = Math.ceil(list.length / 2);
  return [list.slice(0, half), list.slice(half)].flatMap((part) =>
    splitInput({ ...input, query: { ...input.query, [name ?? '']: part } }, lengthOf),
  );
};

interface LogPage {
  readonly events: readonly { readonly offset: number }[];
  readonly gap: object | null;
  readonly next: number;
  readonly next_cursor: string | null;
  readonly head: number;
  readonly oldest: number;
}

/** Joins pages of the log into one page, up to the offset that every page reaches. */
const joinPages = (pages: readonly LogPage[], limit: number): LogPage => {
  const until = Math.min(...pages.map(({ next }) => next));
  const by_offset = new Map(pages.flatMap(({ events }) => events.map((one) => [one.offset, one])));
  const found = [...by_offset.values()].filter(({ offset }) => offset <= until);
  const events = found.sort((a, b) => a.offset - b.offset).slice(0, limit);
  const next = events.length < found.length ? (events.at(-1)?.offset ?? until) : until;
  const head = Math.min(...pages.map((page) => page.head));
  return {
    events,
    gap: pages.find(({ gap }) => gap !== null)?.gap ?? null,
    next,
    next_cursor: next < head ? String(next) : null,
    head,
    oldest: Math.max(...pages.map(({ oldest }) => oldest)),
  };
};

type ListPage = Readonly<Record<string, unknown>>;

/** Joins the rows of all parts, one part after another. */
const joinLists = (pages: readonly ListPage[]): ListPage => {
  const [first = {}] = pages;
  const name = Object.keys(first).find((one) => Array.isArray(first[one])) ?? '';
  const total = pages.reduce((sum, page) => sum + Number(page['total']), 0);
  return { ...first, total, [name]: pages.flatMap((page) => page[name]), next_cursor: null };
};

/** Returns the joined answer of all parts. Rejects with `NoAnswer` if any part has no answer. */
export const performAll = async (
  defaults: CallDefaults,
  operation: OperationId,
  input: AnyInput,
): Promise<CallAnswer> => {
  const { query = {} } = input;
  const lengthOf = (one: AnyInput): number =>
    defaults.base_url.length + placeOf(operation, one).target.length;
  const parts = query['format'] === 'ndjson' ? [input] : splitInput(input, lengthOf);
  if (parts.length === 1) return perform(defaults, operation, input);
  const is_log = operation === 'listEvents';
  const more = is_log ? { wait: undefined } : { limit: 100 };
  const ends_ms = performance.now() + Number(query['wait'] ?? 0) * 1_000;
  for (;;) {
    const answers: CallAnswer[] = [];
    for (const part of parts) {
      const answer = await perform(defaults, operation, {
        ...part,
        query: { ...part.query, ...more },
      });
      if (answer.status !== 200) return answer;
      answers.push(answer);
    }
    const bodies = answers.map(({ body }) => body);
    const body = is_log
      ? joinPages(bodies as LogPage[], Number(query['limit'] ?? 20))
      : joinLists(bodies as ListPage[]);
    const { events, gap } = body as Partial<LogPage>;
    const is_over = events?.length !== 0 || gap !== null || performance.now() >= ends_ms;
    if (is_over) return { ...(answers[0] as CallAnswer), body };
    await pause(look_again_ms, input.signal);
  }
};
