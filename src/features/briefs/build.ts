import { flatten, shorten } from '../../kit/markdown.js';
import { capital, counted, lettered, scoreText } from '../../kit/prose.js';
import { readSections } from '../predictions/index.js';
import { brier, brier_convention, least_resolved, meanInterval, wilson } from '../scores/index.js';
import { forSide, type Sides, sidesOfConsensus } from './choosing.js';
import type { BriefInput } from './input.js';
import { notesOf } from './notes.js';
import { makeQuoter } from './quotes.js';
import { brief_limits, positionOf, sidesOf, windowsOf } from './rules.js';
import type { Argument, Aside, Brief, VoiceRecord } from './schema.js';
import {
  endingText,
  familiesText,
  minorityText,
  momentumText,
  newestText,
  standText,
  stateText,
} from './sentences.js';
import { sourcesOf } from './sources.js';
import type { RecordRow, SampleRow } from './store.js';

/** A brief from its input: no clock, no store, and nothing of the machine in it. */

const confidenceOf = (row: SampleRow): number => row.confidence;

const argumentOf = (input: BriefInput, row: SampleRow): Argument => {
  const { question, texts } = input;
  const { name = '', reasoning = '' } = texts.get(row.id) ?? {};
  const { bottom_line, evidence } = readSections(reasoning);
  const quoter = makeQuoter();
  return {
    prediction_id: row.id,
    user_name: name,
    model_family: row.model_family,
    position: positionOf(question, row.side),
    confidence: confidenceOf(row),
    upvotes: row.upvotes,
    downvotes: row.downvotes,
    created_at: row.created_at.toISOString(),
    bottom_line: { quote: quoter.quote(bottom_line, brief_limits.short_quote) },
    evidence: { quote: quoter.quote(evidence, brief_limits.quote) },
    sources: [...quoter.sources],
  };
};

const asideOf = (
  { question, texts }: BriefInput,
  row: SampleRow,
  section: 'analysis' | 'counter_evidence',
): Aside => {
  const { name = '', reasoning = '' } = texts.get(row.id) ?? {};
  const quoter = makeQuoter();
  const text = readSections(reasoning)[section];
  const most = section === 'analysis' ? brief_limits.quote : brief_limits.short_quote;
  return {
    prediction_id: row.id,
    user_name: name,
    position: positionOf(question, row.side),
    quote: quoter.quote(text, most),
    sources: [...quoter.sources],
  };
};

const argumentsOf = (input: BriefInput, sides: Sides): Brief['arguments'] => {
  const { question, chosen, sees_reasoning, consensus } = input;
  const name = positionOf(question, forSide(question, sides));
  const other = question.question_type === 'binary' ? 'NO' : 'the other options';
  const missing = [
    ...(chosen.for.length === 0 ? [name] : []),
    ...(chosen.against.length === 0 ? [other] : []),
  ];
  const text = !sees_reasoning
    ? 'Arguments are shown to those who have predicted.'
    : consensus.total_predictions === 0
      ? 'There are no arguments yet.'
      : missing.length === 2
        ? 'Nobody gives reasons with sources that can be quoted.'
        : missing.length === 1
          ? `Nobody argues for ${missing[0]} with sources that can be quoted.`
          : 'The strongest by votes, and then by how much support they bring; each owner ' +
            'once, if there are others.';
  return {
    text,
    for: chosen.for.map((row) => argumentOf(input, row)),
    against: chosen.against.map((row) => argumentOf(input, row)),
  };
};

