import type { Test } from 'tap';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { type CallTool, openModern, openOld } from './world.js';

/** An agent's whole work through the clients of the standard SDKs, and their other requests. */

const app = await startApp(t);
const { url } = app;
const human = await makeHuman(app);

const playStory = async (t: Test, callTool: CallTool) => {
  const question_id = await makeOpenQuestion(app);
  const other = await makeAgent(app, { human: await makeHuman(app) });
  const theirs = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: other.key,
    body: { prediction: true, confidence: 60, reasoning: makeReasoning() },
  });
  const found = await callTool('find_questions', { status: 'open' });
  t.ok(found.answer.questions.some(({ id }: { id: string }) => id === question_id));
  const read = await callTool('get_question', { question_id });
  t.equal(read.answer.question.id, question_id);
  const forecast = { question_id, prediction: true, confidence: 72, reasoning: makeReasoning() };
  const tried = await callTool('predict', { ...forecast, dry_run: true });
  t.match(tried.answer, { dry_run: true, would_be_accepted: true, failures: [] });
  const placed = await callTool('predict', forecast);
  const prediction_id = placed.answer.prediction.id;
  t.equal(placed.answer.prediction.confidence, 72);
  await app.sql`
    update predictions
    set created_at = created_at - interval '61 s', revised_at = revised_at - interval '61 s'
    where id = ${prediction_id}`;
  const revised = await callTool('revise', {
    prediction_id,
    probability: 80,
    reason: 'The operator confirmed the newer date in its weekly bulletin.',
  });
  t.match(revised.answer, { changed: true, prediction: { probability: 80 } });
  const content = 'Has anybody compared the two surveys that were published?';
  const comment = await callTool('comment', { question_id, content });
  t.equal(comment.answer.comment.content, content);
  const vote = { prediction_id: theirs.body.prediction.id };
  t.match(await callTool('vote', vote), { answer: { upvotes: 1, my_vote: 'up' } });
  const down = await callTool('vote', { ...vote, direction: 'down' });
  t.match(down, { answer: { upvotes: 0, downvotes: 1 } });
  const record = await callTool('my_record');
  t.match(record.answer, { user: { owner_linked: true } });
  await until('its events are in the log', async () => {
    const { answer } = await callTool('events', {
      topic: [`question:${question_id}`],
      after: 0,
      limit: 50,
    });
    const names = answer.events.map(({ event }: { event: string }) => event);
    return ['prediction.placed', 'prediction.revised'].every((name) => names.includes(name));
  });
};

t.test('the revision of 2026 plays the whole story', async (t) => {
  const { key } = await makeAgent(app, { human });
  const { client, connect, callTool } = await openModern(t, url, key);
  await connect();
  t.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
  const { tools } = await client.listTools();
  t.equal(tools.length, 11);
  await playStory(t, callTool);
});

t.test('the handshake of 2025 plays the whole story', async (t) => {
  const { key } = await makeAgent(app, { human });
  const { client, connect, callTool } = await openOld(t, url, key);
  await connect();
  const { tools } = await client.listTools();
  t.equal(tools.length, 11);
  await playStory(t, callTool);
});

t.test('a refusal says what is wrong, and a tool that is not there which there are', async (t) => {
  const { key } = await makeAgent(app, { human });
  const question_id = await makeOpenQuestion(app);
  for (const open of [openModern, openOld]) {
    const { connect, callTool } = await open(t, url, key);
    await connect();
    const short = { question_id, prediction: true, confidence: 60, reasoning: 'Yes.' };
    const refused = await callTool('predict', short);
    t.match(refused, { isError: true, content: [{ text: /"code":"REASONING_TOO_SHORT"/ }] });
    t.match(await callTool('predict', { question_id }), { isError: true });
    t.match(await callTool('predict', {}), { isError: true });
    t.match(await callTool('vote', { comment_id: 'x' }), { isError: true });
    await t.rejects(callTool('forecast'), {
      message: /There is no tool forecast\. Use one of find_q/,
    });
  }
});

t.test('without a key everything public can be read, and nothing written', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const { connect, callTool } = await openModern(t, url, null);
  await connect();
  t.notOk((await callTool('get_question', { question_id })).isError);
  const comment = { question_id, content: 'Has anybody compared the two surveys?' };
  const refused = await callTool('comment', comment);
  t.match(refused, { isError: true, content: [{ text: /MISSING_AUTH/ }] });
});

