import { Type } from '@sinclair/typebox';
import { sandbox } from '../features/embed/page.js';
import { renderPage } from './page.js';
import { apiOf, public_page, route } from './page-route.js';
import { Field, Select } from './parts/forms.js';
import { linkTo } from './parts/lists.js';

/** Which question, how it looks, and the lines to paste; the answers of the form are the address. */

const views = [
  ['card', 'Card: forecast, spread, model families'],
  ['chart', 'Chart: how the forecast moved'],
  ['compact', 'Compact: one line'],
] as const;
const themes = [
  ['auto', 'That of the reader'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const;
const widths = ['320', '480', '600', '800', '1200'].map((width) => [width, `${width} px`] as const);

const pick = <T extends string>(
  known: readonly (readonly [T, string])[],
  given: string | undefined,
  usual: T,
): T => known.find(([name]) => name === given)?.[0] ?? usual;

const id_in = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/i;

interface Look {
  readonly id: string;
  readonly title: string;
  readonly view: string;
  readonly theme: string;
  readonly width: string;
}

const addressOf = ({ id, view, theme }: Look): string =>
  linkTo(`/embed/${id}`, {
    view: view === 'card' ? undefined : view,
    theme: theme === 'auto' ? undefined : theme,
  });

const attribute = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

const snippetOf = (look: Look, height: number, public_url: string): string =>
  [
    `<iframe class="forecast" src="${attribute(public_url + addressOf(look))}"`,
    `  title="${attribute(look.title)}" loading="lazy" sandbox="${sandbox}"`,
    `  width="${look.width}" height="${height}" style="border: 0; max-width: 100%"></iframe>`,
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
    const id = id_in.exec(given)?.[0]?.toLowerCase();
    const url = `${public_url}${addressOf({ ...query, id: id ?? '', title: '' })}`;
    const [found, listed] = await Promise.all([
      id === undefined
        ? undefined
        : api('oembed', { query: { url, maxwidth: Number(query.width) } }),
      id === undefined
        ? api.get('listQuestions', {
            query: { limit: 10, ...(given === '' ? {} : { q: given.slice(0, 200) }) },
          })
        : undefined,
    ]);
    const embed = found?.ok && id !== undefined ? { ...found.body, id } : undefined;
    const look = embed && { ...query, id: embed.id, title: embed.title };
    return renderPage(deps, {
      title: 'Embed a question',
      path: '/embed-builder',
      scripts: ['preview.js'],
      description: 'Show a question with its live forecast on your own site.',
      children: (
        <>
          <h1>Embed a question</h1>
          <p>
            A live forecast for your article or site: pick a question and a look, then paste the
            lines. It loads nothing from other hosts and sets no cookie.
          </p>
          <form class="card" action="/embed-builder">
            <Field
              name="question"
              label="Question"
              hint="Its address, its id, or words to search for."
              value={given}
              maxLength={2_000}
            />
            <div class="grid">
              <Select name="view" label="View" options={views} value={query.view} />
              <Select name="theme" label="Colours" options={themes} value={query.theme} />
              <Select name="width" label="Width" options={widths} value={query.width} />
            </div>
            <button type="submit">Show</button>
          </form>
          {found !== undefined && embed === undefined && (
            <p class="problem" role="alert">
              There is no published question with this address.
            </p>
          )}
          {listed !== undefined && (
            <section>
              <h2>{given === '' ? 'Newest questions' : 'Which one?'}</h2>
              {listed.questions.length === 0 && <p class="soft">No question has these words.</p>}
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
          {embed !== undefined && look !== undefined && (
            <>
              <h2>Preview</h2>
              <iframe
                class="preview"
                src={addressOf(look)}
                title={embed.title}
                width={query.width}
                height={embed.height}
              />
              <h2>The lines to paste</h2>
              <textarea
                id="snippet"
                class="code"
                aria-label="The lines to paste"
                readOnly
                rows={11}
                spellcheck={false}
              >
                {snippetOf(look, embed.height, public_url)}
              </textarea>
              <div class="row">
                <span data-copy="snippet" />
                <a href={`/questions/${embed.id}`}>The question</a>
                <a href="/docs/guide/embedding">More about embedding</a>
              </div>
            </>
          )}
        </>
      ),
    });
  },
});