const minorityOf = (input: BriefInput, sides: Sides): Brief['minority'] => {
  const { question, consensus, sums, chosen } = input;
  const is_binary = question.question_type === 'binary';
  const { minority, counts, order } = sides;
  const confidenceOn = (wanted: (side: number) => boolean): number | null => {
    const own = sums.filter(({ side }) => wanted(side));
    const count = own.reduce((sum, one) => sum + one.count, 0);
    const confidence = own.reduce((sum, one) => sum + one.confidence, 0);
    return count === 0 ? null : confidence / count;
  };
  const position = minority === null ? null : positionOf(question, minority);
  const count =
    minority === null ? (order.length > 1 ? (counts[order[0]!] ?? 0) : 0) : (counts[minority] ?? 0);
  const families = is_binary
    ? consensus.model_breakdown
        .filter(({ count }) => count > 1)
        .filter(({ yes_percent }) => (minority === 1 ? yes_percent > 50 : yes_percent < 50))
        .map(({ model_family }) => model_family)
    : [];
  const argued = [...chosen.for, ...chosen.against].find(({ side }) => side === minority);
  return {
    text: minorityText({
      position,
      count,
      total: consensus.total_predictions,
      confidence: minority === null ? null : confidenceOn((side) => side === minority),
      others_confidence: minority === null ? null : confidenceOn((side) => side !== minority),
      families: minority === null ? [] : families,
      opposite: order[0] === undefined ? '' : positionOf(question, order[0]),
    }),
    position,
    count: minority === null ? 0 : count,
    case: argued === undefined ? null : asideOf(input, argued, 'analysis'),
  };
};

const whole = (share: number): number => Math.round(share * 100);
const thousandth = (value: number): number => Math.round(value * 1e3) / 1e3;

const recordOf = (row: RecordRow | undefined): VoiceRecord => {
  const { n = 0, correct = 0, brier: mean = null, variance = null } = row ?? {};
  if (n === 0 || mean === null) {
    return {
      resolved: 0,
      accuracy: null,
      accuracy_interval: null,
      brier: null,
      brier_interval: null,
    };
  }
  const hits = wilson(correct, n);
  const scores = meanInterval(mean, variance ?? 0, n);
  return {
    resolved: n,
    accuracy: whole(correct / n),
    accuracy_interval: { low: whole(hits.low), high: whole(hits.high) },
    brier: thousandth(mean),
    brier_interval: { low: thousandth(scores.low), high: thousandth(scores.high) },
  };
};

type VoiceRow = Brief['voices']['rows'][number];

const voicesText = (rows: readonly VoiceRow[]): string => {
  if (rows.length === 0) return 'Nobody is quoted, so there is no record to look at.';
  const known = rows.filter(({ record }) => record.resolved >= least_resolved);
  const measured = (row: VoiceRow): number => row.record.brier ?? 1;
  const [best] = [...known].sort(
    (a, b) => measured(a) - measured(b) || (a.user_id < b.user_id ? -1 : 1),
  );
  if (best === undefined) {
    return (
      `None of those quoted has ${lettered(least_resolved)} resolved predictions on ` +
      `other questions.`
    );
  }
  const who = `${best.user_name} (${best.position} at ${best.confidence} %)`;
  if (rows.length === 1)
    return (
      `${who} has a Brier score of ${scoreText(measured(best))} over ` +
      `${counted(best.record.resolved, 'resolved prediction')}.`
    );
  return (
    `The best record of those quoted is that of ${who}: a Brier score of ` +
    `${scoreText(measured(best))} over ${counted(best.record.resolved, 'resolved prediction')}.`
  );
};

const voicesOf = (input: BriefInput): Brief['voices'] => {
  const { question, chosen, texts, records } = input;
  const rows = [...chosen.for, ...chosen.against].map((row) => ({
    user_id: row.agent_id,
    user_name: texts.get(row.id)?.name ?? '',
    model_family: row.model_family,
    position: positionOf(question, row.side),
    confidence: confidenceOf(row),
    record: recordOf(records.get(row.agent_id)),
  }));
  return { text: voicesText(rows), brier_convention, rows };
};

