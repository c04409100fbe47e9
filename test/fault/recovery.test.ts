import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { type Part, putToSleep, type TestService } from '../help/service.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';
import {
  activeRelay,
  type Fault,
  type FaultWorld,
  fault_limits,
  startWorld,
  surviveAll,
  untilDelivered,
  untilHeard,
} from './world.js';

/**
 * How soon events and webhooks arrive after a process died, was paused or was asked to end. A
 * process that wakes up must do no harm. A second webhook asks for each question's events in order.
 */

t.setTimeout(fault_limits.timeout);

const within_ms = 10_000;

/** Checks that new events and their webhooks arrive within ten seconds of the act. */
const flowAfter = async (t: Test, world: FaultWorld, act: () => unknown): Promise<void> => {
  const from_ms = performance.now();
  await act();
  await world.load.more(20);
  await untilHeard(world, 60_000);
  await untilDelivered(world);
  const passed_ms = performance.now() - from_ms;
  t.ok(passed_ms < allow(within_ms), `all flow after ${Math.round(passed_ms)} ms`);
};

const roles = ['relay', 'signer', 'timer', 'api'] as const satisfies readonly Part[];
const countOf = ({ pidsOf }: TestService) =>
  Object.fromEntries(roles.map((role) => [role, pidsOf(role).length]));

/** Waits until each role has as many processes as before, and the service is healthy. */
const untilWhole = ({ service }: FaultWorld, wanted: string): Promise<boolean> =>
  until(
    'the service is whole',
    async () => {
      const { ok } = await fetch(`${service.url}/health`).catch(() => ({ ok: false }));
      return ok && JSON.stringify(countOf(service)) === wanted;
    },
    20_000,
    100,
  );

const killBoth: Fault['strike'] = async (world, t) => {
  const { service } = world;
  const whole = JSON.stringify(countOf(service));
  for (let kill = 0; kill < 2; kill += 1) {
    const pids = [(await activeRelay(service)).pid, ...service.pidsOf('signer')];
    await flowAfter(t, world, () => {
      for (const pid of pids) process.kill(pid, 'SIGKILL');
    });
    await untilWhole(world, whole);
    t.equal(JSON.stringify(countOf(service)), whole, 'no process too many');
  }
};

const endRelay: Fault['strike'] = async (world, t) => {
  const { pid } = await activeRelay(world.service);
  await flowAfter(t, world, () => process.kill(pid, 'SIGTERM'));
};

/** When the relay wakes up, another relay has taken over and stays active. */
const relayWakesUp: Fault['strike'] = async (world, t) => {
  const { service, load } = world;
  const { pid } = await activeRelay(service);
  const before = load.acknowledged.length;
  const wake = putToSleep(pid);
  try {
    await flowAfter(t, world, () => undefined);
    const waits = load.acknowledged.slice(before).map(({ waited_ms }) => waited_ms);
    t.ok(Math.max(...waits) < allow(2_000), 'writes are answered meanwhile');
  } finally {
    wake();
  }
  const active = (await activeRelay(service)).pid;
  t.not(active, pid);
  await load.more(50);
  await untilHeard(world, 20_000);
  t.equal((await activeRelay(service)).pid, active, 'it stands by, or is gone');
};

/** Repeatedly pauses the relay for a moment. */
const relayNods: Fault['strike'] = async (world, t) => {
  const { service, load } = world;
  for (const more of [3, 11, 29]) {
    const wake = putToSleep((await activeRelay(service)).pid);
    await load.more(more);
    await flowAfter(t, world, wake);
  }
};

const callAsAdmin = async ({ url, folder }: TestService, at: string, body: object) => {
  const key = readFileSync(path.join(folder, 'admin-key'), 'utf8').trim();
  const answer = await fetch(`${url}/api/admin/questions${at}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-admin-key': key },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as { question: { id: string } };
};

/** A question that is due in the meantime is closed once, by the next timer. */
const timerStandsStill: Fault['strike'] = async (world, t) => {
  const { service } = world;
  const { sql } = service;
  const { question } = await callAsAdmin(service, '', {
    question: 'Will the timer of the service close this question in time?',
    category: 'society',
    subcategory: 'benefits_public_good',
    closes_at: new Date(Date.now() + 86_400_000).toISOString(),
    publish: true,
  });
  const pids = service.pidsOf('timer');
  service.pause('timer');
  await sql`update questions set closes_at = now() where id = ${question.id}`;
  const from_ms = performance.now();
  await flowAfter(t, world, () => undefined);
  const flowed_ms = performance.now() - from_ms;
  t.ok(flowed_ms < allow(3_000), `the log went on, for ${Math.round(flowed_ms)} ms`);
  const closed = () => sql`
    select from events where question_id = ${question.id} and event = 'question.closed'`;
  await until('it is closed', async () => (await closed()).length > 0, 60_000, 50);
  const closed_ms = performance.now() - from_ms;
  t.ok(closed_ms < allow(within_ms + 2_000), `closed after ${Math.round(closed_ms)} ms`);
  await until('another timer', () => !service.pidsOf('timer').some((pid) => pids.includes(pid)));
  await world.load.more(50);
  await untilHeard(world, 20_000);
  t.equal((await closed()).length, 1);
};

/** Few enough that a busy machine delivers them at once: the recovery is measured, not the speed. */
const per_second = 30;

const faults: Readonly<Record<string, Fault>> = {
  'relay and signer are killed together, twice': { strike: killBoth, per_second },
  'the relay is asked to end': { strike: endRelay, per_second },
  'a relay wakes up when another is active': { strike: relayWakesUp, per_second },
  'a relay nods off again and again': { strike: relayNods, per_second },
  'the timer stands still': { strike: timerStandsStill, per_second },
};

const ordered_path = '/ordered';

const addOrdered = async ({ service: { url, agents }, receiver }: FaultWorld): Promise<void> => {
  const answer = await fetch(`${url}/api/webhooks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': agents[0]?.key ?? '' },
    body: JSON.stringify({
      url: receiver.url(ordered_path),
      events: ['prediction.placed'],
      order: 'question',
    }),
  });
  if (answer.status !== 201) throw new Error(await answer.text());
};

t.test('events flow again soon', fault_limits, async (t) => {
  const world = await startWorld(t, { followers: 5, env: { LOG_LEVEL: 'info' } });
  await addOrdered(world);
  await surviveAll(t, world, faults);

  await t.test('each question came in order, where that was asked for', async (t) => {
    const { load, receiver } = world;
    const arrivals = () => receiver.of(ordered_path);
    const ids = () => new Set(arrivals().map(({ headers }) => headers['webhook-id']));
    await until('all', () => ids().size === load.acknowledged.length);
    const newest = new Map<string, number>();
    const seen = new Set<number>();
    let misplaced = 0;
    for (const { headers, body } of arrivals()) {
      const offset = Number(headers['x-svc-offset']);
      const { question_id } = JSON.parse(String(body)).data as { question_id: string };
      if (!seen.has(offset) && offset < (newest.get(question_id) ?? 0)) misplaced += 1;
      seen.add(offset);
      newest.set(question_id, Math.max(offset, newest.get(question_id) ?? 0));
    }
    t.equal(misplaced, 0, `${seen.size} events of ${newest.size} questions`);
  });
});
