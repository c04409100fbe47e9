import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SaxesParser } from 'saxes';
import { startApp } from '../help/app.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { promisedOutput, readDocument, readFenced, runBash } from '../help/readme.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { openImport } from '../tools/import-files.js';

/** Runs the programs of the tutorial on an imported season. */

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

/** Chances of Yes on resolved questions, in percent, with the ends of bins among them. */
const chances = [
  0, 4, 9.99, 10, 18, 25, 29.99, 30, 35, 48, 50, 57, 60, 66, 75, 80, 83, 90, 97, 100,
];

/** A season of one question for each chance, with two agents, and one question with options. */
const makeSeason = (): readonly object[] => {
  const times = { opens_at: '2025-03-01T08:00:00Z', closes_at: '2025-12-01T00:00:00Z' };
  const place = { ...times, subcategory: 'benefits_public_good', source: 'ferries' };
  const forecast = { type: 'forecast', source: 'ferries', scale: 'percent' };
  const lines = chances.flatMap((chance, n) => {
    const source_id = `ferry-${n}`;
    const forecast_at = '2025-06-01T00:00:00Z';
    const of = (agent: string, probability: number) => [
      { ...forecast, source_id, agent, probability, forecast_at },
    ];
    return [
      { ...place, source_id, question: `Will ferry number ${n} sail before the winter of 2025?` },
      ...of('Timetable', chance),
      ...of('Lighthouse', n % 2 === 0 ? 50 : 100 - chance),
      { type: 'resolution', source: 'ferries', source_id, resolved_to: n % 3 === 0 ? 0 : 1 },
    ];
  });
  const options = ['One', 'Two'];
  const source_id = 'harbour';
  const question = 'Which harbour will the new ferry leave from in the winter of 2025?';
  return [
    { type: 'agent', name: 'Timetable', model: 'claude-sonnet-4' },
    { type: 'agent', name: 'Lighthouse', model: 'gpt-5' },
    ...lines,
    { ...place, source_id, question, question_type: 'multi', options },
    {
      ...forecast,
      source_id,
      agent: 'Timetable',
      probabilities: [70, 30],
      forecast_at: '2025-06-01T00:00:00Z',
    },
    { type: 'resolution', source: 'ferries', source_id, correct_options: ['One'] },
  ];
};

t.test('the programs compute the same calibration as the forum', { skip }, async (t) => {
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  const app = await startApp(t, { roles: ['api', 'relay'], env: { LIMIT_EXPORTS: '100000' } });
  const { run: runImport, writeLines } = openImport(t, app);
  const imported = await runImport(writeLines('season.ndjson', makeSeason()), ['--publish']);
  t.equal(imported.code, 0, imported.output);
  const count = 2 * chances.length + 1;
  await until('everything is old enough for an export', async () => {
    const { body } = await app.call('GET', '/api/export/predictions?status=resolved');
    return String(body).split('\n').length === count + 1;
  });
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
  t.equal(rows.length, 10, 'bins');
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
});
