import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { t } from 'tap';
import { readSources, type Source } from '../help/sources.js';
import * as tidy from '../help/tidy.js';
import { file, good_script, importing, long_text, tidy_cases } from '../help/tidy-cases.js';

/**
 * The style of the repository, as far as a program can hold it. Each rule is first shown something
 * that breaks it, so that none of them can fall asleep.
 */

const code = ['.ts', '.mts', '.mjs'];
/** Made, and held equal to what it is made of by another test. */
const isWritten = ({ path }: Source): boolean => path !== 'src/client/wire.ts';
const src = readSources(['src'], code).filter(isWritten);
const everything = readSources(['src', 'test', 'bench'], code).filter(isWritten);
const helpers = readSources(['src', 'bench', 'test/help'], code);
const lua = readSources(['src/redis/lua'], ['.lua']);
const sql = readSources(['sql'], ['.sql']);

const scopes = { src, everything, lua, sql, named: [...everything, ...lua] };

for (const [name, { rule, scope, broken }] of Object.entries(tidy_cases)) {
  t.test(name, async (t) => {
    const sources = scopes[scope];
    t.ok(sources.length > 0);
    t.same(rule(sources), []);
    for (const some of broken) {
      t.equal(rule(some).length, 1, `found in ${some.map(({ text }) => text.slice(0, 60)).join()}`);
    }
  });
}

t.test(
  'what is right passes: long texts, good scripts, imports in the right direction',
  async (t) => {
    const query = file('src/a.ts', 'const a = db`', `  select ${long_text}`, '`;');
    t.same(tidy.shortLines([query, file('src/a.ts', `const a = '${long_text}';`)]), []);
    t.same(tidy.shortFiles([file('src/a.ts', ...Array(600).fill('a'))]), []);
    t.same(
      tidy.luaScripts([file('src/redis/lua/a-b-1.lua', ...good_script, 'return KEYS[1]')]),
      [],
    );
    t.same(tidy.directionOfLayers([importing('src/features/a/b.ts', '../../kit/log.js')]), []);
  },
);

/** These are longer than they may be. Shorten them and strike them off; nothing is added. */
const still_long = [
  'src/features/events/projection.ts: export const createProjection = (parts: ProjectionParts) => {',
  'src/features/events/relay.ts: export const createRelay = (deps: Deps, options: RelayOptions): Service => {',
  'test/help/receiver.ts: export const startReceiver = async (names: readonly string[] = []): Promise<Receiver> => {',
  'test/help/service.ts: ): Promise<TestService> => {',
];

t.test('functions have at most 70 lines', async (t) => {
  const bodyOf = (lines: number) => [...Array(lines - 2).fill('  a();')];
  const opened = [
    'const f = () => {',
    'async function f(a) {',
    'const f = async (): Promise<X> => {',
  ];
  for (const line of opened) {
    t.equal(tidy.shortFunctions([file('a.ts', line, ...bodyOf(70), '};')]).length, 0, line);
    t.equal(tidy.shortFunctions([file('a.ts', line, ...bodyOf(71), '};')]).length, 1, line);
  }
  const query = ['const f = () => {', '  db`', ...Array(80).fill('    select 1'), '  `;', '};'];
  t.same(tidy.shortFunctions([file('a.ts', ...query)]), [], 'a text is not counted');
  t.same(
    tidy.longFunctions(helpers).map(({ name }) => name),
    still_long,
  );
});

t.test('the formatter and the linter have nothing to say', async (t) => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const biome = fileURLToPath(import.meta.resolve('@biomejs/biome/bin/biome'));
  const said = await new Promise<string>((resolve) => {
    execFile(
      process.execPath,
      [biome, 'ci', '--colors=off', '.'],
      { cwd: root },
      (error, out, err) => resolve(error === null ? '' : `${out}${err}`),
    );
  });
  t.equal(said, '');
});