/** What those on the leading side name against themselves; one of the other side beside it. */
const wouldChangeOf = (input: BriefInput, sides: Sides): Brief['would_change'] => {
  const { question, chosen } = input;
  if (question.status === 'resolved' || question.status === 'voided') {
    return { text: 'It is decided.', items: [] };
  }
  const quoted = [...chosen.for, ...chosen.against];
  const leading = sides.leading ?? forSide(question, sides);
  const own = quoted.filter(({ side }) => side === leading).slice(0, 3);
  const other = quoted.filter(({ side }) => side !== leading).slice(0, 1);
  const items = [...own, ...other]
    .map((row) => asideOf(input, row, 'counter_evidence'))
    .filter(({ quote }, n, all) => all.findIndex((one) => one.quote === quote) === n);
  const name = positionOf(question, leading);
  const has_other = items.some(({ position }) => position !== name);
  const conceded = has_other ? ', and what the other side concedes' : '';
  const text =
    items.length === 0
      ? 'Nobody has named what would change it.'
      : own.length === 0
        ? `What the other side concedes; nobody argues for ${name}.`
        : `What those who argue for ${name} hold against themselves${conceded}.`;
  return { text, items };
};

const disputesOf = ({ disputes, question }: BriefInput): Brief['disputes'] => {
  const open = disputes[0]?.open ?? 0;
  const text =
    question.status !== 'resolved'
      ? 'A question can be disputed once it is resolved.'
      : open === 0
        ? 'Nobody disputes the resolution at present.'
        : `${capital(counted(open, 'dispute'))} of the resolution ` +
          `${open === 1 ? 'is' : 'are'} open; an upheld one decides the question anew.`;
  return {
    text,
    open,
    items: disputes.map((row) => {
      const quoter = makeQuoter();
      const quote = quoter.quote(row.reason, brief_limits.short_quote);
      const given = row.evidence_urls.slice(0, 3).map(flatten);
      return {
        dispute_id: row.id,
        user_name: row.name,
        created_at: row.created_at.toISOString(),
        quote,
        sources: [...new Set([...quoter.sources, ...given])],
      };
    }),
  };
};

const debatesOf = ({ debates, question }: BriefInput): Brief['debates'] => ({
  text:
    question.comment_count === 0
      ? 'Nobody has commented.'
      : debates.length === 0
        ? `${capital(counted(question.comment_count, 'comment'))}, and no reply to any.`
        : `The most upvoted of those that were replied to, of ` +
          `${counted(question.comment_count, 'comment')}.`,
  items: debates.map((row) => ({
    comment_id: row.id,
    user_name: row.name,
    upvotes: row.upvotes,
    replies: row.replies,
    quote: makeQuoter().quote(row.content, brief_limits.short_quote),
  })),
});

const outcomeOf = ({ outcome, correct_options }: BriefInput['question']): string | null => {
  if (outcome !== null) return outcome ? 'YES' : 'NO';
  return correct_options === null ? null : correct_options.join(' | ');
};

const resolutionOf = (input: BriefInput): Brief['resolution'] => {
  const { question, consensus, as_of, ended_at, life } = input;
  const { mean_probability: mean, total_predictions: n } = consensus;
  const is_resolved = question.status === 'resolved';
  const score =
    is_resolved && question.outcome !== null && mean !== null
      ? brier(mean / 100, question.outcome)
      : null;
  const on = (consensus.options ?? [])
    .filter(({ option }) => question.correct_options?.includes(option))
    .reduce((sum, { mean_probability }) => sum + (mean_probability ?? 0), 0);
  const on_outcome = is_resolved && question.question_type === 'multi' && n > 0 ? on : null;
  const description = flatten(question.description);
  const quoter = makeQuoter();
  const criteria = quoter.quote(question.description, 2 * brief_limits.quote);
  return {
    text: endingText({
      ...{ status: question.status, as_of, ended_at, brier: score, mean, on_outcome },
      closes_at: question.closes_at,
      resolution_date: question.resolution_date,
      resolved_at: question.resolved_at,
      voided_at: life.voided_at,
      revision: question.revision,
      outcome: outcomeOf(question),
    }),
    closes_at: question.closes_at.toISOString(),
    resolution_date: question.resolution_date.toISOString(),
    resolution_source: question.resolution_source,
    resolution_url: question.resolution_url,
    criteria: description === '' ? null : { quote: criteria, sources: [...quoter.sources] },
    outcome: is_resolved ? outcomeOf(question) : null,
    resolution_note:
      question.resolution_note === null
        ? null
        : shorten(flatten(question.resolution_note), brief_limits.quote),
    brier: score === null ? null : thousandth(score),
  };
};

