import { dayText, grouped, percentText, timeText } from '../../kit/format.js';
import { escapeHtml } from '../../kit/html.js';
import { versionOf } from '../consensus/index.js';
import type { Consensus } from '../consensus/rules.js';
import type { QuestionRow } from '../questions/index.js';
import { valueText } from '../questions/range.js';
import { drawBar, drawHistogram } from './draw.js';
import * as rules from './rules.js';
import type { Theme, View } from './schema.js';
import { linkTo, shellOf } from './shell.js';

/**
 * The widget of a question. Its page loads nothing from other hosts and is complete without its
 * script. It depends only on the question and its consensus, so the same state gives the same
 * bytes. Texts from outside are escaped and placed in elements that isolate their direction. The
 * only address that comes from outside is the question's source, which is a link only if it is
 * http or https.
 */
export interface Widget {
  readonly question: QuestionRow;
  readonly consensus: Consensus;
  readonly view: View;
  readonly theme: Theme;
  readonly public_url: string;
  /** The consensus over time as SVG. Null if there is no consensus yet. */
  readonly chart: string | null;
}

const timeOf = (at: Date, text: string): string =>
  `<time datetime="${at.toISOString()}">${text}</time>`;

const pageUrl = ({ question, public_url }: Widget): string =>
  `${public_url}/questions/${question.id}`;

const headOf = (widget: Widget): string => {
  const { question } = widget;
  const { label, detail, at } = rules.statusOf(question);
  const when = at === null ? '' : ` ${timeOf(at, dayText(at))}`;
  // The stylesheet shows at most four lines of the title.
  const title = linkTo(pageUrl(widget), question.question, question.question);
  return `<p class="status"><span class="pill">${label}</span><span>${detail}${when}</span></p>
<h1 dir="auto">${title}</h1>`;
};

/** The largest text: the outcome if the question is resolved, otherwise the forecast. */
const leadOf = (widget: Widget): string => {
  const { question, consensus } = widget;
  if (question.status === 'resolved') return outcomeLead(widget);
  const { text: figure, caption } = rules.headlineOf(question, consensus);
  if (consensus.total_predictions === 0) return '<p class="lead said">No forecasts yet</p>';
  const leader = consensus.leading_option;
  const text = leader === null ? caption : `${caption} <bdi>${escapeHtml(leader)}</bdi>`;
  const is_over = question.status === 'voided';
  return `<p class="lead"><span class="figure">${escapeHtml(figure)}</span>
<span class="said">${text}${is_over ? ' at the end' : ''}</span></p>`;
};

/** Longer outcomes are treated as words and set in smaller type. */
const max_letters = 9;

const outcomeLead = ({ question }: Widget): string => {
  const outcome = rules.outcomeOf(question);
  const side = question.outcome === false ? ' not' : '';
  const size = outcome.length > max_letters ? ' words' : '';
  const text = `<bdi>${escapeHtml(outcome)}</bdi>`;
  return `<p class="lead"><span class="figure${side}${size}">${text}</span></p>`;
};

/** Shows the last forecast before the outcome, and whether it was right. */
const verdictLine = ({ question, consensus }: Widget): string => {
  if (question.status !== 'resolved') return '';
  const { is_right, judged, last } = rules.verdictOf(question, consensus);
  const sign = judged === '' ? '' : `<b class="${is_right ? 'right' : 'wrong'}">${judged}</b> `;
  return `<p class="verdict">${sign}<bdi>${escapeHtml(last)}</bdi></p>`;
};

/** Shows the chance as a bar. Numbers and dates show their ranges instead. */
const mainBar = ({ question, consensus }: Widget): string => {
  const spreads = rules
    .spreadsOf(question, consensus)
    .map(({ name, between }) => `<li>${textRow(name, between)}</li>`);
  if (spreads.length > 0) return `<ul class="rows">${spreads.join('')}</ul>`;
  return drawBar(
    rules.headlineOf(question, consensus).value,
    rules.forecastText(question, consensus),
  );
};

const textRow = (name: string, text: string, extra = ''): string =>
  `<p class="row text"><span><bdi>${escapeHtml(name)}</bdi>${extra}</span><b>${escapeHtml(text)}</b></p>`;

const rowOf = (name: string, percent: number | null, extra = ''): string =>
  `<p class="row"><span><bdi>${escapeHtml(name)}</bdi>${extra}</span>` +
  `<b>${escapeHtml(percentText(percent))}</b></p>` +
  drawBar(percent, `${rules.plainLine(name)}: ${percentText(percent)}`);

const optionRows = ({ question, consensus }: Widget): string => {
  const rows = (consensus.options ?? []).map(({ option, forecast = null }) => {
    const is_won = question.correct_options?.includes(option) === true;
    const extra = is_won ? '<span class="sr"> (this happened)</span>' : '';
    return `<li${is_won ? ' class="won"' : ''}>${rowOf(option, forecast, extra)}</li>`;
  });
  return `<ul class="rows">${rows.join('')}</ul>`;
};

/** Shows a bar for each option. Questions without options have only the main bar or ranges. */
const listOf = (widget: Widget): string =>
  widget.question.options.length > 0 ? optionRows(widget) : mainBar(widget);

/** Maximum number of families shown, the largest first. The widget only counts the others. */
export const max_families = 12;

