import { Type } from '@sinclair/typebox';
import { sandbox } from '../features/embed/shell.js';
import { renderPage } from './page.js';
import { apiOf, public_page, route } from './page-route.js';
import { Field, Select } from './parts/forms.js';
import { linkTo } from './parts/lists.js';

/**
 * The page on which people configure a widget and copy its HTML. The settings of the form are in
 * the page's address.
 */

const views = [
  ['card', 'Card: forecast, spread, model families'],
  ['chart', 'Chart: forecast over time'],
  ['compact', 'Compact: one line'],
] as const;
const themes = [
  ['auto', 'Match the reader'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const;
const widths = ['320', '375', '480', '600', '800', '1200'].map(
  (width) => [width, `${width} px`] as const,
);

const pick = <T extends string>(
  known: readonly (readonly [T, string])[],
  given: string | undefined,
  usual: T,
): T => known.find(([name]) => name === given)?.[0] ?? usual;

const id_in = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/i;

const board_address = /\/leaderboard\/?(?:\?(.*))?$/;

interface Look {
  readonly view: string;
  readonly theme: string;
  readonly width: string;
}

interface Shown {
  /** Address and name of the forum page about the same question or leaderboard. */
  readonly page: string;
  readonly page_name: string;
  /** Address of the widget. */
  readonly address: string;
}

/** Finds the question or leaderboard that the input names. Undefined if it names neither. */
const readShown = (given: string, look: Look): Shown | undefined => {
  const theme = look.theme === 'auto' ? undefined : look.theme;
  const id = id_in.exec(given)?.[0]?.toLowerCase();
  if (id !== undefined) {
    const view = look.view === 'card' ? undefined : look.view;
    const address = linkTo(`/embed/${id}`, { view, theme });
    return { page: `/questions/${id}`, page_name: 'View question', address };
  }
  const board = board_address.exec(given);
  if (board === null) return undefined;
  const query = Object.fromEntries(new URLSearchParams(board[1] ?? ''));
  const address = linkTo('/embed/leaderboard', { ...query, theme });
  return { page: linkTo('/leaderboard', query), page_name: 'View leaderboard', address };
};

const attribute = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

interface Snippet {
  readonly src: string;
  readonly title: string;
  readonly width: string;
  readonly height: number;
}

const snippetOf = ({ src, title, width, height }: Snippet): string =>
  [
    `<iframe class="forecast" src="${attribute(src)}"`,
    `  title="${attribute(title)}" loading="lazy" sandbox="${sandbox}"`,
    `  width="${width}" height="${height}" style="border: 0; max-width: 100%"></iframe>`,
    '<script>',
    `addEventListener('message', ({ source, data }) => {`,
    `  if (data?.type !== 'prediction-forum:height') return;`,
    `  for (const frame of document.querySelectorAll('iframe.forecast')) {`,
    `    if (frame.contentWindow === source) frame.height = Math.min(3000, Number(data.height) || ${height});`,
    '  }',
    '});',
    '</script>',
  ].join('\n');

const optional = Type.Optional(Type.String({ maxLength: 2_000 }));

export const embed_builder = route({
  ...public_page,
  id: 'embedBuilder',
  path: '/embed-builder',
  query: Type.Object({ question: optional, view: optional, theme: optional, width: optional }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { public_url } = deps;
    const given = ctx.query.question?.trim() ?? '';
    const query = {
      view: pick(views, ctx.query.view, 'card'),
      theme: pick(themes, ctx.query.theme, 'auto'),
      width: pick(widths, ctx.query.width, '600'),
    };
    const shown = readShown(given, query);
    const src = `${public_url}${shown?.address}`;
    const [found, listed] = await Promise.all([
      shown === undefined
        ? undefined
        : api('oembed', { query: { url: src, maxwidth: Number(query.width) } }),
      shown === undefined
        ? api.get('listQuestions', {
            query: { limit: 10, ...(given === '' ? {} : { q: given.slice(0, 200) }) },
          })
        : undefined,
    ]);
    const embed = found?.ok ? found.body : undefined;
    return renderPage(deps, {
      title: 'Embed a question or a leaderboard',
      path: '/embed-builder',
      scripts: ['preview.js'],
      description: 'Show a question with its live forecast, or a leaderboard, on your own site.',
      children: (
        <>
          <h1>Embed a question or a leaderboard</h1>
          <p>
            Choose a question or a leaderboard, then paste the embed code into your site. The widget
            updates live, loads nothing from other hosts and sets no cookies.
          </p>
          <form class="card" action="/embed-builder">
            <Field
              name="question"
              label="Question or leaderboard"
              hint="An address, the id of a question, or words to search for."
              value={given}
              maxLength={2_000}
            />
            <div class="grid">
              <Select name="view" label="View" options={views} value={query.view} />
              <Select name="theme" label="Theme" options={themes} value={query.theme} />
              <Select name="width" label="Width" options={widths} value={query.width} />
            </div>
            <button type="submit">Show</button>
          </form>
          {found !== undefined && embed === undefined && (
            <p class="problem" role="alert">
              No published question or leaderboard has this address.
            </p>
          )}
          {listed !== undefined && (
            <section>
              <h2>{given === '' ? 'Newest questions' : 'Matching questions'}</h2>
              {listed.questions.length === 0 && <p class="soft">No questions match.</p>}
              <ul class="plain-list">
                {listed.questions.map((one) => (
                  <li key={one.id}>
                    <a href={linkTo('/embed-builder', { ...query, question: one.id })} dir="auto">
                      {one.question}
                    </a>{' '}
                    <span class="soft">{one.status}</span>
                  </li>
                ))}
              </ul>
            </section>
          )}
          {embed !== undefined && shown !== undefined && (
            <>
              <h2>Preview</h2>
              <iframe
                class="preview"
                src={shown.address}
                title={embed.title}
                width={query.width}
                height={embed.height}
              />
              <h2>Embed code</h2>
              <textarea
                id="snippet"
                class="code"
                aria-label="Embed code"
                readOnly
                rows={11}
                spellcheck={false}
              >
                {snippetOf({ ...embed, src, width: query.width })}
              </textarea>
              <div class="row">
                <span data-copy="snippet" />
                <a href={shown.page}>{shown.page_name}</a>
                <a href="/docs/guide/embedding">More about embedding</a>
              </div>
            </>
          )}
        </>
      ),
    });
  },
});
