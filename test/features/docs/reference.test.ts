import { makeReference } from '../../../src/features/docs/reference.js';
import type { OpenApi, OpenApiSchema } from '../../../src/http/openapi.js';
import { t } from '../../help/tap.js';

/** A document with one operation, whose body and answer are these. */
const describe = async (body: OpenApiSchema, answer: OpenApiSchema = {}) => {
  const document: OpenApi = {
    openapi: '3.1.0',
    tags: [{ name: 'votes', description: 'Votes.' }],
    paths: {
      '/api/votes/{id}': {
        post: {
          operationId: 'castVote',
          summary: 'Vote',
          tags: ['votes'],
          parameters: [
            {
              name: 'limit',
              in: 'query',
              required: false,
              description: 'Rows of a page.',
              schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
            },
          ],
          requestBody: { required: true, content: { 'application/json': { schema: body } } },
          responses: { 200: { content: { 'application/json': { schema: answer } } } },
          'x-auth': 'linked',
        },
      },
    },
    components: {
      schemas: {
        Vote: { type: 'object', properties: { voter: { $ref: '#/components/schemas/Voter' } } },
        Voter: { type: 'object', properties: { name: { type: 'string', maxLength: 50 } } },
      },
      securitySchemes: {},
    },
  };
  const { groups, object_paths } = await makeReference(document, 'https://forum.test');
  const [operation] = groups[0]?.operations ?? [];
  if (operation === undefined) throw new Error('There is no operation.');
  return { group: groups[0], operation, object_paths };
};

const text: OpenApiSchema = { type: 'string' };
const nothing: OpenApiSchema = { type: 'null' };

t.test('types are short texts', async (t) => {
  const types: readonly (readonly [OpenApiSchema, string])[] = [
    [{ enum: ['up', 'down'] }, '"up" | "down"'],
    [
      { anyOf: [{ type: 'integer', minimum: 1, maximum: 1_000 }, nothing] },
      'integer 1–1,000 | null',
    ],
    [{ type: 'array', items: { anyOf: [text, nothing] } }, '(string | null)[]'],
    [{ type: 'array', items: { $ref: '#/components/schemas/Vote' } }, 'Vote[]'],
    [{ type: 'object', additionalProperties: { type: 'number' } }, '{[name]: number}'],
    [{ type: 'string', format: 'date-time' }, 'time'],
    [{ type: 'string', maxLength: 9 }, 'string ≤ 9'],
    [{}, 'any'],
  ];
  for (const [schema, wanted] of types) {
    const { operation } = await describe({ type: 'object', properties: { one: schema } });
    t.equal(operation.body[0]?.type, wanted);
  }
});

t.test('members of unnamed objects and of all alternatives are listed once, by path', async (t) => {
  const { operation } = await describe({
    anyOf: [
      { type: 'object', required: ['a'], properties: { a: { ...text, description: 'First.' } } },
      {
        type: 'object',
        properties: {
          a: text,
          list: { type: 'array', items: { type: 'object', properties: { b: text } } },
        },
      },
    ],
  });
  t.same(
    operation.body.map(({ name, is_required, about }) => [name, is_required, about]),
    [
      ['a', true, 'First.'],
      ['list', false, ''],
      ['list[].b', false, ''],
    ],
  );
});

t.test('a parameter has its description and its default', async (t) => {
  const { operation } = await describe({ type: 'object' });
  t.match(operation.parameters, [
    { name: 'limit', type: 'integer 1–100', about: 'Rows of a page. Default: `20`.' },
  ]);
});

t.test('named objects are on one page, with the objects that they mention', async (t) => {
  const { group, object_paths } = await describe({}, { $ref: '#/components/schemas/Vote' });
  t.same(
    group?.objects.map(({ name }) => name),
    ['Vote', 'Voter'],
  );
  t.equal(object_paths.get('Voter'), '/docs/api/votes#Voter');
});
