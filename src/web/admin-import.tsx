import { Type } from '@sinclair/typebox';
import type { FaultAnswer } from '../http/inner-call.js';
import { findInexactProblem } from '../http/validation.js';
import { renderPage } from './page.js';
import { type Api, admin_form, admin_page, apiOf, type PageDeps, route } from './page-route.js';
import { AdminNav, countReports } from './parts/admin.js';
import { countText } from './parts/figures.js';
import { faultText, TextArea } from './parts/forms.js';

/**
 * Imports questions, agents, forecasts and resolutions from a file, one per line. It uses the
 * import operations of the API, so importing the same file again adds nothing. Without
 * JavaScript, people paste the text instead of choosing a file.
 */

/** Each kind may refer to the kinds before it, so they are imported in this order. */
const imports = {
  question: 'importQuestions',
  agent: 'importAgents',
  forecast: 'importPredictions',
  resolution: 'importResolutions',
} as const;
type Kind = keyof typeof imports;

interface Line {
  readonly number: number;
  readonly item: Readonly<Record<string, unknown>>;
}

interface Result {
  readonly number: number;
  readonly status: 'created' | 'exists' | 'refused';
  readonly text?: string;
}

const isKind = (name: unknown): name is Kind =>
  typeof name === 'string' && Object.hasOwn(imports, name);

/** Reads one JSON object per line. `type` names its kind; without `type` it is a question. */
const readLines = (text: string, publish: boolean) => {
  const lines: Record<Kind, Line[]> = { question: [], agent: [], forecast: [], resolution: [] };
  const wrong: Result[] = [];
  for (const [index, line] of text
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/)
    .entries()) {
    const number = index + 1;
    if (line.trim() === '') continue;
    try {
      const value = JSON.parse(line) as unknown;
      const problem = findInexactProblem(line);
      if (problem !== null) {
        wrong.push({ number, status: 'refused', text: problem });
        continue;
      }
      if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error();
      const { type = 'question', ...item } = value as Record<string, unknown>;
      if (!isKind(type)) {
        wrong.push({ number, status: 'refused', text: `Unknown type: ${String(type)}.` });
        continue;
      }
      const more = type === 'question' && publish ? { publish: true } : {};
      lines[type].push({ number, item: { ...more, ...item } });
    } catch {
      wrong.push({ number, status: 'refused', text: 'This line is not a JSON object.' });
    }
  }
  return { lines, wrong };
};

const max_items = 100;

interface Answered {
  readonly index: number;
  readonly status: Result['status'];
  readonly error?: string;
  readonly fields?: readonly { readonly path: string; readonly message: string }[];
}

const textOf = ({ error, fields }: Answered): string =>
  [error, ...(fields ?? []).map(({ path, message }) => `${path}: ${message}`)]
    .filter((one, n, all) => one !== undefined && all.indexOf(one) === n)
    .join(' – ');

const send = async (api: Api, kind: Kind, lines: readonly Line[]): Promise<readonly Result[]> => {
  const answer = await api(imports[kind], { body: { items: lines.map(({ item }) => item) } });
  if (!answer.ok) {
    const text = faultText(answer.fault as FaultAnswer);
    return lines.map(({ number }) => ({ number, status: 'refused' as const, text }));
  }
  return (answer.body.results as readonly Answered[]).map((one, n) => ({
    number: lines[n]?.number ?? 0,
    status: one.status,
    text: textOf(one),
  }));
};

type Read = ReturnType<typeof readLines>;

const importAll = async (api: Api, { lines, wrong }: Read): Promise<readonly Result[]> => {
  const results = [...wrong];
  for (const kind of Object.keys(imports) as Kind[]) {
    const all = lines[kind];
    for (let from = 0; from < all.length; from += max_items) {
      results.push(...(await send(api, kind, all.slice(from, from + max_items))));
    }
  }
  return results.sort((a, b) => a.number - b.number);
};

