import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { anonymous, type Reply, reply, replyRaw, routeFor } from '../../http/route.js';
import { isFault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import type { ConsensusParts, HistoryParts } from '../consensus/index.js';
import { findVisible, type QuestionRow, question_faults } from '../questions/index.js';
import { drawCourse } from './draw.js';
import { makeOembed, readAddress } from './oembed.js';
import { embedHeaders, renderNothing, renderWidget } from './page.js';
import { themeOf, viewOf } from './rules.js';
import { embed_params, embed_query, oembed_query, oembed_schema } from './schema.js';

/** A question on somebody else's page. */

const route = routeFor<Deps & ConsensusParts & HistoryParts>();
const tag = 'embed';
const html = 'text/html; charset=utf-8';

/** As many as a small picture can show. */
const chart_points = 120;

/** As everybody sees it: a page in an iframe is asked for without a credential. */
const findShown = async (deps: Deps, id: string): Promise<QuestionRow | null> => {
  const question = isId(id) ? await findVisible(deps, id, anonymous) : null;
  return question === null || isFault(question) ? null : question;
};

const getEmbed = route({
  id: 'embed',
  method: 'GET',
  path: '/embed/{id}',
  summary: 'A question as a page for an iframe, live and without a request to another host',
  tag,
  auth: 'public',
  params: embed_params,
  query: embed_query,
  returns: { 200: Type.String(), 404: Type.String() },
  produces: 'text/html',
  cacheable: true,
  cache: { tag: ({ id }) => id.toLowerCase() },
  async handle({ params, query }, deps): Promise<Reply> {
    const { public_url } = deps;
    const view = viewOf(query.view);
    const theme = themeOf(query.theme);
    const headers = embedHeaders(public_url);
    const question = await findShown(deps, params.id.toLowerCase());
    if (question === null) {
      const unkept = { ...headers, 'Cache-Control': 'no-store' };
      return { ...replyRaw(html, renderNothing(view, theme), unkept), status: 404 };
    }
    const [consensus, chart] = await Promise.all([
      deps.consensus.read(question),
      view === 'chart' ? deps.history.read(question, chart_points) : null,
    ]);
    const widget = { question, view, theme, public_url, chart: chart && drawCourse(chart) };
    return replyRaw(html, renderWidget({ ...widget, consensus }), headers);
  },
});

const getOembed = route({
  id: 'oembed',
  method: 'GET',
  path: '/oembed',
  summary: 'oEmbed 1.0: the iframe for the address of a question or of its widget',
  tag,
  auth: 'public',
  query: oembed_query,
  returns: { 200: oembed_schema },
  cacheable: true,
  faults: [question_faults.QUESTION_NOT_FOUND],
  async handle({ query }, deps) {
    const { public_url } = deps;
    const asked = readAddress(query.url, public_url);
    const question = asked === null ? null : await findShown(deps, asked.question_id);
    if (asked === null || question === null) {
      return refuse(question_faults.QUESTION_NOT_FOUND, {
        message: 'No published question of this service has the address in url.',
      });
    }
    return reply(200, makeOembed(question, asked, { public_url, room: query }));
  },
});

export const routes = [getEmbed, getOembed];
