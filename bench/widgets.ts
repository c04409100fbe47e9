import { setTimeout as delay } from 'node:timers/promises';
import { nowMs } from './env/events.js';
import { makeLoad } from './env/load-rounds.js';
import { rssMb, startMeter } from './env/processes.js';
import { questionId } from './env/seed.js';
import { type Peer, startForum, startLoader, startPeer } from './env/setup.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/bench.js';
import type { FanoutHandlers } from './peers/fanout.js';
import { type Dialect, plain, startSubscribers } from './sockets.js';

/**
 * Widgets of one question on many readers' pages. Each has a socket, gets every change of the
 * consensus, and then reloads its page, at most once in three seconds. `service`: only the sockets,
 * compared with bare uWebSockets.js that publishes as many frames. `service_pages`: the pages too.
 */

const widgets = 5_000;
const changes_per_second = 2;
/** Seconds between two reloads of a widget's page while the consensus changes constantly. */
const reload_s = 3;
const agents = 2_000;
const settle_ms = 1_500;

const widgetOf = (id: string): Dialect => ({
  path: '/ws',
  hello: [
    JSON.stringify({ op: 'subscribe', topics: [`consensus:${id}`] }),
    JSON.stringify({
      op: 'subscribe',
      topics: [`question:${id}`],
      filter: { events: ['question.closed', 'question.resolved'] },
    }),
  ],
  ready: '{"op":"subscribed"',
});

export const bench: Bench = {
  question: `What do ${widgets} open widgets on one question cost, with ${changes_per_second} changes a second?`,
  figures: {
    kb_a_widget: { of: figureOf('service', 'kb_a_widget'), max: 8 },
    frames_a_change: { of: figureOf('service', 'frames_a_change'), max: widgets },
    cpu_over_uws: { of: ratioOf('service', 'uws', 'us_a_frame'), max: 1.5 },
    api_cores: { of: figureOf('service_pages', 'api_cores') },
  },
  async prepare(context) {
    const rounds = 2 * (context.rounds + 1);
    const { setup, keys_file, service } = await startForum(context, {
      agents,
      questions: rounds,
      env: { TRUSTED_PROXIES: '127.0.0.1' },
    });
    const group = startSubscribers(context);
    const common = { ...setup, loader: startLoader(context) };
    const place = makeLoad(common, service, { kind: 'predict', keys_file, agents, in_flight: 4 });
    const readers = startLoader(context);
    const uws = await startPeer<FanoutHandlers>(setup, { name: 'uws', module: 'fanout' });
    let next_question = 0;
    let kb_a_widget = 0;

    const runService = async (seconds: number, with_pages: boolean): Promise<Sample> => {
      const id = questionId(next_question++);
      const before_mb = rssMb(service.watched());
      const job = { ...widgetOf(id), port: service.port, count: widgets, sample_every: widgets };
      await group.call('open', job);
      await delay(settle_ms);
      kb_a_widget = Math.max(
        kb_a_widget,
        ((rssMb(service.watched()) - before_mb) * 1_024) / widgets,
      );
      const before = await group.call('delivered');
      const per_second = widgets / reload_s;
      await readers.call('prepare', {
        requests: {
          kind: 'read',
          paths: [`/embed/${id}`],
          count: Math.ceil(per_second * seconds * 1.1),
        },
        port: service.port,
        in_flight: 64,
        rate: per_second,
        seconds,
        wanted_status: 200,
      });
      const meter = startMeter(service.watched, () => setup.partsOf(service));
      const placing = place({ seconds, rate: changes_per_second, subjects: [id] });
      const pages = with_pages ? await readers.call('go') : undefined;
      await placing;
      await delay(settle_ms);
      const changes = changes_per_second * seconds;
      const { cores, rss_mb, others_cores } = meter.stop();
      const cpu = meter.cpu(changes);
      const { delivered, ended } = await group.call('stop');
      const frames = delivered - before;
      if (ended > 0 || (pages?.problems.length ?? 0) > 0) {
        throw new Error(`${ended} sockets ended; ${pages?.problems.join('\n')}`);
      }
      return {
        frames_a_change: frames / changes,
        us_a_frame: cpu['us_api']! / (frames / changes),
        us_a_change: cpu['us_all']!,
        kb_a_widget,
        ...{ api_cores: cores!, rss_mb: rss_mb!, others_cores: others_cores! },
        ...(pages && { pages_per_second: pages.per_second, page_p99_ms: pages.p99_ms }),
      };
    };

    const runPeer = async (peer: Peer<FanoutHandlers>, seconds: number): Promise<Sample> => {
      await group.call('open', {
        ...plain,
        port: peer.port,
        count: widgets,
        sample_every: widgets,
      });
      const changes = changes_per_second * seconds;
      const meter = startMeter(peer.watched, () => ({ api: peer.watched() }));
      for (let n = 1; n <= changes; n += 1) {
        await peer.call('publish', [{ n, at: nowMs() }]);
        await delay(1_000 / changes_per_second);
      }
      await delay(settle_ms);
      const cpu = meter.cpu(changes);
      const { delivered } = await group.call('stop');
      return {
        frames_a_change: delivered / changes,
        us_a_frame: cpu['us_api']! / (delivered / changes),
      };
    };

    const { seconds, quick } = context;
    const subject = (name: string, run: (seconds: number) => Promise<Sample>): Subject => ({
      name,
      warmUp: () => run(quick ? 1 : 3),
      round: () => run(seconds),
    });
    return [
      () => [
        subject('service', (of) => runService(of, false)),
        subject('uws', (of) => runPeer(uws, of)),
        subject('service_pages', (of) => runService(of, true)),
      ],
    ];
  },
};
