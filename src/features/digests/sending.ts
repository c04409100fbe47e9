import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { groupBy } from '../../kit/group-by.js';
import { firstIdAt } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { readAddress } from '../accounts/rules.js';
import { readDay } from '../briefs/daily-rules.js';
import { createDays } from '../briefs/index.js';
import { createLiveConsensus } from '../consensus/index.js';
import { dropBulkMails, type OnRefused, queueMails } from '../mail/index.js';
import { showItem } from '../notifications/inbox-messages.js';
import { listBetween, listDue, settleDue } from '../notifications/index.js';
import { createUnsubscribeTokens, type MailList, nextDigestAt } from './rules.js';
import * as store from './store.js';
import { type ForumNews, forumSections, makeAlert, makeDigest } from './texts.js';

/**
 * Makes digests and alerts from the items of inboxes and queues them as e-mails. Each batch is one
 * transaction: it locks the people, queues their e-mails and stores their next turn. So after a
 * crash, each person gets the e-mail once: from this transaction, or from the next attempt.
 */

const people_at_once = 100;
const max_items = 30;
const day_ms = 86_400_000;
const period_ms = { daily: day_ms, weekly: 7 * day_ms };
/** After an alert, the next one waits this long, and has all that happened meanwhile. */
export const alert_gap_ms = 10 * 60_000;

const urlMaker = ({ config, public_url }: Deps) => {
  const tokens = createUnsubscribeTokens(config.SECRET_KEY ?? '');
  return (human_id: string, list: MailList): string =>
    `${public_url}/unsubscribe/${tokens.make(human_id, list)}`;
};

export type ReadForumNews = () => Promise<ForumNews>;

/** Queues some digests that are due. Returns how many people had their turn. */
export const queueDigests = async (deps: Deps, readForumNews: ReadForumNews): Promise<number> => {
  const { sql, clock, config, public_url } = deps;
  const urlOf = urlMaker(deps);
  return sql.begin(async (tx) => {
    const now = clock();
    const due = await store.takeDueDigests(tx, now, people_at_once);
    const readers = due.filter(({ can_get }) => can_get);
    const items = await readItems(tx, readers, now);
    const forum = items.size === 0 ? [] : forumSections(await readForumNews());
    const mails = readers.flatMap((reader) => {
      const rows = items.get(reader.id) ?? [];
      if (rows.length === 0 || reader.digest === 'off') return [];
      const unsubscribe = urlOf(reader.id, 'digest');
      const given = { reader, public_url, unsubscribe, items: rows.map(showItem) };
      return [makeDigest(given, reader.digest, forum)];
    });
    await queueMails(tx, mails, { config, at: now, is_bulk: true });
    await store.noteDigests(
      tx,
      due.map(({ id, digest }) => ({ id, next_digest_at: nextDigestAt(digest, now) })),
      coveredUntil(now),
    );
    return due.length;
  });
};

/** An item can commit this long after its time. Newer items wait for the next digest. */
const settled_ms = 60_000;
const coveredUntil = (now: Date): Date => new Date(now.getTime() - settled_ms);

/** Reads the items that are new since the last digest, newest first, by reader. */
const readItems = async (tx: Tx, readers: readonly store.DueDigest[], now: Date) => {
  const until = coveredUntil(now).getTime();
  const since = readers.map(({ id, digest, digested_until }) => {
    const first_ms = until - period_ms[digest === 'daily' ? 'daily' : 'weekly'];
    return { id, after: firstIdAt(digested_until?.getTime() ?? first_ms) };
  });
  if (since.length === 0) return new Map<string, never>();
  const rows = await listBetween(tx, since, { until: firstIdAt(until), most: max_items });
  return groupBy(rows, ({ reader_id }) => reader_id);
};

/** Queues some alerts that are due. Returns how many people had their turn. */
export const queueAlerts = async (deps: Deps): Promise<number> => {
  const { sql, clock, config, public_url } = deps;
  const urlOf = urlMaker(deps);
  return sql.begin(async (tx) => {
    const now = clock();
    const before = new Date(now.getTime() - alert_gap_ms);
    const due = await store.takeDueAlerts(tx, { before, most: people_at_once });
    if (due.length === 0) return 0;
    const ids = due.map(({ id }) => id);
    const listed = await listDue(tx, ids, max_items);
    const items = groupBy(
      listed.filter(({ is_shown }) => is_shown),
      ({ reader_id }) => reader_id,
    );
    const mails = due.flatMap((reader) => {
      const rows = items.get(reader.id) ?? [];
      if (rows.length === 0 || !reader.can_get) return [];
      const unsubscribe = urlOf(reader.id, 'alerts');
      return [makeAlert({ reader, public_url, unsubscribe, items: rows.map(showItem) })];
    });
    await queueMails(tx, mails, { config, at: now, is_bulk: true });
    await settleDue(tx, listed);
    await store.noteAlerts(tx, ids, now);
    return due.length;
  });
};

/**
 * Stops digests and alerts to addresses, and gives up on the waiting ones. Returns the number of
 * people.
 */
export const stopAddresses = async (
  tx: Tx,
  refused: readonly store.Refused[],
  at: Date,
): Promise<number> => {
  const normalised = refused.flatMap(({ address, reason }) => {
    const email_key = readAddress(address)?.email_key;
    return email_key === undefined ? [] : [{ address: email_key, reason }];
  });
  const stopped = await store.stopMails(tx, normalised, at);
  await dropBulkMails(tx, stopped, at);
  return stopped.length;
};

/** Stops digests and alerts to an address that a mail server refused for good. */
export const stopRefused: OnRefused = async (tx, { recipient, reason, at }) => {
  await stopAddresses(tx, [{ address: recipient, reason }], at);
};

/**
 * Makes the function that reads yesterday's insights. They are read once for all digests of a day.
 * If they cannot be read, digests go out without them.
 */
export const makeForumReader = (deps: Deps): ReadForumNews => {
  const days = createDays(deps, createLiveConsensus(deps, 1));
  let known: ForumNews | undefined;
  return async () => {
    const date = new Date(deps.clock().getTime() - day_ms).toISOString().slice(0, 10);
    if (known?.date === date) return known;
    const none = { date, movers: [], closing_soon: { questions: [] } };
    const day = readDay(date, deps.clock());
    try {
      known = day === null ? none : ((await days.read(day)) as ForumNews);
      return known;
    } catch (error) {
      deps.log.warn(describeError(error), 'digests: the insights could not be read');
      return none;
    }
  };
};

export const createDigestTimer = (deps: Deps, every_ms = 1_000): Service => {
  const readForumNews = makeForumReader(deps);
  return makeLoop({
    name: 'digests',
    log: deps.log,
    every_ms,
    async turn() {
      const alerts = await queueAlerts(deps);
      const digests = await queueDigests(deps, readForumNews);
      return Math.max(alerts, digests) === people_at_once ? 'again' : 'rest';
    },
  });
};
