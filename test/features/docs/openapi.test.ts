import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Type } from '@sinclair/typebox';
import { generate } from 'openapi-typescript-codegen';
import { makeOpenApi } from '../../../src/http/openapi.js';
import { reply, routeFor } from '../../../src/http/route.js';
import { named } from '../../../src/http/schemas.js';
import { startApp } from '../../help/app.js';
import { project_root } from '../../help/own-stores.js';
import { t } from '../../help/tap.js';

/** The OpenAPI document is valid, and its named schemas become types in generated clients. */

const app = await startApp(t, { roles: ['api'] });
const source = JSON.stringify((await app.call('GET', '/openapi.json')).body);
// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes.
const document: any = JSON.parse(source);
const schemas = document.components.schemas;

t.test('it is valid by the linter of Redocly with its examples, which does refuse', async (t) => {
  const rules = { 'no-invalid-media-type-examples': 'error' } as const;
  const config = await createConfig({ extends: ['spec'], rules });
  const lint = async (text: string) =>
    (await lintFromString({ source: text, absoluteRef: '/openapi.json', config })).map(
      ({ message, location }) => `${message} ${location[0]?.pointer}`,
    );
  t.same(await lint(source), []);
  const broken = source.replace('#/components/schemas/Question"', '#/components/schemas/Nothing"');
  t.not((await lint(broken)).length, 0);
  t.not((await lint(source.replace('"closes_at":"2030', '"closes_at":"$2030'))).length, 0);
});

t.test('no object is one without members to a generator of clients', (t) => {
  const find = (value: unknown, at: string): string[] => {
    if (typeof value !== 'object' || value === null) return [];
    const { type, properties, additionalProperties } = value as Record<string, unknown>;
    const is_empty = Object.keys(properties ?? {}).length === 0;
    const is_closed = type === 'object' && is_empty && additionalProperties === undefined;
    const is_pattern = 'patternProperties' in value;
    const inner = Object.entries(value).flatMap(([name, one]) => find(one, `${at}/${name}`));
    return is_closed || is_pattern ? [at, ...inner] : inner;
  };
  t.same(find(document, ''), []);
  t.ok(find({ type: 'object' }, 'x').length > 0);
  const { data } = schemas.Event.properties;
  t.same(data, { $ref: '#/components/schemas/EventData' });
  t.match(schemas.EventData.properties, { probability: {}, question_id: { format: 'uuid' } });
  t.end();
});

t.test('what was placed, was there already or was only checked can be told apart', (t) => {
  const { responses } = document.paths['/api/questions/{id}/predict'].post;
  const namesOf = (status: string): string[] => {
    const { schema } = responses[status].content['application/json'];
    const refs: { $ref: string }[] = schema.anyOf ?? [schema];
    return refs.map(({ $ref }) => $ref.split('/').at(-1) ?? '');
  };
  t.same(namesOf('201'), ['PlacedPrediction']);
  t.same(namesOf('200'), ['ReplayedPrediction', 'DryRun']);
  const constants = ['PlacedPrediction', 'ReplayedPrediction', 'DryRun'].map((name) => {
    const { dry_run, replayed } = schemas[name].properties;
    return [dry_run.const, replayed?.const];
  });
  t.same(constants, [
    [false, false],
    [false, true],
    [true, undefined],
  ]);
  t.end();
});

t.test('what agents work with has a name and a description', async (t) => {
  for (const name of [
    'Question',
    'Prediction',
    'Agent',
    'Comment',
    'Event',
    'Consensus',
    'Error',
  ]) {
    t.match(schemas[name], { type: 'object', description: /^[A-Z].+\.$/ }, name);
  }
  const answerOf = (where: string, method: string, status = '200') =>
    document.paths[where][method].responses[status].content['application/json'].schema;
  t.same(answerOf('/api/questions/{id}', 'get').properties.question, {
    $ref: '#/components/schemas/Question',
  });
  t.same(answerOf('/api/questions/{id}/predict', 'post', '201'), {
    $ref: '#/components/schemas/PlacedPrediction',
  });
  t.same(schemas.PlacedPrediction.properties.prediction, {
    $ref: '#/components/schemas/Prediction',
  });
  t.same(answerOf('/api/questions/{id}', 'get', '404'), { $ref: '#/components/schemas/Error' });
  const { requestBody } = document.paths['/api/questions/{id}/predict'].post;
  t.same(requestBody.content['application/json'].schema, {
    $ref: '#/components/schemas/PredictRequest',
  });
  t.match(schemas.PredictRequest, { type: 'object', description: /^[A-Z].+\.$/ });
});

t.test('every name is that of one schema, and is used', async (t) => {
  const used = new Set(
    Array.from(source.matchAll(/"#\/components\/schemas\/(\w+)"/g), ([, n]) => n),
  );
  t.same([...used].sort(), Object.keys(schemas).sort());
  const route = routeFor<unknown>();
  const two = ['a', 'b'].map((member) =>
    route({
      id: member,
      method: 'GET',
      path: `/${member}`,
      summary: member,
      tag: 'x',
      auth: 'public',
      returns: { 200: named('Toy', 'A toy.', Type.Object({ [member]: Type.String() })) },
      handle: () => reply(200, {}),
    }),
  );
  const parts = { info: { title: 'x', version: '1', description: 'y' }, server_url: '', tags: {} };
  await t.rejects(makeOpenApi(two, { ...parts, bodyOf: () => ({}) }), /the name Toy/);
});

const use_of_types = `import type { Event, Prediction, PredictRequest, Question } from './index.js';
export const titleOf = ({ question, closes_at }: Question): string => question + closes_at;
export const chanceOf = ({ probability }: Prediction): number => probability ?? 50;
export const reasonsOf = ({ reasoning }: PredictRequest): string => reasoning;
export const placeOf = ({ offset, event }: Event): string => \`\${offset} \${event}\`;
`;

t.test('a client by openapi-typescript-codegen has Question and Prediction', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-openapi-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  await generate({ input: document, output: folder, exportServices: false, exportCore: false });
  t.match(readFileSync(path.join(folder, 'index.ts'), 'utf8'), /Question.*Prediction/s);
  const compile = (text: string): string => {
    const file = path.join(folder, 'use.ts');
    writeFileSync(file, text);
    const options = '--noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler';
    const tsc = path.join(project_root, 'node_modules/.bin/tsc');
    try {
      execFileSync(tsc, [...options.split(' '), '--ignoreConfig', file], { cwd: folder });
      return '';
    } catch (error) {
      return String((error as { stdout: Buffer }).stdout);
    }
  };
  t.equal(compile(use_of_types), '');
  t.match(compile(use_of_types.replace('closes_at', 'shuts_at')), /'shuts_at' does not exist/);
});
