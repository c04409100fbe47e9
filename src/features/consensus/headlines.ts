import type { Deps } from '../../http/deps.js';
import { groupBy } from '../../kit/group-by.js';
import type { Headline } from '../questions/schema.js';
import type { LiveConsensus } from './live.js';
import { chanceIn, shown } from './reading.js';
import { readTrends } from './store.js';

/**
 * Reads the headlines for lists of questions: the forecast now, its changes, and its trend from the
 * snapshots. If a question has options, all three are about the option that leads now.
 */
export const createHeadlines =
  ({ sql, clock }: Pick<Deps, 'sql' | 'clock'>, live: LiveConsensus) =>
  async (ids: readonly string[]): Promise<ReadonlyMap<string, Headline>> => {
    const found = await live.findAll(ids, null);
    // A question about a number or a date has a forecast, but no changes and no trend.
    const chances = found.filter((one) => one.headline === undefined);
    const trends = groupBy(await readTrends(sql, chances, clock()), (row) => row.question_id);
    return new Map(
      found.map((one) => {
        const { question_id, leading_option, updated_at } = one;
        const forecast = chanceIn(one);
        const rows = trends.get(question_id) ?? [];
        const changeFrom = (before: number | null | undefined): number | null =>
          forecast === null || before == null ? null : shown(forecast - before);
        const past = rows.filter(({ in_trend }) => in_trend);
        const trend = past.map(({ at, value }) => ({ at: at.toISOString(), forecast: value }));
        if (forecast !== null && updated_at !== null) trend.push({ at: updated_at, forecast });
        const consensus = {
          forecast: one.forecast,
          leading_option,
          change_24h: changeFrom(rows.find(({ is_day }) => is_day)?.value),
          change_7d: changeFrom(rows.find(({ is_week }) => is_week)?.value),
        };
        return [question_id, { consensus, trend }];
      }),
    );
  };