const RefusedLines = ({ refused }: { refused: readonly Result[] }) =>
  refused.length === 0 ? null : (
    <table>
      <caption>These lines are refused. The others are imported.</caption>
      <thead>
        <tr>
          <th scope="col" class="n">
            Line
          </th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {refused.map((one) => (
          <tr key={one.number}>
            <td class="n">{one.number}</td>
            <td>{one.text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );

const Results = ({ results }: { results: readonly Result[] }) => {
  const count = (status: Result['status']): number =>
    results.filter((one) => one.status === status).length;
  return (
    <div role="status">
      <p class="done">
        {countText(count('created'), 'line')} imported, {count('exists')} already there,{' '}
        {count('refused')} refused.
      </p>
      <RefusedLines refused={results.filter(({ status }) => status === 'refused')} />
    </div>
  );
};

/** Shows how many lines of each kind will be imported, before the import starts. */
const Found = ({ read: { lines, wrong } }: { read: Read }) => (
  <div role="status">
    <p class="done">
      Ready to import:{' '}
      {(Object.keys(imports) as Kind[])
        .map((kind) => countText(lines[kind].length, kind))
        .join(', ')}
      .
    </p>
    <RefusedLines refused={wrong} />
  </div>
);

const example = [
  '{"source":"mine","source_id":"1","question":"Will it rain in Lisbon on 1 June 2027?","category":"society","closes_at":"2027-05-31T00:00:00Z","resolution_date":"2027-06-02T00:00:00Z"}',
  '{"type":"resolution","source":"mine","source_id":"1","outcome":true}',
].join('\n');

interface Shown {
  readonly text?: string;
  readonly publish?: boolean;
  readonly read?: Read;
  readonly results?: readonly Result[];
}

const showImport = async (
  deps: PageDeps,
  api: Api,
  { text = '', publish = false, read, results }: Shown,
) =>
  renderPage(deps, {
    title: 'Import',
    is_private: true,
    section: 'account',
    scripts: ['file-text.js'],
    children: (
      <>
        <h1>Import</h1>
        <AdminNav here="/admin/import" reports={await countReports(api)} />
        {results !== undefined && <Results results={results} />}
        {read !== undefined && <Found read={read} />}
        <form method="post" action="/admin/import">
          <div class="field" hidden data-file-into="lines">
            <label for="file">File</label>
            <input id="file" type="file" accept=".jsonl,.ndjson,.json,.txt" />
          </div>
          <TextArea
            name="lines"
            label="JSON lines"
            hint="One object per line. Its type is question (the default), agent, forecast or resolution. Items that already exist, by source and source_id, do not change."
            rows={12}
            spellcheck={false}
            required
            value={text}
          />
          <div class="field">
            <input id="publish" name="publish" type="checkbox" checked={publish} />{' '}
            <label class="beside" for="publish">
              Publish new questions immediately
            </label>
          </div>
          <div class="row">
            <button type="submit" name="step" value="check" class={read && 'plain'}>
              {read === undefined ? 'Check' : 'Check again'}
            </button>
            {read !== undefined && (
              <button type="submit" name="step" value="import">
                Import
              </button>
            )}
          </div>
        </form>
        <details>
          <summary>Example</summary>
          <pre class="wrap">
            <code>{example}</code>
          </pre>
          <p>
            <a href="/docs/guide/import">All fields, and how to convert other files</a>
          </p>
        </details>
      </>
    ),
  });

const importPage = route({
  ...admin_page,
  id: 'adminImportPage',
  path: '/admin/import',
  handle: (ctx, deps) => showImport(deps, apiOf(ctx, deps), {}),
});

const importForm = route({
  ...admin_form,
  id: 'adminImport',
  path: '/admin/import',
  body_limit: 4 * 1024 * 1024,
  body: Type.Object({
    lines: Type.String(),
    publish: Type.Optional(Type.String()),
    step: Type.Optional(Type.String()),
  }),
  async handle(ctx, deps) {
    const { lines, step } = ctx.body;
    const publish = ctx.body.publish === 'on';
    const read = readLines(lines, publish);
    const api = apiOf(ctx, deps);
    if (step !== 'import') return showImport(deps, api, { text: lines, publish, read });
    const results = await importAll(api, read);
    // Only rejected lines go back into the form. The others have been imported.
    const refused = new Set(
      results.flatMap(({ number, status }) => (status === 'refused' ? [number] : [])),
    );
    const text = lines
      .split('\n')
      .filter((_, n) => refused.has(n + 1))
      .join('\n');
    return showImport(deps, api, { text, results });
  },
});

export const admin_import_routes = [importPage, importForm];
