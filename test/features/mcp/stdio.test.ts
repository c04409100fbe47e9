import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernTransport } from '@modelcontextprotocol/client/stdio';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Test } from 'tap';
import { type Mood, startFront } from '../../client/front.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { readResult } from './world.js';

/** The launcher, started by clients of both protocol revisions. */

const app = await startApp(t);
const human = await makeHuman(app);
const info = { name: 'test', version: '1.0.0' };

const launcher = (url: string, key?: string) => ({
  command: process.execPath,
  args: ['src/boot/run.mjs', 'mcp', '--url', url],
  env: { ...(process.env as Record<string, string>), ...(key && { FORUM_KEY: key }) },
});

const openModern = async (t: Test, url: string, key?: string) => {
  const client = new ModernClient(info, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new ModernTransport(launcher(url, key)));
  t.teardown(() => client.close());
  return client;
};

const openOld = async (t: Test, url: string, key?: string) => {
  const client = new OldClient(info);
  await client.connect(new OldTransport(launcher(url, key)) as Parameters<OldClient['connect']>[0]);
  t.teardown(() => client.close());
  return client;
};

const comment = (key: string, question_id: string, text: string) =>
  app.call('POST', `/api/questions/${question_id}/comments`, { key, body: { content: text } });

t.test('the revision of 2026 predicts and hears of a question', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const uri = `forum://question/${question_id}`;
  const { key } = await makeAgent(app, { human });
  const client = await openModern(t, app.url, key);
  t.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
  const forecast = { question_id, prediction: true, confidence: 64, reasoning: makeReasoning() };
  const placed = await client.callTool({ name: 'predict', arguments: forecast });
  t.match(readResult(placed).answer, { prediction: { confidence: 64 } });
  const heard = new Promise((resolve) => {
    client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
      resolve(params.uri),
    );
  });
  await client.listen({ resourceSubscriptions: [uri] });
  const written = await comment(key, question_id, 'Both surveys point the same way by now.');
  t.equal(written.status, 201);
  t.equal(await heard, uri);
});

t.test('the handshake of 2025 hears of what it follows, and of nothing else', async (t) => {
  const [question_id, other] = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
  const uri = `forum://question/${question_id}`;
  const { key } = await makeAgent(app, { human });
  const client = await openOld(t, app.url, key);
  const heard: string[] = [];
  const first = new Promise<void>((resolve) => {
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      heard.push(params.uri);
      resolve();
    });
  });
  await client.subscribeResource({ uri });
  await comment(key, other, 'Nobody follows this question, and nobody hears of it.');
  await comment(key, question_id, 'The second survey was published this morning.');
  await first;
  t.same(heard, [uri]);
  await client.unsubscribeResource({ uri });
});

t.test('an address may end with a slash, and a key with a line break', async (t) => {
  const { key } = await makeAgent(app, { human });
  const client = await openModern(t, `${app.url}/`, `${key}\n`);
  const record = await client.callTool({ name: 'my_record', arguments: {} });
  t.match(readResult(record).answer, { user: { owner_linked: true } });
});

t.test('a bad line gets an error, and the server goes on', async (t) => {
  const { command, args, env } = launcher(app.url);
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const send = async (line: string | Buffer) => {
    child.stdin.write(line);
    child.stdin.write('\n');
    return JSON.parse((await answers.next()).value);
  };
  const unreadable = { jsonrpc: '2.0', id: null, error: { code: -32700, message: /^The line/ } };
  for (const line of ['{', 'nonsense', Buffer.from([0x22, 0xff, 0x22])]) {
    t.match(await send(line), unreadable);
  }
  t.match(await send('[]'), { id: null, error: { code: -32600 } });
  t.match(await send('{"jsonrpc":"2.0","id":4}'), { id: 4, error: { code: -32600 } });
  t.match(await send('x'.repeat(1_048_576)), unreadable, 'of the most bytes');
  for (const length of [1_048_577, 16 * 1_048_576]) {
    const too_long = { id: null, error: { code: -32600, message: /at most 1048576 bytes/ } };
    t.match(await send('x'.repeat(length)), too_long);
  }
  const hello = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1.0.0' },
  };
  const request = (id: number, method: string, params = {}) =>
    JSON.stringify({ jsonrpc: '2.0', id, method, params });
  const begun = await send(`\r\n\n${request(5, 'initialize', hello)}\r`);
  t.match(begun, { id: 5, result: { serverInfo: { name: 'prediction-forum' } } });
  t.match(await send('{'), unreadable);
  const found = await send(
    request(6, 'tools/call', { name: 'find_questions', arguments: '{"limit":"1"}' }),
  );
  t.match(found, { id: 6, result: { content: [{ type: 'text', text: /^{"total"/ }] } });
  t.match(await send(request(7, 'nothing')), { id: 7, error: { code: -32601 } });
  child.stdin.end();
  t.same(await once(child, 'exit'), [0, null]);
});

t.test('where no service answers, a tool says so', async (t) => {
  const client = await openOld(t, 'http://127.0.0.1:1');
  const refused = await client.callTool({ name: 'find_questions', arguments: {} });
  t.match(refused, { isError: true, content: [{ text: /http:\/\/127.0.0.1:1 does not answer/ }] });
});

t.test('where the address is redirected, a tool names the one to use', async (t) => {
  const front = await startFront(t, app.url);
  const headers = { location: 'https://forum.example/' };
  front.moods.push(...Array<Mood>(100).fill({ status: 302, headers }));
  const client = await openOld(t, front.url);
  const refused = await client.callTool({ name: 'find_questions', arguments: {} });
  const text = /is redirected to https:\/\/forum\.example\//;
  t.match(refused, { isError: true, content: [{ text }] });
});
