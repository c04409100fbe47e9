import type { Test } from 'tap';
import { createOperatorCheck } from '../../../src/features/operators/index.js';
import { noteOperator } from '../../../src/features/operators/store.js';
import { startApp } from '../../help/app.js';
import { openParts } from '../../help/parts.js';
import { openStores } from '../../help/stores.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { directoryOf, makeKey, startOperator } from './operator.js';

/** Badges that must be removed even though no request arrives. */

const open = async (t: Test) => {
  const [kept, dropped] = [makeKey(), makeKey()];
  const operator = await startOperator(t, kept, dropped);
  const stores = await openStores(t);
  const app = await startApp(t, { roles: ['api'], stores, env: operator.env });
  const { deps } = await openParts(t, { stores, env: operator.env });
  const human = await makeHuman(app);
  const badge = async (keyid: string) => {
    const { id: agent_id } = await makeAgent(app, { human });
    const { origin } = operator;
    await noteOperator(app.sql, { agent_id, origin, keyid, at: new Date() });
    return agent_id;
  };
  const agents = [await badge(kept.keyid), await badge(dropped.keyid)] as const;
  const show = async (id: string) =>
    (await app.call('GET', `/api/agents/${id}`)).body.agent.operator;
  const rows = () => app.sql<{ agent_id: string }[]>`select * from agent_operators`;
  const start = async () => {
    const check = createOperatorCheck(deps);
    await check.start();
    t.teardown(() => check.stop());
  };
  const age = (column: string, days: number, id?: string) => app.sql`
    update agent_operators set ${app.sql(column)} = now() - ${days} * interval '1 day'
    where ${id ?? null}::uuid is null or agent_id = ${id ?? null}`;
  return { operator, app, kept, agents, show, rows, start, age };
};

t.test('a key that went from its directory takes its badges with it', async (t) => {
  const { operator, kept, agents, show, rows, start, age } = await open(t);
  operator.state.answer = directoryOf(kept);
  await age('checked_at', 2);
  await start();
  await until('one badge goes', async () => (await rows()).length === 1);
  t.match(await show(agents[0]), { origin: operator.origin });
  t.equal(await show(agents[1]), null);
  t.equal(operator.state.asked, 1);
});

t.test('a directory that cannot be reached, or was looked at today, changes nothing', async (t) => {
  const { operator, agents, show, rows, start, age } = await open(t);
  operator.state.answer = { status: 500, body: '' };
  await age('checked_at', 2, agents[0]);
  await start();
  await until('the directory is asked', () => operator.state.asked === 1);
  t.equal((await rows()).length, 2);
  t.match(await show(agents[1]), { origin: operator.origin });
});

t.test('an agent that has not signed for 30 days has no badge', async (t) => {
  const { agents, show, rows, start, age, operator } = await open(t);
  await age('verified_at', 29.9, agents[0]);
  await age('verified_at', 30.1, agents[1]);
  t.match(await show(agents[0]), { origin: operator.origin });
  t.equal(await show(agents[1]), null);
  await start();
  await until('its row goes', async () => (await rows()).length === 1);
});
