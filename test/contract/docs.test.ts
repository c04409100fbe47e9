import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { commands } from '../../src/boot/commands.mjs';
import { settings } from '../../src/config.js';
import {
  allFaults,
  fillBlocks,
  documents as generated,
  makeTable,
  runDocs,
} from '../../src/tools/docs.js';
import { project_root } from '../help/own-stores.js';
import { readDocument } from '../help/readme.js';
import { t } from '../help/tap.js';

const package_json = JSON.parse(readDocument('package.json')) as {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
};

const markdownFiles = (): readonly string[] =>
  ['', 'bench', 'clients/typescript', 'docs', 'src', 'test']
    .flatMap((folder) =>
      fs
        .readdirSync(path.join(project_root, folder), { recursive: folder !== '' })
        .map((name) => path.join(folder, String(name))),
    )
    .filter((name) => name.endsWith('.md'));

const documents = new Map(markdownFiles().map((name) => [name, readDocument(name)]));
const own = [...documents.keys()].filter((name) => /^(?:[^/]*|docs\/.*)$/.test(name));

t.test('all documents are there', async (t) => {
  for (const name of ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'AGENTS.md']) {
    t.ok(documents.has(name), name);
  }
  t.match(readDocument('LICENSE'), /Apache License\s+Version 2\.0, January 2004/);
});

t.test('the tables of the reference are those of the service', async (t) => {
  for (const [name, fill] of Object.entries(generated)) {
    const page = readDocument(name);
    const { text, changed, problems } = await fill(page);
    t.same([changed, problems], [[], []], `${name}: run \`npm run docs\``);
    t.equal(text, page);
  }
});

t.test('the page of commands has every command', async (t) => {
  const page = readDocument('docs/reference/commands.md');
  t.equal(page.match(/^Usage: prediction-forum /gm)?.length, Object.keys(commands).length);
});

t.test('a table that was changed by hand is found and written again', async (t) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'pf-docs-'));
  t.teardown(() => fs.rmSync(root, { recursive: true, force: true }));
  fs.mkdirSync(path.join(root, 'docs/reference'), { recursive: true });
  for (const name of Object.keys(generated)) {
    fs.writeFileSync(path.join(root, name), readDocument(name));
  }
  const name = 'docs/reference/errors.md';
  const altered = readDocument(name).replace(
    '| `QUESTION_NOT_OPEN` | 409 |',
    '| `QUESTION_NOT_OPEN` | 410 |',
  );
  t.not(altered, readDocument(name));
  const file = path.join(root, name);
  fs.writeFileSync(file, altered);
  const said: string[] = [];
  const screen = { write: (line: string) => said.push(line) };
  const run = (...argv: string[]) => runDocs({ argv, screen }, root);

  t.equal(await run('--check'), 1);
  t.match(said.join(''), /errors\.md is out of date: faults\./);
  t.equal(fs.readFileSync(file, 'utf8'), altered, 'a check changes nothing');
  t.equal(await run(), 0);
  t.equal(fs.readFileSync(file, 'utf8'), readDocument(name));
  t.equal(await run('--check'), 0);
  t.equal(await run('--nonsense'), 2);
});

t.test('markers without a table, and tables without markers, are problems', async (t) => {
  const blocks = new Map([['routes', 'x']]);
  const whole = '<!-- routes:begin -->\n<!-- routes:end -->';
  t.same(fillBlocks(whole, blocks), {
    text: '<!-- routes:begin -->\n\nx\n\n<!-- routes:end -->',
    changed: ['routes'],
    problems: [],
  });
  t.same(fillBlocks('no markers', blocks).problems, [
    'The table "routes" needs one pair of markers.',
  ]);
  t.equal(fillBlocks(`${whole}\n${whole}`, blocks).problems.length, 1, 'two pairs');
  t.same(fillBlocks(`${whole}\n<!-- mine:begin -->`, blocks).problems, [
    'There is no table "mine".',
  ]);
});

t.test('cells cannot break a table', async (t) => {
  t.equal(
    makeTable(['a', 'b'], [['x|y', 'two\nlines']]),
    '| a | b |\n|---|---|\n| x\\|y | two lines |',
  );
});

t.test('one code has one status, but for the one that is told', async (t) => {
  const statuses = new Map<string, Set<number>>();
  for (const { code, status } of allFaults()) {
    statuses.set(code, (statuses.get(code) ?? new Set()).add(status));
  }
  const several = [...statuses].filter(([, found]) => found.size > 1).map(([code]) => code);
  t.same(several, ['INVALID_API_KEY']);
  const alike = allFaults().map(({ code, status, sentence }) => `${code} ${status} ${sentence}`);
  t.same(alike, [...new Set(alike)], 'no fault is defined twice');
});

