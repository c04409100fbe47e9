import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { t } from 'tap';
import { type Client, createClient } from '../../src/client/node.js';
import { exampleOf, given_ids } from '../../src/features/docs/examples.js';
import { placeholdersOf } from '../../src/features/docs/samples.js';
import type { Sample } from '../../src/kit/http/openapi.js';
import type { Route } from '../../src/kit/http/route.js';
import { all_routes } from '../../src/routes.js';
import { startApp } from '../help/app.js';
import { makeDocsWorld, type Vars } from '../help/docs-world.js';
import { project_root } from '../help/own-stores.js';

/** Every example of the reference is run as it stands there, against a real service. */

const no_limit = '100000000';
const app = await startApp(t, {
  env: {
    ...{ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', LIMIT_KEY: no_limit, LIMIT_WEBHOOKS: no_limit },
    ...{ LIMIT_EXPORTS: no_limit, LIMIT_COMMENTS: no_limit, LIMIT_VOTES: no_limit },
    LIMIT_PREDICTIONS: no_limit,
  },
});
const prepare = await makeDocsWorld(app);
// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes.
const document: any = (await app.call('GET', '/openapi.json')).body;
const routes = (all_routes as readonly Route[]).filter(({ documented }) => documented);

const operationOf = ({ path: where, method }: Route) => document.paths[where][method.toLowerCase()];
const sampleOf = (route: Route, lang: string): Sample | undefined =>
  (operationOf(route)['x-codeSamples'] as Sample[]).find((one) => one.lang === lang);

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
(addFormats as unknown as { default: (one: Ajv2020) => void }).default(ajv);

/** What is wrong with an answer by the document; null when it is as documented. */
const findProblem = (route: Route, status: number, type: string, body: unknown): string | null => {
  const wanted = exampleOf(route).status;
  if (status !== wanted) return `${status} instead of ${wanted}: ${JSON.stringify(body)}`;
  const content = operationOf(route).responses[status]?.content ?? {};
  const documented = Object.keys(content)[0] ?? '';
  if (!type.startsWith(documented)) return `${type} instead of ${documented}`;
  if (documented !== 'application/json') return null;
  const check = ajv.compile(content[documented].schema);
  return check(body) ? findRefusedItem(body) : ajv.errorsText(check.errors);
};

/** Of a list whose items are judged one by one: the first that is refused. */
const findRefusedItem = (body: unknown): string | null => {
  const { results = [] } = body as { results?: readonly { code?: string; error?: string }[] };
  const refused = results.find(({ code }) => code !== undefined);
  return refused === undefined ? null : JSON.stringify(refused);
};

const home = mkdtempSync(path.join(os.tmpdir(), 'pf-docs-'));
t.teardown(() => rmSync(home, { recursive: true, force: true }));
writeFileSync(path.join(home, '.curlrc'), 'silent\nshow-error\ninclude\n');

const environment = (vars: Vars) => ({
  ...{ PATH: process.env['PATH'] ?? '', CURL_HOME: home, HOME: home, FORUM: app.url },
  ...vars,
});

interface Said {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** What `curl --include` prints. */
const readSaid = (printed: string): Said => {
  const at = printed.indexOf('\r\n\r\n');
  const head = printed.slice(0, at);
  return {
    status: Number(/^HTTP\/\S+ (\d+)/.exec(head)?.[1]),
    type: /^content-type: *(.*)$/im.exec(head)?.[1]?.trim() ?? '',
    text: printed.slice(at + 4),
  };
};

/** An answer without an end is looked at until its head is there. */
const runUntilHead = (source: string, vars: Vars): Promise<string> =>
  new Promise((resolve, reject) => {
    const running = spawn('bash', ['-c', `exec ${source}`], { env: environment(vars) });
    let printed = '';
    running.stdout.on('data', (bytes: Buffer) => {
      printed += bytes.toString('latin1');
      if (!printed.includes('\r\n\r\n')) return;
      running.kill();
      resolve(printed);
    });
    running.on('error', reject);
    running.on('exit', () => reject(new Error(`ended without a head: ${printed}`)));
  });

const runToEnd = (source: string, vars: Vars): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = {
      env: environment(vars),
      maxBuffer: 64 * 1024 * 1024,
      encoding: 'utf8',
    } as const;
    execFile('bash', ['-c', source], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${error.message} ${stderr}`));
    });
  });

const runInShell = async (route: Route, source: string): Promise<string | null> => {
  const vars = await prepare(route);
  const printed = await (route.is_endless ? runUntilHead : runToEnd)(source, vars);
  const { status, type, text } = readSaid(printed);
  const body = type.startsWith('application/json') && text !== '' ? JSON.parse(text) : text;
  return findProblem(route, status, type, body);
};

const clientsOf = ({ API_KEY = '', TOKEN = '', ADMIN_KEY = '' }: Vars, is_anonymous: boolean) => {
  const base_url = app.url;
  return {
    forum: createClient(is_anonymous ? { base_url } : { base_url, api_key: API_KEY }),
    person: createClient({ base_url, token: TOKEN }),
    admin: createClient({ base_url, headers: { 'x-admin-key': ADMIN_KEY } }),
  };
};

const lowered = (vars: Vars): Record<string, string> =>
  Object.fromEntries(Object.entries(vars).map(([name, value]) => [name.toLowerCase(), value]));

/** The status is not in what a call returns, so it is taken from `attempt` of the same client. */
const runWithClient = async (route: Route, source: string): Promise<string | null> => {
  const vars = await prepare(route);
  const clients = clientsOf(vars, exampleOf(route).who === 'nobody');
  let status = 0;
  const spied = Object.entries(clients).map(([name, client]): [string, Pick<Client, 'call'>] => [
    name,
    {
      call: async (id, ...input) => {
        const outcome = await client.attempt(id, ...input);
        status = outcome.status;
        if (outcome.ok) return outcome.body;
        throw new Error(JSON.stringify(outcome.fault));
      },
    },
  ]);
  const given = { ...lowered(vars), ...Object.fromEntries(spied) };
  const script = `return (async () => { ${source}\nreturn answer; })();`;
  const run = new Function(...Object.keys(given), script);
  const answer: unknown = await run(...Object.values(given));
  const documented = Object.keys(operationOf(route).responses[status]?.content ?? {})[0] ?? '';
  return findProblem(route, status, documented, answer);
};

/** A few at a time; what is wrong, by operation. */
const runAll = async (
  asked: readonly (readonly [Route, string])[],
  run: (route: Route, source: string) => Promise<string | null>,
): Promise<readonly string[]> => {
  const waiting = [...asked];
  const told: string[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [route, source] = next;
      const problem = await run(route, source).catch((error: unknown) => String(error));
      if (problem !== null) told.push(`${route.id}: ${problem}`);
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  return told;
};

const samplesIn = (lang: string): readonly (readonly [Route, string])[] =>
  routes.flatMap((route) => {
    const source = sampleOf(route, lang)?.source;
    return source === undefined ? [] : [[route, source] as const];
  });

t.test('every operation has an example, and what is given is given to an operation', async (t) => {
  t.equal(samplesIn('Shell').length, routes.length);
  t.equal(samplesIn('TypeScript').length, routes.filter((one) => !one.is_endless).length);
  const ids = routes.map(({ id }) => id);
  t.same(
    given_ids.filter((id) => !ids.includes(id)),
    [],
  );
});

t.test('the examples for a shell are answered as the document says', async (t) => {
  t.same(await runAll(samplesIn('Shell'), runInShell), []);
});

t.test('the examples of the client library are answered as the document says', async (t) => {
  t.same(await runAll(samplesIn('TypeScript'), runWithClient), []);
});

t.test('an example that is wrong is found', async (t) => {
  const route = routes.find(({ id }) => id === 'getQuestion') as Route;
  const wrong = 'curl "$FORUM/api/questions/$AGENT_ID"';
  t.match(await runAll([[route, wrong]], runInShell), [/^getQuestion: 404 instead of 200/]);
  const other = 'const answer = await forum.call("me");';
  t.match(await runAll([[route, other]], runWithClient), [/^getQuestion: /]);
});

/** All examples in one program, each in a function of its own; what the compiler says. */
const typeProblems = async (sources: readonly string[]): Promise<string> => {
  const names = new Set(routes.flatMap((route) => placeholdersOf(exampleOf(route))));
  const text = [
    `import type { Client } from '${path.join(project_root, 'src/client/index.js')}';`,
    'declare const forum: Client, person: Client, admin: Client;',
    ...[...names].map((name) => `declare const ${name.toLowerCase()}: string;`),
    ...sources.map(
      (source, n) => `export const run${n} = async () => {\n${source}\nreturn answer; };`,
    ),
  ].join('\n');
  const file = path.join(home, 'examples.ts');
  writeFileSync(file, text);
  const compiler = path.join(project_root, 'node_modules/typescript/bin/tsc');
  const options = '--noEmit --strict --skipLibCheck --target es2022 --module nodenext';
  const lib = ['--lib', 'es2023,dom', '--ignoreConfig', file];
  return new Promise((resolve) => {
    execFile('node', [compiler, ...options.split(' '), ...lib], (_, said) => resolve(said));
  });
};

t.test('the examples of the client library have the types of the library', async (t) => {
  t.equal(await typeProblems(samplesIn('TypeScript').map(([, source]) => source)), '');
  const wrong = "const answer = await forum.call('predict', { body: { reasoning: 7 } });";
  t.match(await typeProblems([wrong]), /error TS/);
});
