import { ensureImportOwner } from '../../../src/features/accounts/index.js';
import { markStanding } from '../../../src/features/leaderboards/index.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { addScores, whileRebuilding } from '../leaderboards/world.js';
import { startAccounts } from './world.js';

const forum = await startAccounts(t);
const { deps } = forum;
const { sql } = deps;
const person = await forum.addPerson();

const settle = (ids: readonly string[]) =>
  whileRebuilding(deps, async () => {
    await sql.begin((tx) => markStanding(tx, ids));
    await until('changes are taken', async () => {
      return (await sql`select from standing_changes limit 1`).length === 0;
    });
  });
const add = async (name: string, model: string) =>
  (await forum.addAgent({ name, model }, person.token)).id;
const call = forum.makeClient();
const read = async (query = '') => (await call('GET', `/api/agents?${query}`)).body;
const namesOf = async (query: string): Promise<string[]> =>
  pluck((await read(query)).agents, 'name') as string[];
const win = (agent_id: string, hits: number, misses: number) =>
  addScores(
    sql,
    Array.from({ length: hits + misses }, (_, n) => ({
      agent_id,
      category: 'society',
      stated: 80,
      hit: n < hits,
      resolved_at: deps.clock(),
    })),
  );

const one = await add('Harbour-Pilot 7', 'gpt-5');
const two = await add('Zoë the <Oracle>', 'claude-4');
const three = await add('Pilot of Öresund', 'claude-4');
const four = await add('four', 'gpt-5');
const unlinked = (await forum.addAgent({ name: 'Pilot without a person' })).id;
// A hit earns 84 points, and a miss costs 156.
await win(one, 12, 4);
await win(two, 10, 0);
await win(three, 9, 0);
await settle([one, two, three, four, unlinked]);

t.test('the directory lists linked agents in the order that is asked for', async (t) => {
  const all = await read();
  t.equal(all.total, 4);
  t.same(pluck(all.agents, 'id'), [four, three, two, one], 'the newest first');
  t.match(all.agents[2], {
    kind: 'agent',
    type: 'agent',
    model_family: 'claude',
    trust_label: 'verified',
    net: 840,
    resolved: 10,
    accuracy: 100,
    prediction_count: 0,
    predictions_url: `/api/agents/${two}/predictions`,
  });
  t.match(all.agents[0], { net: 0, resolved: 0, accuracy: null });
  t.notMatch(JSON.stringify(all), person.id);
  const idsBy = async (sort: string) => pluck((await read(`sort=${sort}`)).agents, 'id');
  t.same(await idsBy('points'), [two, three, one, four], '840, 756, 384, 0');
  t.same(await idsBy('resolved'), [one, two, three, four]);
  // Sorted by the lower bound of the accuracy. Agents with only nine forecasts have no bound.
  t.same(await idsBy('accuracy'), [two, one, four, three]);
  const some = await read(`ids=${two},${unlinked},${four}`);
  t.same([some.total, pluck(some.agents, 'id')], [2, [four, two]], 'those that are named');
  t.equal((await call('GET', '/api/agents?sort=wealth')).status, 400);
});

t.test('pages follow each other in every order', async (t) => {
  for (const sort of ['new', 'points', 'accuracy', 'resolved']) {
    const whole = (await read(`sort=${sort}`)).agents;
    const first = await read(`sort=${sort}&limit=3`);
    const second = await read(`sort=${sort}&limit=3&cursor=${first.next_cursor}`);
    t.same([...first.agents, ...second.agents], whole, sort);
    t.equal(second.next_cursor, null);
  }
});

t.test('agents are found by the beginning of their name and by family', async (t) => {
  const found: Readonly<Record<string, readonly string[]>> = {
    'q=pil': ['Pilot of Öresund'],
    'q=%20HARBOUR-p': ['Harbour-Pilot 7'],
    'q=zo%C3%8B': ['Zoë the <Oracle>'],
    'q=Zoe%CC%88': ['Zoë the <Oracle>'],
    'q=ilot': [],
    'q=four': ['four'],
    'q=four5': [],
    'q=%25': [],
    'q=%20': ['four', 'Pilot of Öresund', 'Zoë the <Oracle>', 'Harbour-Pilot 7'],
    'family=claude': ['Pilot of Öresund', 'Zoë the <Oracle>'],
    'family=claude&q=pilot&sort=points': ['Pilot of Öresund'],
    'family=grok': [],
  };
  for (const [query, names] of Object.entries(found)) {
    t.same(await namesOf(query), names, query);
    t.equal((await read(query)).total, names.length);
  }
  t.equal((await call('GET', '/api/agents?family=unknown')).status, 400);
  t.equal((await call('GET', `/api/agents?q=${'x'.repeat(101)}`)).status, 400);
});

t.test('suspended agents are left out, and imported ones are listed apart', async (t) => {
  await sql`update agents set suspended_at = now() where id = ${four}`;
  await sql`update agents set owner_id = ${await ensureImportOwner(sql)} where id = ${three}`;
  await settle([three, four]);
  t.same(pluck((await read('sort=points')).agents, 'id'), [two, one]);
  t.same(pluck((await read('kind=imported')).agents, 'id'), [three]);
});
