import { setTimeout as wait } from 'node:timers/promises';
import { t } from 'tap';
import { awaitTruth, countRepeats } from './fault/truth.js';
import { startWorld } from './fault/world.js';
import { makeRandom, readNumbers } from './help/long-run.js';
import { type Part, startMoreRoles, type TestService } from './help/service.js';

/**
 * `npm run soak -- [MINUTES] [SEED]`: the whole service under load while random parts of it are
 * killed, paused and emptied, one or two at a time. Every so often the load stops, and everything
 * must agree. With an odd seed a second supervisor adds a relay, a signer and a timer, as on
 * another machine, and there are two api processes.
 */

const { minutes, seed } = readNumbers('soak', { minutes: 5, seed: 1 + (Date.now() % 1_000_000) });
const round_ms = 20_000;
const recovery_ms = 30_000;
const parts: readonly Part[] = ['api', 'relay', 'signer', 'timer', 'Redis', 'Postgres'];

const random = makeRandom(seed);
const between = (from: number, to: number): number => from + random() * (to - from);

const strikeOne = async (service: TestService): Promise<string> => {
  const part = parts[Math.floor(random() * parts.length)] ?? 'api';
  const empty = random() < 0.5;
  const is_pause = random() < 0.35;
  const pause_ms = between(300, 7_000);
  if (service.pidsOf(part).length === 0) return `${part} is down`;
  const struck_ms = performance.now();
  if (is_pause) {
    const wake = service.pause(part);
    await wait(pause_ms);
    wake();
    return `${part} stood still for ${Math.round(pause_ms)} ms`;
  }
  await service.kill(part, { only_one: true, empty: part === 'Redis' && empty });
  const back_ms = Math.round(performance.now() - struck_ms);
  return `${part} killed${part === 'Redis' && empty ? ', empty' : ''}, back after ${back_ms} ms`;
};

const strikeUntil = async (service: TestService, end_ms: number): Promise<readonly string[]> => {
  const done: string[] = [];
  while (performance.now() < end_ms) {
    await wait(between(200, 3_000));
    const count = random() < 0.3 ? 2 : 1;
    const struck = await Promise.all(Array.from({ length: count }, () => strikeOne(service)));
    done.push(struck.join(' + '));
  }
  return done;
};

t.setTimeout(0);
t.test(`${minutes} minutes, seed ${seed}`, { timeout: 0 }, async (t) => {
  const env = { API_PROCESSES: seed % 2 === 1 ? '2' : '1' };
  const world = await startWorld(t, { agents: 500, questions: 100, env });
  const { service, load } = world;
  if (seed % 2 === 1) await startMoreRoles(t, service, ['relay', 'signer', 'timer']);
  const end_ms = performance.now() + minutes * 60_000;
  for (let round = 1; performance.now() < end_ms && t.passing(); round += 1) {
    load.resume(100);
    const struck = await strikeUntil(service, performance.now() + round_ms);
    await load.stop();
    const stopped_ms = performance.now();
    const { right_ms, delivered_ms } = await awaitTruth(t, world, recovery_ms);
    const longest_ms = Math.max(...load.acknowledged.map(({ waited_ms }) => waited_ms));
    t.comment(`round ${round}: ${struck.join('; ')}`);
    t.comment(
      `  ${load.acknowledged.length} predictions, ${countRepeats(world)} repeated deliveries, ` +
        `longest answer ${Math.round(longest_ms)} ms; ` +
        `all right after ${Math.round(right_ms - stopped_ms)} ms, ` +
        `all delivered after ${Math.round(delivered_ms - stopped_ms)} ms`,
    );
  }
  const said = service.troubles(50).map(({ role, msg, err }) => JSON.stringify({ role, msg, err }));
  for (const line of new Set(said)) t.comment(line);
});
