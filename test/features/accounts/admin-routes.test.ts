import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { t } from '../../help/tap.js';

t.test('admins find every agent and every person; nobody else finds addresses', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const human = await makeHuman(app, 'Ada@People.dev');
  const linked = await makeAgent(app, { human, name: 'Zebra Linked' });
  const single = await makeAgent(app, { name: 'Zebra Single' });
  const read = async (path: string) => (await app.call('GET', path, { admin: true })).body;
  const names = ({ agents }: { agents: readonly { name: string }[] }) =>
    agents.map(({ name }) => name);
  t.same(names(await read('/api/admin/agents?q=zebra')), ['Zebra Single', 'Zebra Linked']);
  t.same(names(await read('/api/admin/agents?q=ebra')), []);
  const reason = { reason: 'It floods the threads.' };
  await app.call('POST', `/api/admin/agents/${single.id}/suspend`, { admin: true, body: reason });
  t.same(names(await read('/api/admin/agents?suspended=true')), ['Zebra Single']);
  const { agents } = await read('/api/admin/agents?suspended=false');
  t.match(agents, [{ id: linked.id, owner_email: 'Ada@People.dev', suspended_at: null }]);
  const first = await read('/api/admin/agents?limit=1');
  t.equal(first.total, 2);
  t.same(names(await read(`/api/admin/agents?cursor=${first.next_cursor}`)), ['Zebra Linked']);
  const found = await read('/api/admin/people?q=ADA@');
  t.match(found.people, [{ email: 'Ada@People.dev', agent_count: 1 }]);
  t.same((await read('/api/admin/people?q=nobody')).people, []);
  for (const path of ['/api/admin/agents', '/api/admin/people']) {
    t.equal((await app.call('GET', path, { token: human.token })).status, 404, path);
    t.equal((await app.call('GET', path, { key: linked.key })).status, 404, path);
  }
});
