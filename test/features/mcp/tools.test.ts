import { makeTools } from '../../../src/features/mcp/index.js';
import type { Route } from '../../../src/http/route.js';
import { isFault } from '../../../src/kit/fault.js';
import { api_routes } from '../../../src/routes.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { openModern } from './world.js';

/** The schemas of tools, and arguments in the forms that clients send. */

// biome-ignore lint/suspicious/noExplicitAny: schemas are read by a test that knows their shape.
type Any = any;

const tools = makeTools(api_routes as readonly Route[]);
const app = await startApp(t);
const human = await makeHuman(app);
const { key } = await makeAgent(app, { human });
const { connect, callTool, client } = await openModern(t, app.url, key);
await connect();
const question_id = await makeOpenQuestion(app);
const id = '0190a000-0000-7000-8000-000000000001';

/** Reasons why a strict client would reject this schema. */
function* findProblems(schema: Any, path: string): Generator<string> {
  if (typeof schema !== 'object' || schema === null) return yield `${path} is no schema`;
  const { type, anyOf, properties = {}, items, format, additionalProperties } = schema;
  if (anyOf !== undefined) {
    if (Object.keys(schema).length > 1) yield `${path} has more than anyOf`;
    for (const [n, one] of anyOf.entries()) yield* findProblems(one, `${path}|${n}`);
    return;
  }
  if (!/^(?:string|number|integer|boolean|array|object)$/.test(type)) yield `${path}: no type`;
  for (const name of ['patternProperties', 'pattern', 'const', '$ref', 'oneOf', 'allOf']) {
    if (name in schema) yield `${path} has ${name}`;
  }
  if (format !== undefined && format !== 'date-time') yield `${path} has the format ${format}`;
  for (const name of schema.required ?? []) {
    if (!(name in properties)) yield `${path} needs ${name}, which it does not know`;
  }
  if (type === 'array') yield* findProblems(items, `${path}[]`);
  if (typeof additionalProperties === 'object')
    yield* findProblems(additionalProperties, `${path}.*`);
  for (const [name, one] of Object.entries(properties)) yield* findProblems(one, `${path}.${name}`);
}

t.test('the list of tools is small, and every client can take its schemas', async (t) => {
  const listed = await client.listTools();
  const bytes = Buffer.byteLength(JSON.stringify(listed));
  t.ok(bytes <= 20_480, `${bytes} bytes`);
  for (const { name, description, inputSchema, outputSchema } of listed.tools as Any[]) {
    t.same([...findProblems(inputSchema, name)], []);
    t.equal(inputSchema.additionalProperties, false, name);
    t.equal(outputSchema, undefined, name);
    t.match(description, /^.{60,}$/s, name);
  }
  const broken = {
    properties: { a: {}, b: { type: 'array' }, c: { type: 'string', format: 'uuid' } },
  };
  t.equal([...findProblems({ type: 'object', ...broken }, 'x')].length, 3, 'problems are found');
});

const read = (name: string, given: Record<string, unknown>): Any => {
  const args = tools.get(name)?.read(given);
  return args !== undefined && isFault(args) ? args.message : args;
};

t.test('texts are read by the type of their argument', async (t) => {
  const cases: readonly (readonly [string, unknown, unknown])[] = [
    ['confidence', '70', 70],
    ['confidence', '0.5', 0.5],
    ['confidence', '-1', -1],
    ['dry_run', 'true', true],
    ['dry_run', 'False', false],
    [
      'evidence_urls',
      '["https://a.example","https://b.example"]',
      ['https://a.example', 'https://b.example'],
    ],
    [
      'evidence_urls',
      'https://a.example, https://b.example',
      ['https://a.example', 'https://b.example'],
    ],
    ['evidence_urls', 'https://a.example', ['https://a.example']],
    ['probabilities', '{"x":0.5,"y":"0.5"}', { x: 0.5, y: 0.5 }],
    ['probabilities', { x: '0.5', y: 0.5 }, { x: 0.5, y: 0.5 }],
    ['probabilities', '["0.2", 0.8]', [0.2, 0.8]],
    ['probabilities', '0.2,0.8', [0.2, 0.8]],
    ['quantiles', '[{"value":"5","p":"0.5"},"7"]', [{ value: 5, p: 0.5 }, 7]],
    ['quantiles', ['2026-03-01T12:00:00Z'], ['2026-03-01T12:00:00Z']],
    ['resolution_protocol', '{"source":"5"}', { source: '5' }],
    ['resolution_protocol', 'By the bulletin.', 'By the bulletin.'],
    ['resolution_protocol', { n: '5' }, { n: '5' }],
    ['prediction', 'true', true],
    ['prediction', 'yes', 'yes'],
    ['selected_option', '70', '70'],
    ['selected_option', 'true', 'true'],
    ['reasoning', '["a"]', '["a"]'],
    ['scale', 'percent', 'percent'],
  ];
  for (const [name, given, expected] of cases) {
    const args = { question_id: id, reasoning: 'x', [name]: given };
    t.same(read('predict', args)[name], expected, `${name}: ${JSON.stringify(given)}`);
  }
  t.same(read('find_questions', { q: '70', limit: '5', include: 'consensus,trend' }), {
    q: '70',
    limit: 5,
    include: ['consensus', 'trend'],
  });
});