/** Anchors as GitHub generates them from headings. */
const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    Array.from(text.matchAll(/^#+ (.+)$/gm), ([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\- _]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );

const withoutCode = (text: string): string => text.replace(/^```.*?^```$/gms, '');

t.test('every relative link names a file and a heading that are there', async (t) => {
  let links = 0;
  for (const [name, text] of documents) {
    for (const [, target = ''] of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
      // Absolute paths are addresses of a running forum.
      if (/^(?:[a-z]+:|\/)/.test(target)) continue;
      links += 1;
      const [file = '', anchor] = target.split('#');
      const found = file === '' ? name : path.join(path.dirname(name), file);
      t.ok(fs.existsSync(path.join(project_root, found)), `${name}: ${target}`);
      if (anchor === undefined) continue;
      const linked = documents.get(found) ?? '';
      t.ok(anchorsOf(linked).has(anchor), `${name}: ${target} is a heading`);
    }
  }
  t.ok(links > 10, 'links were found at all');
});

t.test('every path in code marks is there', async (t) => {
  let paths = 0;
  for (const name of own) {
    for (const [, found = ''] of withoutCode(documents.get(name) ?? '').matchAll(
      /`((?:src|test|bench|sql)\/[\w./-]+)`/g,
    )) {
      paths += 1;
      t.ok(fs.existsSync(path.join(project_root, found)), `${name}: ${found}`);
    }
  }
  t.ok(paths > 10, 'paths were found at all');
});

t.test('every npm script that is named exists', async (t) => {
  let named = 0;
  for (const [name, text] of documents) {
    for (const [, run, short] of text.matchAll(/\bnpm (?:run ([\w:-]+)|(start|test)\b)/g)) {
      named += 1;
      t.ok(Object.hasOwn(package_json.scripts, run ?? short ?? ''), `${name}: ${run ?? short}`);
    }
  }
  t.ok(named > 10, 'scripts were found at all');
  for (const name of Object.keys(package_json.scripts)) {
    t.match(
      readDocument('docs/reference/scripts.md'),
      new RegExp(`\\| \`npm (?:run )?${name}\` \\|`),
    );
  }
});

/** True if the name is a setting, with or without `PF_` and `_FILE`. */
const isSetting = (name: string): boolean =>
  [name, name.replace(/_FILE$/, '')].some((one) =>
    Object.hasOwn(settings, one.replace(/^PF_/, '')),
  );

t.test('every setting that an example gives is one', async (t) => {
  const given = own.flatMap((name) =>
    Array.from(
      (documents.get(name) ?? '').matchAll(/(?<![\w{$])([A-Z]+(?:_[A-Z]+)*)=(?=[\w<'/])/g),
      ([, found = '']) => found,
    ),
  );
  const made_in_shells = 'BASE JSON EMAIL ME KEY CODE TOKEN QUESTION HOOK'.split(' ');
  const others = [
    ...made_in_shells,
    'NODE_EXTRA_CA_CERTS',
    'TAP_TIMEOUT',
    'TEST_LOG_LEVEL',
    'TEST_REDIS',
  ];
  const wrong = given.filter((name) => !isSetting(name) && !others.includes(name));
  t.same(wrong, []);
  t.ok(given.includes('DATABASE_URL'), 'settings were found at all');
});

t.test('the architecture says why each dependency is there', async (t) => {
  const architecture = readDocument('docs/explanation/architecture.md');
  const { dependencies, devDependencies } = package_json;
  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    t.ok(architecture.includes(`\`${name}\``), name);
  }
});

t.test('the README is short', async (t) => {
  const readme = readDocument('README.md');
  t.ok(readme.split('\n').length <= 120, 'lines');
});

t.test('the contents list every page of docs once, with its kind', async (t) => {
  const contents = readDocument('docs/README.md');
  for (const name of documents.keys()) {
    if (!/^docs\/.+\//.test(name)) continue;
    t.equal(contents.split(`](${name.slice('docs/'.length)}): `).length, 2, name);
  }
});

t.test('a page begins with its title, and then with one sentence', async (t) => {
  for (const [name, text] of documents) {
    if (!/^docs\/.+\//.test(name)) continue;
    const [title = '', first = ''] = text.split('\n\n');
    t.match(title, /^# .+$/, name);
    t.match(first, /^[A-Z].*\.$/s, `${name}: ${first}`);
    t.notMatch(first, /[.!?] /, `${name}: ${first}`);
  }
});
