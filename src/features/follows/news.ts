import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { readDay } from '../briefs/daily-rules.js';
import { createDays } from '../briefs/index.js';
import { outcomeText } from '../briefs/rules.js';
import { createLiveConsensus } from '../consensus/index.js';
import type { Projector } from '../events/index.js';
import type { LogEntry } from '../events/log-entry.js';
import { readQuestion } from '../questions/index.js';
import * as store from './news-store.js';
import { dropOrphanSearches } from './store.js';

/**
 * Brings news to the inboxes of followers. Any number of timers may run it; each piece of work is
 * one transaction, so after a crash it is done again or was done whole.
 *
 *   events of questions   the relay queues them; the timer tells followers
 *   moves of headlines    the timer compares each follower's last known headline with the current
 *   forecasts of agents   one item a day for each followed agent, which grows with its forecasts
 *   families              one item for each finished day
 */

const max_queued = 20;
const max_moving = 20;
/** Forecasts can commit this long after their time, so the timer looks back by it. */
const look_back_ms = 60_000;

const isNews = ({ event, question_id }: LogEntry): boolean =>
  question_id !== null && store.news_events.some((one) => one === event);

/** Queues events for the followers, in the transaction that gives them their offsets. */
export const queued_news: Projector = {
  name: 'news of questions',
  async record(tx, entries) {
    const news = entries.filter(isNews);
    if (news.length > 0) await store.queueNews(tx, news);
  },
};

const tellEvent = async (tx: Tx, { event, question_id, offset, at }: store.QueuedEvent) => {
  const question = await readQuestion(tx, question_id);
  if (question === undefined) return;
  const item = { id: makeId(), cause: `event:${offset}`, question_id, at };
  switch (event) {
    case 'question.created':
      await store.tellFollowersOfSearches(tx, { ...item, kind: 'question.matched' });
      return;
    case 'question.closing_soon':
      await store.tellFollowersOfQuestion(tx, { ...item, kind: event, alert: 'closing_soon' });
      return;
    case 'question.resolved': {
      await store.endComparison(tx, question_id);
      const is_correction = question.revision > 1;
      const details = { outcome: outcomeText(question), is_correction };
      await store.tellFollowersOfQuestion(tx, { ...item, kind: event, details, alert: 'resolved' });
      return;
    }
    default:
      await store.endComparison(tx, question_id);
      await store.tellFollowersOfQuestion(tx, { ...item, kind: event, alert: 'resolved' });
  }
};

/** Telling all followers of a question may take this long. */
const statement_ms = 60_000;

/**
 * Tells the followers of some queued events, each in a transaction of its own, so that an event
 * that fails does not stop the others. Returns how many events were told.
 */
export const tellQueued = async ({ sql, log }: Pick<Deps, 'sql' | 'log'>): Promise<number> => {
  let done = 0;
  for (const event of await store.listQueued(sql, max_queued)) {
    try {
      await sql.begin({ statement_ms }, async (tx) => {
        if (await store.takeQueued(tx, event.offset)) await tellEvent(tx, event);
      });
      done += 1;
    } catch (error) {
      log.warn({ ...describeError(error), offset: event.offset }, 'news: an event was not told');
    }
  }
  return done;
};

/** Compares the headlines of some followed questions. Returns how many had new forecasts. */
export const tellMoves = async (deps: Deps): Promise<number> => {
  const moving = await store.listMoving(deps.sql, max_moving);
  if (moving.length === 0) return 0;
  const ids = moving.map(({ question_id }) => question_id);
  // A new one each time: it caches, and the timer does not follow the log to invalidate the cache.
  const consensus = createLiveConsensus(deps, max_moving);
  const found = await store.readFigures(deps.sql, consensus, ids);
  for (const { question_id, upto } of moving) {
    const figures = found.find((one) => one.question_id === question_id)?.figures;
    await deps.sql.begin({ statement_ms }, async (tx) => {
      if (!(await store.markChecked(tx, question_id, upto)) || figures === undefined) return;
      const id = makeId();
      const details = { after: figures };
      const item = { id, kind: 'question.moved', cause: `moved:${id}`, question_id } as const;
      await store.tellMove(tx, { ...item, details, at: deps.clock(), alert: 'moves' }, figures);
      await store.dropUnfollowed(tx, question_id);
    });
  }
  return moving.length;
};