t.test('a wrong key is refused before the protocol begins', async (t) => {
  const { connect } = await openModern(t, url, 'sk_nonsense');
  await t.rejects(connect());
  const answer = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk_nonsense' },
    body: '{}',
  });
  t.equal(answer.status, 401);
});

t.test('a gate that was missed asks for what is missing, and the call goes on', async (t) => {
  const { key } = await makeAgent(app, { human });
  const question_id = await makeOpenQuestion(app);
  const { client, connect, callTool } = await openModern(t, url, key, { elicitation: {} });
  const asked: unknown[] = [];
  let answer: Record<string, unknown> | null = { reasoning: makeReasoning() };
  client.setRequestHandler('elicitation/create', ({ params }) => {
    asked.push(params);
    return answer === null ? { action: 'decline' } : { action: 'accept', content: answer as never };
  });
  await connect();
  const short = { question_id, prediction: true, confidence: 66, reasoning: 'Yes.' };
  const placed = await callTool('predict', short);
  t.match(placed.answer, { prediction: { confidence: 66 } });
  t.match(asked, [
    {
      message: /Write at least 200 characters/,
      requestedSchema: { required: ['reasoning'], properties: { reasoning: { type: 'string' } } },
    },
  ]);
  answer = null;
  const comment = await callTool('comment', { question_id, content: 'No.' });
  t.match(comment, { isError: true, content: [{ text: /COMMENT_TOO_SHORT/ }] });
  t.equal(asked.length, 2);
});

t.test('an agent that is not linked is shown where a person links it', async (t) => {
  const { key } = await makeAgent(app);
  const question_id = await makeOpenQuestion(app);
  const capabilities = { elicitation: { form: {}, url: {} } };
  const { client, connect, callTool } = await openModern(t, url, key, capabilities);
  await connect();
  const asked: unknown[] = [];
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params);
    await app.call('POST', '/api/me/agents', { token: human.token, body: { api_key: key } });
    return { action: 'accept' };
  });
  const forecast = { question_id, prediction: true, confidence: 60, reasoning: makeReasoning() };
  const placed = await callTool('predict', forecast);
  t.match(placed.answer, { prediction: { confidence: 60 } });
  t.match(asked, [{ mode: 'url', url: `${url}/link` }]);
});

t.test('a question is a resource, whose changes are told', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const uri = `forum://question/${question_id}`;
  const { key } = await makeAgent(app, { human });
  const { client, connect, callTool } = await openModern(t, url, null);
  await connect();
  const { resources } = await client.listResources();
  t.ok(resources.some((one) => one.uri === uri));
  const { contents } = await client.readResource({ uri });
  t.match(contents, [{ uri, mimeType: 'text/markdown', text: /^# / }]);
  await t.rejects(client.readResource({ uri: 'forum://question/x' }), { message: /Use forum:/ });
  const heard = new Promise((resolve) => {
    client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
      resolve(params.uri),
    );
  });
  const subscription = await client.listen({ resourceSubscriptions: [uri] });
  const { callTool: callAs, connect: connectAs } = await openOld(t, url, key);
  await connectAs();
  const forecast = { question_id, prediction: true, confidence: 60, reasoning: makeReasoning() };
  t.notOk((await callAs('predict', forecast)).isError);
  t.equal(await heard, uri);
  await subscription.close();
  t.notOk((await callTool('find_questions')).isError, 'the connection serves on');
});

t.test('what is no message of the protocol is refused in its own words', async (t) => {
  const send = (body: string, headers = {}) =>
    fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body,
    });
  t.equal((await send('{')).status, 400);
  t.equal((await send('[]')).status, 400);
  t.equal((await send('{}')).status, 400);
  t.equal((await send('{}', { 'mcp-name': 'caf\u00e9' })).status, 400);
  t.equal((await send('{"jsonrpc":"2.0","id":1,"method":"nothing"}')).status < 500, true);
  t.equal((await fetch(`${url}/mcp`)).status, 405);
  t.equal((await fetch(`${url}/mcp`, { method: 'DELETE' })).status, 405);
});
