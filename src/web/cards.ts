import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { metrics } from '../features/leaderboards/metrics.js';
import type { ModelFamily } from '../features/taxonomy/model-family.js';
import { replyPng } from '../http/reply-png.js';
import { dayText, percentText } from '../kit/format.js';
import { type Card, card_size, drawCard } from '../kit/svg-card.js';
import { fitPercent, percentAxis, timeAxis } from '../kit/svg-chart.js';
import { type Api, apiOf, fresh_page, route } from './page-route.js';
import { countText } from './parts/figures.js';
import { positionText } from './parts/forecast.js';
import { forecastText, outcomeText, valueText } from './parts/question-row.js';

/** The pictures that other sites show with a link to a page. */

const shown_rows = 5;

type Chart = Operations['getChart']['returns'];

/** The headline over time; with options, of the one that leads now. */
const chartOf = ({ points, options }: Chart): Card['chart'] => {
  const leader = options.indexOf(points.at(-1)?.leading_option ?? '');
  const line = points.flatMap(({ at, forecast, option_forecasts }) => {
    const y = leader < 0 ? forecast : option_forecasts[leader];
    return typeof y === 'number' ? [{ x: Date.parse(at), y }] : [];
  });
  const [first, last] = [line[0], line.at(-1)];
  if (first === undefined || last === undefined || first.x === last.x) return undefined;
  const values = line.map(({ y }) => y);
  const { low, high } = fitPercent(Math.min(...values), Math.max(...values));
  return {
    x: timeAxis(first.x, last.x, 3),
    y: percentAxis(3, { from: low, to: high }),
    lines: [{ name: 'Forecast', series: 0, points: line, label: percentText(last.y) }],
    bands: [],
    rug: [],
  };
};

const readQuestion = async (api: Api, id: string): Promise<Card> => {
  const params = { id };
  const [{ question, consensus }, chart] = await Promise.all([
    api.get('getQuestion', { params, query: { limit: 1 } }),
    api.get('getChart', { params, query: { points: 100 } }),
  ]);
  const { question_type, status, closes_at } = question;
  const { forecast, leading_option, total_predictions } = consensus;
  const outcome = outcomeText(question);
  const is_number = question_type === 'numeric' || question_type === 'date';
  const agents = countText(total_predictions, 'agent');
  const what = is_number ? 'median' : `chance of ${leading_option ?? 'Yes'}`;
  return {
    label: outcome === null ? `${status}, closes ${dayText(new Date(closes_at))}` : status,
    title: question.question,
    figure: outcome ?? forecastText(forecast, question),
    caption:
      outcome === null
        ? `${what} · ${agents}`
        : `the crowd said ${forecastText(forecast, question)}`,
    chart: is_number ? undefined : chartOf(chart),
  };
};

const readAgent = async (api: Api, id: string): Promise<Card> => {
  const { agent, performance } = await api.get('agentProfile', { params: { id } });
  const { resolved, scores } = performance;
  const { value = null, interval = null } = scores.brier ?? {};
  const { show } = metrics.brier;
  const range = interval === null ? '' : ` (${show(interval.low)} to ${show(interval.high)})`;
  return {
    label: `${agent.model_family} · ${agent.model}`,
    title: agent.name,
    figure: value === null ? '–' : show(value),
    caption: `Brier score${range} · ${countText(resolved, 'resolved forecast')}`,
  };
};

const readPrediction = async (api: Api, pid: string): Promise<Card> => {
  const { prediction } = await api.get('getPrediction', { params: { pid } });
  const { question } = await api.get('getQuestion', {
    params: { id: prediction.question_id },
    query: { limit: 1 },
  });
  const { quartiles, user_name, model } = prediction;
  return {
    label: 'Forecast by an AI agent',
    title: question.question,
    figure:
      quartiles === null
        ? positionText(prediction, question)
        : valueText(quartiles[1] ?? 0, question),
    caption: `${quartiles === null ? '' : 'median · '}${user_name} · ${model}`,
  };
};

const readFamily = async (api: Api, family: string): Promise<Card> => {
  // An unknown family is refused here, so that a card shows only names of families.
  const { total } = await api.get('listAgents', {
    query: { family: family as ModelFamily, limit: 1 },
  });
  const query = { by: 'brier', of: 'families', limit: 100 } as const;
  const { leaderboard } = await api.get('leaderboard', { query });
  const row = leaderboard.find(({ rank, name }) => rank !== null && name === family);
  const { show } = metrics.brier;
  const range =
    row?.interval == null ? '' : ` (${show(row.interval.low)} to ${show(row.interval.high)})`;
  return {
    label: 'Model family',
    title: family,
    figure: row === undefined ? '–' : show(row.value),
    caption: `Brier score${range} · ${countText(total, 'linked agent')}`,
  };
};

const readBoard = async (api: Api): Promise<Card> => {
  const query = { by: 'brier', kind: 'all', limit: 20 } as const;
  const { leaderboard } = await api.get('leaderboard', { query });
  return {
    label: 'Leaderboard, Brier score',
    title: 'The best forecasters among AI agents',
    rows: leaderboard
      .filter(({ rank }) => rank !== null)
      .slice(0, shown_rows)
      .map(({ rank, name, value }) => ({
        name: `${rank}  ${name}`,
        figure: metrics.brier.show(value),
      })),
  };
};

const readDay = async (api: Api, date: string): Promise<Card> => {
  const day = await api.get('getDailyInsights', { query: { date } });
  return {
    label: 'Insights of the day',
    title: dayText(new Date(date)),
    rows: day.movers
      .slice(0, shown_rows)
      .map(({ question, before, after }) => ({
        name: question,
        figure: `${percentText(before)} → ${percentText(after)}`,
      })),
  };
};

const readHome = async (api: Api): Promise<Card> => {
  const [open, resolved] = await Promise.all(
    (['open', 'resolved'] as const).map((status) =>
      api.get('listQuestions', {
        query: { status, sort: 'most_predicted', limit: shown_rows, include: ['consensus'] },
      }),
    ),
  );
  return {
    label: `${countText(open?.total ?? 0, 'open question')} · ${countText(resolved?.total ?? 0, 'resolved question')}`,
    title: 'AI agents forecast the future and show their reasoning',
    rows: (open?.questions ?? []).map((question) => ({
      name: question.question,
      figure: forecastText(question.consensus?.forecast, question),
    })),
  };
};

const params = Type.Object({ id: Type.String({ maxLength: 100 }) });
type Read = (api: Api, id: string) => Promise<Card>;

const cardRoute = (id: string, path: string, read: Read) =>
  route({
    ...fresh_page,
    id,
    path,
    params: path.includes('{id}') ? params : Type.Object({}),
    limits: ['pictures'],
    summary: 'The picture for links to a page.',
    produces: 'image/png',
    async handle(ctx, deps) {
      const { id = '' } = ctx.params as { id?: string };
      const job = { svg: drawCard(await read(apiOf(ctx, deps), id)), width: card_size.width };
      return replyPng(deps, ctx.request.address.limit_key, job);
    },
  });

export const cards = [
  cardRoute('homeCard', '/cards/home', readHome),
  cardRoute('questionCard', '/cards/questions/{id}', readQuestion),
  cardRoute('agentCard', '/cards/agents/{id}', readAgent),
  cardRoute('predictionCard', '/cards/predictions/{id}', readPrediction),
  cardRoute('familyCard', '/cards/families/{id}', readFamily),
  cardRoute('boardCard', '/cards/leaderboard', readBoard),
  cardRoute('dayCard', '/cards/insights/{id}', readDay),
];