const day_ms = 86_400_000;
const startOfDay = (at: Date): Date => new Date(Math.floor(at.getTime() / day_ms) * day_ms);
const dayOf = (at: Date): string => at.toISOString().slice(0, 10);

type Days = ReturnType<typeof createDays>;
type FamilyDay = Readonly<Record<'predictions' | 'agents' | 'resolved', number>> & {
  readonly model_family: string;
};

/** Older days of families are not told, for example after a long stop. */
const max_days = 7;

/** Reads the families of the days that have ended since the cursor's day. */
const readEndedDays = async (day: string, { days, now }: { days: Days; now: Date }) => {
  const today = startOfDay(now).getTime();
  const first = Math.max(Date.parse(day), today - max_days * day_ms);
  const ended: { readonly day: string; readonly families: readonly FamilyDay[] }[] = [];
  for (let at = first; at < today; at += day_ms) {
    const wanted = readDay(dayOf(new Date(at)), now);
    if (wanted !== null) {
      const { families } = (await days.read(wanted)) as Pick<(typeof ended)[number], 'families'>;
      ended.push({ day: wanted.date, families });
    }
  }
  return ended;
};

const tellFamily = (tx: Tx, { day, now }: { day: string; now: Date }, one: FamilyDay) => {
  const { model_family: family, predictions, agents, resolved } = one;
  const details = { family, day, predictions, agents, resolved };
  const item = { id: makeId(), kind: 'family.day', cause: `family:${family}:${day}` } as const;
  return store.tellFollowersOfFamily(tx, { ...item, details, at: now }, family);
};

/** Tells followers about the forecasts of agents, and about the days of families that have ended. */
export const tellForecasters = async ({ sql, clock }: Deps, days: Days): Promise<void> => {
  const now = clock();
  const today = startOfDay(now);
  const before = await store.readNewsCursor(sql);
  const is_new_day = before !== undefined && before.day < dayOf(today);
  const ended =
    is_new_day && (await store.hasFamilyFollowers(sql))
      ? await readEndedDays(before.day, { days, now })
      : [];
  await sql.begin({ statement_ms }, async (tx) => {
    const cursor = await store.lockNewsCursor(tx);
    if (cursor === undefined) return;
    const since = new Date(cursor.agents_at.getTime() - look_back_ms);
    for (const { agent_id, question_id, predictions } of await store.listForecasters(tx, {
      since,
      today,
    })) {
      const cause = `agent:${agent_id}:${dayOf(today)}`;
      const item = { id: makeId(), kind: 'agent.forecast', cause, agent_id, question_id } as const;
      await store.tellFollowersOfAgent(tx, { ...item, at: now }, predictions);
    }
    // Another timer may have told these days meanwhile.
    if (cursor.day === before?.day) {
      for (const { day, families } of ended) {
        for (const one of families) await tellFamily(tx, { day, now }, one);
      }
    }
    if (is_new_day) await dropOrphanSearches(tx);
    await store.moveNewsCursor(tx, { agents_at: now, day: dayOf(today) });
  });
};

/** Headlines and agents are compared this often; queued events are told every turn. */
const compare_every_ms = 10_000;

export const createNews = (deps: Deps, every_ms = 1_000): Service => {
  const days = createDays(deps, createLiveConsensus(deps, 1));
  let compared_ms = Number.NEGATIVE_INFINITY;
  return makeLoop({
    name: 'news',
    log: deps.log,
    every_ms,
    async turn() {
      if ((await tellQueued(deps)) === max_queued) return 'again';
      if (performance.now() - compared_ms < compare_every_ms) return 'rest';
      if ((await tellMoves(deps)) === max_moving) return 'again';
      await tellForecasters(deps, days);
      compared_ms = performance.now();
      return 'rest';
    },
  });
};