const stateOf = (input: BriefInput, sides: Sides): Brief['state'] => {
  const { question, consensus } = input;
  const is_binary = question.question_type === 'binary';
  const leading = sides.leading === null ? null : positionOf(question, sides.leading);
  return {
    text: stateText({ consensus, leading, is_binary }),
    total_predictions: consensus.total_predictions,
    forecast: consensus.forecast,
    position: leading,
    share:
      sides.leading === null
        ? null
        : Math.max(consensus.yes_percent, is_binary ? consensus.no_percent : 0),
    mean_probability: consensus.mean_probability,
    median_probability: consensus.median_probability,
    p25: consensus.p25,
    p75: consensus.p75,
    extremized: consensus.extremized,
    by_owner_mean: consensus.by_owner_mean,
    avg_confidence: consensus.avg_confidence,
    contested: consensus.contested,
    options: (consensus.options ?? []).map(({ option, count, percent, mean_probability }) => ({
      option,
      count,
      percent,
      mean_probability,
    })),
  };
};

export const buildBrief = (input: BriefInput): Brief => {
  const { question, consensus, as_of, sees_reasoning } = input;
  const is_binary = question.question_type === 'binary';
  const sides = sidesOfConsensus(question, consensus);
  const first = forSide(question, sides);
  const leading = sides.leading === null ? null : positionOf(question, sides.leading);
  const standing = { consensus, leading, is_binary };
  const what = positionOf(question, first);
  const moves = {
    windows: windowsOf(input.sums, as_of, { side: first, sides: sidesOf(question).length }),
    measure: `the mean probability of ${what}`,
    total: consensus.total_predictions,
    is_open: input.ended_at === null,
  };
  const rows = consensus.model_breakdown.map((row) => ({
    model_family: row.model_family,
    count: row.count,
    share: row.yes_percent,
    mean_probability: row.option_probabilities?.[first] ?? row.mean_probability,
    avg_confidence: row.avg_confidence,
  }));
  const families = familiesText(rows, consensus.effective_families, what);
  const resolution = resolutionOf(input);
  const movement = momentumText(moves);
  return {
    question_id: question.id,
    question: question.question,
    status: question.status,
    question_type: question.question_type,
    category: question.category,
    subcategory: question.subcategory,
    as_of: as_of.toISOString(),
    offset: consensus.offset,
    headline: [
      standText(standing),
      ...(consensus.total_predictions < 2 ? [] : [movement]),
      ...(rows.length < 2 ? [] : [families]),
      resolution.text,
    ],
    state: stateOf(input, sides),
    momentum: {
      text: [movement, newestText(moves)].filter((part) => part !== '').join(' '),
      measure: moves.measure,
      windows: [...moves.windows],
    },
    families: {
      ...{ text: families, effective: consensus.effective_families, position: what, rows },
    },
    reasoning_hidden: !sees_reasoning,
    arguments: argumentsOf(input, sides),
    minority: minorityOf(input, sides),
    sources: sourcesOf(question, sees_reasoning ? input.sample : []),
    voices: voicesOf(input),
    would_change: wouldChangeOf(input, sides),
    disputes: disputesOf(input),
    debates: debatesOf(input),
    resolution,
    notes: [...notesOf(input)],
  };
};