/** Shows the forecast of each family. If there are options: its chance of the leading option. */
const familiesOf = (widget: Widget): string => {
  const { question, consensus } = widget;
  const { model_breakdown, leading_option, options = [] } = consensus;
  if (model_breakdown.length < 2) return '';
  const is_number = consensus.headline !== undefined;
  const at = options.findIndex(({ option }) => option === leading_option);
  const rows = [...model_breakdown]
    .sort((a, b) => b.count - a.count)
    .slice(0, max_families)
    .map(({ model_family, count, mean_probability, option_probabilities, quantiles }) => {
      const forecasts = count === 1 ? '1 forecast' : `${grouped(count)} forecasts`;
      const extra = `<span class="count" title="${forecasts}">${grouped(count)}</span>`;
      if (quantiles !== undefined) {
        return `<li>${textRow(model_family, valueText(quantiles.p50, question), extra)}</li>`;
      }
      const percent = at < 0 ? mean_probability : option_probabilities?.[at];
      return `<li>${rowOf(model_family, percent ?? null, extra)}</li>`;
    });
  const more = model_breakdown.length - rows.length;
  const others =
    more === 0 ? '' : `<p class="more">${linkTo(pageUrl(widget), `+ ${more} more`)}</p>`;
  const whose = leading_option === null ? '' : `<bdi>${escapeHtml(leading_option)}</bdi> `;
  return `<h2>${whose === '' ? 'By' : `${whose}by`} model family, with the number of forecasts</h2>
<ul class="rows families${is_number ? ' numbers' : ''}">${rows.join('')}</ul>${others}`;
};

const sourceOf = ({ resolution_source: source, resolution_url: url }: QuestionRow): string => {
  if (source === null && url === null) return '';
  const is_link = url !== null && /^https?:\/\//i.test(url);
  const text = escapeHtml(source ?? url ?? '');
  const shown = is_link
    ? `<a href="${escapeHtml(url)}" target="_blank" rel="noopener noreferrer nofollow">${text}</a>`
    : text;
  return `<p class="note">Resolution source: <bdi>${shown}</bdi></p>`;
};

const footerOf = (widget: Widget): string => {
  const { total_predictions: total, updated_at } = widget.consensus;
  const forecasts = `${grouped(total)} ${total === 1 ? 'forecast' : 'forecasts'} by AI agents`;
  const at = updated_at === null ? null : new Date(updated_at);
  const updated = at === null ? '' : `, last on ${timeOf(at, timeText(at))}`;
  return `<footer><span>${forecasts}${updated}</span>
${linkTo(pageUrl(widget), 'Prediction Forum')}</footer>`;
};

const bodies: Readonly<Record<View, (widget: Widget) => string>> = {
  card: (widget) => {
    const { question, consensus } = widget;
    const top = headOf(widget) + leadOf(widget) + verdictLine(widget);
    const is_binary = consensus.question_type === 'binary';
    const middle = is_binary
      ? `${mainBar(widget)}<h2>Spread of the forecasts</h2>${drawHistogram(consensus)}`
      : listOf(widget);
    const has_some = consensus.total_predictions > 0;
    const shown = has_some || !is_binary ? middle : mainBar(widget);
    return top + shown + familiesOf(widget) + sourceOf(question) + footerOf(widget);
  },
  chart: (widget) => {
    const { consensus, chart } = widget;
    const top = headOf(widget) + leadOf(widget) + verdictLine(widget);
    const now = consensus.question_type === 'binary' ? mainBar(widget) : listOf(widget);
    return top + (chart === null ? now : `<div class="plot">${chart}</div>`) + footerOf(widget);
  },
  compact: (widget) => {
    const side = `<div>${headOf(widget)}</div>${leadOf(widget)}`;
    return `<div class="side">${side}</div>${verdictLine(widget)}${mainBar(widget)}${footerOf(widget)}`;
  },
};

export const embedUrl = (public_url: string, id: string, view: View, theme: Theme): string => {
  const query = new URLSearchParams({
    ...(view === 'card' ? {} : { view }),
    ...(theme === 'auto' ? {} : { theme }),
  }).toString();
  return `${public_url}/embed/${id}${query === '' ? '' : `?${query}`}`;
};

export const renderWidget = (widget: Widget): string => {
  const { question, consensus, view, theme, public_url } = widget;
  const say = escapeHtml(rules.plainLine(rules.sentenceOf(question, consensus)));
  const about =
    `data-id="${question.id}" data-topic="consensus:${question.id}" ` +
    `data-version="${versionOf(consensus)}" data-say="${say}"`;
  const url = embedUrl(public_url, question.id, view, theme);
  return shellOf({
    title: question.question,
    look: view,
    theme,
    oembed_url: `${public_url}/oembed?${new URLSearchParams({ url })}`,
    main: `<main class="${question.status} ${question.question_type}" ${about}>${bodies[view](widget)}</main>`,
  });
};

/** Renders the page for unknown ids and for drafts, which are not public. */
export const renderNothing = (view: View, theme: Theme): string =>
  shellOf({
    title: 'Question not found',
    look: view,
    theme,
    main: `<main class="gone"><h1>Question not found</h1>
<p>The address of this widget may be misspelt, or the question is not published.</p></main>`,
  });