t.test(
  'a text that stands for no such value is refused by name, and nothing is stored',
  async (t) => {
    const forecast = { question_id, reasoning: makeReasoning(), prediction: true };
    for (const wrong of [
      '',
      '  ',
      'much',
      '70%',
      '+70',
      '0x46',
      '7,0',
      'Infinity',
      '12345678901234567891',
    ]) {
      const refused = await callTool('predict', { ...forecast, confidence: wrong });
      t.match(
        refused,
        { isError: true, content: [{ text: /confidence/ }] },
        `confidence: "${wrong}"`,
      );
    }
    for (const [name, wrong] of [
      ['dry_run', 'maybe'],
      ['dry_run', ''],
      ['dry_run', '1'],
      ['probabilities', 'a'],
      ['probabilities', '{"x":'],
      ['quantiles', '{"value":1}'],
      ['continuous_cdf', '[0,"x",1]'],
    ] as const) {
      const refused = await callTool('predict', { ...forecast, confidence: 60, [name]: wrong });
      const text = new RegExp(name);
      t.match(refused, { isError: true, content: [{ text }] }, `${name}: "${wrong}"`);
    }
    for (const [name, wrong] of [
      ['limit', ''],
      ['limit', ' '],
      ['limit', 'all'],
      ['limit', '1.5'],
      ['limit', true],
      ['ids', ''],
      ['ids', []],
      ['ids', '["x"]'],
      ['q', { a: 1 }],
      ['created_after', 'yesterday'],
    ] as const) {
      const refused = await callTool('find_questions', { [name]: wrong });
      const fields = new RegExp(`"path":"arguments.${name}`);
      t.match(refused, { isError: true, content: [{ text: fields }] }, `${name}: ${wrong}`);
    }
    const { body } = await app.call('GET', `/api/questions/${question_id}/predictions`);
    t.equal(body.total, 0);
  },
);

t.test('unknown arguments are refused with the known ones, and null is none', async (t) => {
  const forecast = { question_id, reasoning: makeReasoning(), prediction: true, confidence: 60 };
  const refused = await callTool('predict', { ...forecast, certainty: 60, note: null, mood: '' });
  t.match(refused, {
    isError: true,
    content: [
      {
        text: /predict does not take certainty, mood\. It takes question_id, prediction, confidence/,
      },
    ],
  });
  t.match(refused, { content: [{ text: /"path":"arguments.certainty"/ }] });
  const long = await callTool('vote', { ['x'.repeat(50_000)]: 1 });
  t.ok((long.content[0]?.text?.length ?? 0) < 1_000, 'a long name is cut');
  t.match(read('events', { cursor: '5' }), /events does not take cursor/);
  t.match(read('my_record', { toString: 1 }), /my_record does not take toString/);
  const { body } = await app.call('GET', `/api/questions/${question_id}/predictions`);
  t.equal(body.total, 0);
  const nulls = { probability: null, cdf: null, dry_run: null, idempotency_key: null, scale: null };
  const placed = await callTool('predict', { ...forecast, confidence: '60', ...nulls });
  t.match(placed.answer, { prediction: { confidence: 60 } });
});

t.test('a form asks for the type that the argument has', async (t) => {
  const { key } = await makeAgent(app, { human });
  const asking = await openModern(t, app.url, key, { elicitation: {} });
  const asked: Any[] = [];
  asking.client.setRequestHandler('elicitation/create', ({ params }) => {
    asked.push(params);
    return { action: 'accept', content: { confidence: '64', dry_run: true } };
  });
  await asking.connect();
  const forecast = { question_id, reasoning: makeReasoning(), prediction: true, dry_run: 'maybe' };
  const tried = await asking.callTool('predict', { ...forecast, confidence: 'much' });
  const { properties } = asked[0].requestedSchema;
  t.match(properties, { confidence: { type: 'number' }, dry_run: { type: 'boolean' } });
  t.match(tried.answer, { dry_run: true, forecast: { confidence: 64 } });
});
