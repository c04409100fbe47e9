import { no_limits, startApp } from '../help/app.js';
import { settleEagerly } from '../help/settling.js';
import type { t as Tap } from '../help/tap.js';
import { openImport } from '../tools/import-files.js';
import type { Any, Fields } from './world.js';

/** Shared code of the tests of imported files: an app, short records, and their results. */

export const source = 's42';

/** A question of 2025, whose forecasts can be imported. */
export const past: Fields = { opens_at: '2025-01-01', closes_at: '2025-12-01' };

/** A yes/no question, or a question with these options if a list is given. */
export const ask = (source_id: string, more: Fields | readonly string[] = {}): Fields => ({
  question: `What will case ${source_id} turn out to be in the end?`,
  subcategory: 'data',
  closes_at: '2035-12-01',
  publish: true,
  source,
  source_id,
  ...(Array.isArray(more) ? { question_type: 'multi', options: more } : more),
});

export const decision = (source_id: string, more: Fields): Fields => ({
  type: 'resolution',
  source,
  source_id,
  ...more,
});

export const forecast = (source_id: string, more: Fields = {}): Fields => ({
  type: 'forecast',
  source,
  source_id,
  agent: 'Timetable 42',
  model: 'gpt-4o',
  forecast_at: '2025-06-01',
  probability: 40,
  scale: 'percent',
  ...more,
});

export const openImports = async (t: typeof Tap) => {
  const app = await startApp(t, { roles: ['api', 'relay'], env: { ...no_limits } });
  await settleEagerly(t, app);
  const files = openImport(t, app);
  const listOf = async (query: string): Promise<readonly Any[]> =>
    (await app.call('GET', `/api/questions?status=all&limit=100&${query}`, { admin: true })).body
      .questions;
  return {
    app,
    ...files,
    /** Imports records. A string is imported as a line, unchanged. */
    send: (records: readonly unknown[], ...argv: string[]) =>
      files.run(files.writeLines('in.ndjson', records), argv),
    /** The published question with this id at its source. */
    questionOf: async (source_id: string): Promise<Any> =>
      (await listOf(`source=${source}&source_id=${encodeURIComponent(source_id)}`))[0],
    /** Predictions on a question, each with its latest revision. */
    predictionsOn: async (id: string): Promise<readonly Any[]> =>
      (await app.call('GET', `/api/questions/${id}/predictions?limit=100`)).body.predictions,
  };
};
