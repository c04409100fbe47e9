import { t } from 'tap';
import type { Route } from '../../src/http/route.js';
import { all_routes } from '../../src/routes.js';
import { no_limits, startApp } from '../help/app.js';
import { makeOpenQuestion } from '../help/story.js';
import { keyed_calls } from './keyed-calls.js';

/** There is no act of an admin without its line in the audit log. */

const app = await startApp(t, { roles: ['api'], env: no_limits });
const acting = (all_routes as readonly Route[]).filter(
  ({ auth, method }) => auth === 'admin' && method !== 'GET',
);

const countLines = async (): Promise<number> => {
  const [row] = await app.sql<{ n: number }[]>`select count(*)::int as n from audit_log`;
  return row?.n ?? 0;
};

const draft = () => makeOpenQuestion(app, { publish: false });
const calls: Readonly<Record<string, () => Promise<{ path: string; body?: unknown }>>> = {
  updateQuestion: async () => ({
    path: `/api/admin/questions/${await draft()}`,
    body: { description: 'As the register of the harbour office has it.' },
  }),
  deleteQuestion: async () => ({ path: `/api/admin/questions/${await draft()}` }),
};

for (const { id, method } of acting) {
  t.test(`${id} leaves a line`, async (t) => {
    const made = await (keyed_calls[id]?.(app) ?? calls[id]?.());
    if (made === undefined) throw new Error(`no call of ${id} is known here`);
    const body = 'send' in made ? made.send.body : made.body;
    const send = { admin: true, ...(body === undefined ? {} : { body }) };
    const before = await countLines();
    const { status } = await app.call(method, made.path, send);
    t.ok(status >= 200 && status < 300, `${status}`);
    const after = await countLines();
    t.ok(after > before);
  });
}

t.test('all of them are here', async (t) => {
  t.ok(acting.length >= 15, `${acting.length}`);
});
