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

/** The OpenAPI document: valid, and of named schemas that generated clients have as types. */

const app = await startApp(t, { roles: ['api'] });
const source = JSON.stringify((await app.call('GET', '/openapi.json')).body);
// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes.
const document: any = JSON.parse(source);
const schemas = document.components.schemas;

t.test('it is valid by the linter of Redocly, which does refuse', async (t) => {
  const config = await createConfig({ extends: ['spec'] });
  const lint = async (text: string) =>
    (await lintFromString({ source: text, absoluteRef: '/openapi.json', config })).map(
      ({ message, location }) => `${message} ${location[0]?.pointer}`,
    );
  t.same(await lint(source), []);
  const broken = source.replace('#/components/schemas/Question"', '#/components/schemas/Nothing"');
  t.not((await lint(broken)).length, 0);
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
