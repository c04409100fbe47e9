import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SaxesParser } from 'saxes';
import { keepDevCa } from '../../src/process/embedded/dev-ca.js';
import { runDemo } from '../../src/tools/demo.js';
import { startApp } from '../help/app.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { promisedOutput, readDocument, readFenced, runBash } from '../help/readme.js';
import { t } from '../help/tap.js';

/** Runs the programs of the tutorial on the data of the demo. */

const tutorial = readDocument('docs/tutorials/calibration-plot.md');
const [download = '', sort = '', compare = '', draw = ''] = readFenced(tutorial, 'bash');
const programs = readFenced(tutorial, 'py');
const names = ['bins.py', 'compare.py', 'plot.py'];
const [table = '', verdict = '', drawn = ''] = readFenced(tutorial, 'text');

const skip = spawnSync('python3', ['--version']).status === 0 ? false : 'there is no python3';

/** A line without its numbers. */
const wordsOf = (line: string): string =>
  line
    .replace(/[\d.]+/g, 'N')
    .replace(/ +/g, ' ')
    .trim();

t.test(
  'the programs compute the calibration of the demo as the forum does',
  { skip },
  async (t) => {
    const data_dir = makeTestFolder();
    const folder = makeTestFolder();
    t.teardown(() => [data_dir, folder].map(removeTestFolder));
    const { ca_file } = await keepDevCa(data_dir);
    const env = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: ca_file };
    const app = await startApp(t, { env });
    writeFileSync(path.join(data_dir, 'admin-key'), `${app.admin_key}\n`);
    const argv = ['--url', app.url, '--data', data_dir, '--agents', '8'];
    t.equal(await runDemo({ argv, screen: { write: () => undefined } }), 0);
    t.equal(programs.length, names.length);
    for (const [n, name] of names.entries())
      writeFileSync(path.join(folder, name), programs[n] ?? '');
    const run = (script: string) => runBash(script, { BASE: app.url }, folder);
    /** The lines of a step that succeeds. */
    const follow = async (script: string) => {
      const ran = await run(script);
      t.same([ran.code, ran.errors], [0, ''], script);
      return ran.lines;
    };

    t.same(await follow(download), promisedOutput(download));
    const [head, ...rows] = await follow(sort);
    const [promised_head, promised_row] = table.split('\n');
    t.equal(head, promised_head);
    t.ok(rows.length >= 8, 'bins');
    for (const row of rows) t.equal(wordsOf(row), wordsOf(promised_row ?? ''));

    const { body } = await app.call('GET', '/api/export/calibration?event=yes');
    const [group] = body.groups as { n: number; brier: number; bins: { n: number }[] }[];
    t.equal(rows.length, group?.bins.filter(({ n }) => n > 0).length);
    const [said = ''] = await follow(compare);
    t.match(said, `${group?.n} forecasts, Brier score ${group?.brier.toFixed(3)}.`);
    t.equal(wordsOf(said), wordsOf(verdict));

    t.equal((await follow(draw)).join(), drawn.trim().replace(/\d+/, String(group?.n)));
    const picture = readFileSync(path.join(folder, 'calibration.svg'), 'utf8');
    new SaxesParser().write(picture).close();
    t.equal(picture.match(/<circle /g)?.length, rows.length);

    const csv = path.join(folder, 'predictions.csv');
    const forecasts = readFileSync(csv, 'utf8');
    writeFileSync(
      csv,
      forecasts.replace(/,binary,,,resolved,1,false,/, ',binary,,,resolved,1,true,'),
    );
    const changed = await run(compare);
    t.equal(changed.code, 1, 'one other outcome is found');
    t.match(changed.errors, /^These bins differ: \[\d\]/);

    const of_family = (script: string) => script.replace(/(\?[^"]+)"/, '$1&model_family=claude"');
    await follow(of_family(download));
    const [of_claude = ''] = await follow(of_family(compare));
    t.match(of_claude, /All bins are equal/);
    t.ok(Number.parseInt(of_claude, 10) < (group?.n ?? 0), 'fewer forecasts');
  },
);
