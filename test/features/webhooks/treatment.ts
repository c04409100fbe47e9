import type { client_limits } from '../../../src/kit/outbound/connection.js';
import { until } from '../../help/until.js';
import type { World } from './world.js';

/** The result of the first attempt at a delivery, by the URL of its receiver. */

export interface Treated {
  readonly state: string;
  readonly status: number | null;
  readonly error: string | null;
  /** Seconds from the end of this attempt to the next one. */
  readonly delay_s: number;
  readonly latency_ms: number;
  readonly answer: string | null;
}

/** The result for each webhook's only delivery, by URL. */
const readTreatment = async ({ deps: { sql } }: World): Promise<Map<string, Treated>> => {
  const rows = await sql<(Treated & { url: string })[]>`
    select
      w.url, d.state, a.status, a.error, a.answer, a.latency_ms,
      (extract(epoch from d.next_at - a.at) - a.latency_ms / 1000.0)::float8 as delay_s
    from deliveries d
    join webhooks w on w.id = d.webhook_id
    join attempts a on a.webhook_id = d.webhook_id and a.event_id = d.event_id and a.attempt = 1
    where d.state not in ('pending', 'sending')`;
  return new Map(rows.map(({ url, ...rest }) => [url, rest]));
};

/** Creates one webhook per URL, sends one event, and returns the results of the first attempts. */
export const makeDeliverTo =
  (world: World) =>
  async (
    urls: readonly string[],
    limits: Partial<typeof client_limits> = {},
  ): Promise<(url: string) => Treated> => {
    for (const url of urls) await world.addHook({ url });
    await world.record({});
    const webhooks = world.openWebhooks({ limits });
    // The sweeper does not run within this test, so nothing is tried again.
    await world.startSigner({ webhooks, sweep_ms: 600_000 });
    const all = await until('every first attempt', async () => {
      const found = await readTreatment(world);
      return found.size === urls.length && found;
    });
    return (url) => all.get(url) as Treated;
  };
