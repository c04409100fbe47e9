import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  clusterProblem,
  descriptorProblem,
  engineProblem,
  publicUrlProblem,
  readMachine,
  startProblem,
} from '../../src/boot/machine.mjs';
import { t } from '../help/tap.js';

/** Conditions that prevent any start are reported before anything is built. */

const machine = { platform: 'linux', node: '20.19.2', glibc: '2.36', descriptors: 65_536 };

t.test('a pair of Node and C library without a binary of the engine', async (t) => {
  const say = (node: string, glibc: string | undefined, platform = 'linux') =>
    engineProblem({ ...machine, node, glibc, platform });
  for (const [node, glibc] of [
    ['20.11.0', '2.27'],
    ['20.19.2', '2.36'],
    ['22.1.0', '2.38'],
    ['24.9.0', '2.41'],
  ] as const) {
    t.equal(say(node, glibc), null, `${node} ${glibc}`);
  }
  t.equal(say('24.0.0', undefined, 'darwin'), null);
  t.match(
    say('22.1.0', '2.36'),
    /^Node 22 needs glibc 2\.38 and this system has 2\.36: use Node 20/,
  );
  t.match(say('24.1.0', '2.37'), /^Node 24 needs glibc 2\.38/);
  t.match(say('24.1.0', '2.17'), /^glibc 2\.17 is too old: use a system with 2\.38 or newer/);
  t.match(say('20.19.2', '2.9'), /^glibc 2\.9 is too old/);
  t.match(say('20.19.2', undefined), /^This system has no glibc/);
  for (const node of ['18.20.0', '19.0.0', '21.7.3', '23.1.0', '25.0.0', '26.1.0']) {
    t.match(say(node, '2.41'), `Node ${node} is not supported: use Node 20, 22 or 24.`);
  }
  t.match(say('20.10.0', '2.41'), /20\.11 or newer/);
  t.equal(engineProblem(readMachine()), null, 'these tests run here');
});

t.test('too few file descriptors', async (t) => {
  t.equal(descriptorProblem({ descriptors: 1_024 }), null);
  t.match(descriptorProblem({ descriptors: 1_023 }), /1023 files here .* 1024: run `ulimit -n/);
});

t.test('an address with more than a host and a port', async (t) => {
  for (const url of ['https://a.example', 'https://a.example/', 'http://127.0.0.1:8080', '']) {
    t.equal(publicUrlProblem(url), null, url);
  }
  for (const more of ['/forum', '/forum/', '?a=1', '#a']) {
    t.match(publicUrlProblem(`https://a.example${more}`), /its own host name/, more);
  }
  t.match(publicUrlProblem('https://me:pw@a.example'), /its own host name/);
});

t.test('data of another Postgres, and nothing where there are none', async (t) => {
  const data_dir = t.testdir({});
  const cluster = path.join(data_dir, 'postgres');
  const here = (env: NodeJS.ProcessEnv = {}) =>
    startProblem({ DATA_DIR: data_dir, ...env }, '18.4.0-beta.17', machine);
  t.equal(here(), null);
  mkdirSync(cluster);
  writeFileSync(path.join(cluster, 'PG_VERSION'), '18\n');
  t.equal(here(), null);
  writeFileSync(path.join(cluster, 'PG_VERSION'), '17\n');
  t.match(here(), `${cluster} was created by Postgres 17, and this program has Postgres 18`);
  t.match(here(), /npm run backup.*npm run restore/);
  t.equal(here({ DATABASE_URL: 'postgres://elsewhere/a' }), null, 'it is not used');
  const elsewhere = path.join(data_dir, 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(path.join(elsewhere, 'PG_VERSION'), '16\n');
  writeFileSync(path.join(data_dir, 'postgres.place'), `${elsewhere}\n`);
  t.match(here(), `${elsewhere} was created by Postgres 16`);
  t.match(clusterProblem(elsewhere, '18.4.0'), /Postgres 16/);
  t.match(here({ PUBLIC_URL: 'https://a.example/x' }), /^PUBLIC_URL: The address must have only/);
});
