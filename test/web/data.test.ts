import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { t } from '../help/tap.js';
import { openForum, textOf } from './season.js';

const { app, show } = await openForum(t);

/** The text of the element with this id, as a reader would copy it. */
const copied = (html: string, id: string): string => {
  const [, inner = ''] =
    new RegExp(`<pre id="${id}"[^>]*><code>(.*?)</code>`, 's').exec(html) ?? [];
  return inner.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
};

t.test('each file has lines, columns, a licence and a citation', async (t) => {
  const files = [
    'predictions',
    'revisions',
    'questions',
    'resolutions',
    'comments',
    'consensus-history',
  ];
  for (const file of files) {
    const { status, body } = await show(`/data?file=${file}&format=parquet`);
    t.equal(status, 200, file);
    const { body: manifest } = await app.call('GET', `/api/export/${file}/manifest`);
    t.equal(
      copied(body, 'curl'),
      `curl -sSf '${app.url}/api/export/${file}?format=parquet' -o ${file}.parquet`,
    );
    t.match(copied(body, 'duckdb'), `read_parquet('${file}.parquet')`);
    t.match(copied(body, 'pandas'), `pd.read_parquet("${file}.parquet")`);
    t.match(textOf(body), `Meaning of the ${manifest.columns.length} columns`);
    t.match(textOf(body), `The licence of the data is ${manifest.license}`);
    t.match(copied(body, 'citation'), file);
  }
});

t.test('the line works as it stands, with every filter', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-data-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const chosen =
    'format=csv&category=technology&model_family=gpt&status=resolved&since=2026-01-01&until=2026-02-01&names=yes';
  const { body } = await show(`/data?${chosen}`);
  const line = copied(body, 'curl');
  t.match(line, 'since=2026-01-01T00%3A00%3A00Z&until=2026-02-01T00%3A00%3A00Z&names=true');
  await promisify(execFile)('sh', ['-c', line], { cwd: folder });
  t.match(
    readFileSync(path.join(folder, 'predictions.csv'), 'utf8'),
    /^prediction_id,question_id,/,
  );
  t.match(body, /<option value="gpt" selected/);
  t.match(body, /name="since" type="date" value="2026-01-01"/);
});

t.test('what a file has not is left out, and nothing leaves the quotes of a shell', async (t) => {
  const { body } = await show('/data?file=questions&model_family=gpt&since=2026-01-01');
  t.notMatch(copied(body, 'curl'), /gpt|since/);
  t.notMatch(body, 'name="since"');
  const quoted = await show(`/data?category=${encodeURIComponent("'; rm -rf ~ #")}`);
  t.equal(quoted.status, 400, 'there is no such category');
  t.equal((await show('/data?file=secrets')).status, 400);
  t.equal((await show('/data?since=yesterday')).status, 400);
});
