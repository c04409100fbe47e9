import { findLinks } from '../../kit/text.js';
import { isNumber } from '../consensus/numbers.js';
import { chanceIn } from '../consensus/reading.js';
import { type Consensus, meanGiven } from '../consensus/rules.js';
import { meanInterval, wilson } from '../points/calibration.js';
import { brier, brier_convention } from '../points/score-rules.js';
import { readCitation } from '../predictions/citations.js';
import { readSections } from '../predictions/reasoning.js';
import { flatten, shorten } from './markdown.js';
import {
  brief_limits,
  outcomeText,
  positionOf,
  rankSides,
  type Sides,
  sidesOf,
  sourcesOf,
  thousandth,
} from './rules.js';
import type { AgentRecord, Argument, Aside, Brief, Window } from './schema.js';
import { headlineOf, notesOf } from './sentences.js';
import type { BriefInput, Quoted } from './store.js';

/** Builds a brief from its input. The same input gives the same brief, byte for byte. */

const max_sources = 6;

/**
 * Quotes agents' texts: on one line, shortened, with addresses replaced by source numbers. All
 * quotes share one numbering.
 */
const makeQuoter = () => {
  const sources: string[] = [];
  const keys: string[] = [];
  const nameOf = (url: string): string => {
    const { key } = readCitation(url);
    if (!keys.includes(key) && keys.length < max_sources) {
      keys.push(key);
      sources.push(flatten(url));
    }
    return keys.includes(key) ? `[${keys.indexOf(key) + 1}]` : '[link]';
  };
  const quote = (text: string, most: number): string => {
    let written = '';
    let from = 0;
    const links = findLinks(text);
    for (let n = 0; n < links.length; n += 2) {
      const [start = 0, end = 0] = links.slice(n, n + 2);
      written += text.slice(from, start) + nameOf(text.slice(start, end));
      from = end;
    }
    // Removes brackets that contain only an address.
    const bare = (written + text.slice(from))
      .replace(/\((\[(?:\d+|link)\])\)|<(\[(?:\d+|link)\])>/g, '$1$2')
      .replaceAll('**', '');
    return shorten(flatten(bare), most);
  };
  return { quote, sources };
};

type Question = BriefInput['question'];

const argumentOf = (question: Question, row: Quoted): Argument => {
  const { id: prediction_id, name: user_name, model_family, confidence, upvotes, downvotes } = row;
  const { bottom_line, evidence } = readSections(row.reasoning);
  const { quote, sources } = makeQuoter();
  return {
    prediction_id,
    user_name,
    model_family,
    position: positionOf(question, row.side),
    confidence,
    upvotes,
    downvotes,
    created_at: row.created_at.toISOString(),
    bottom_line: { quote: quote(bottom_line, brief_limits.short_quote) },
    evidence: { quote: quote(evidence, brief_limits.quote) },
    sources,
  };
};

const asideOf = (
  question: Question,
  row: Quoted,
  section: 'analysis' | 'counter_evidence',
): Aside => {
  const { quote, sources } = makeQuoter();
  const most = section === 'analysis' ? brief_limits.quote : brief_limits.short_quote;
  return {
    prediction_id: row.id,
    user_name: row.name,
    position: positionOf(question, row.side),
    quote: quote(readSections(row.reasoning)[section], most),
    sources,
  };
};

/** Returns the headline of YES, or of an option. */
const chanceOf = (consensus: Consensus, side: number): number | null =>
  consensus.options === undefined
    ? chanceIn(consensus)
    : (consensus.options[side]?.forecast ?? null);

const windowsOf = ({ question, consensus, windows }: BriefInput, { first }: Sides): Window[] => {
  const sides = sidesOf(question).length;
  return windows.map(({ name, since, before, count_new, given_new }) => {
    const from = before === undefined ? null : chanceOf(before, first);
    const to = chanceOf(consensus, first);
    return {
      name,
      since: since.toISOString(),
      from,
      to,
      change: from === null || to === null ? null : Math.round(100 * (to - from)) / 100,
      new_predictions: count_new,
      new_mean: meanGiven(given_new, count_new, sides),
    };
  });
};

const minorityOf = (
  { question, chosen }: BriefInput,
  { minority, counts }: Sides,
): Brief['minority'] => {
  if (minority === null) return { position: null, count: 0, case: null };
  const argued = [...chosen.for, ...chosen.against].find(({ side }) => side === minority);
  return {
    position: positionOf(question, minority),
    count: counts[minority] ?? 0,
    case: argued === undefined ? null : asideOf(question, argued, 'analysis'),
  };
};

/**
 * Quotes the counter-evidence from up to three arguments for the leading side, and from one for
 * another side.
 */
const wouldChangeOf = ({ question, chosen }: BriefInput, sides: Sides): Aside[] => {
  if (question.status === 'resolved' || question.status === 'voided') return [];
  const quoted = [...chosen.for, ...chosen.against];
  const leading = sides.leading ?? sides.first;
  const own = quoted.filter(({ side }) => side === leading).slice(0, 3);
  const other = quoted.filter(({ side }) => side !== leading).slice(0, 1);
  return [...own, ...other].map((row) => asideOf(question, row, 'counter_evidence'));
};

const whole = (share: number): number => Math.round(share * 100);

const recordOf = ({ resolved, correct, brier: mean, variance }: Quoted): AgentRecord => {
  if (mean === null) {
    const none = { accuracy: null, accuracy_interval: null, brier: null, brier_interval: null };
    return { resolved: 0, ...none };
  }
  const hits = wilson(correct, resolved);
  const scores = meanInterval(mean, variance ?? 0, resolved);
  return {
    resolved,
    accuracy: whole(correct / resolved),
    accuracy_interval: { low: whole(hits.low), high: whole(hits.high) },
    brier: thousandth(mean),
    brier_interval: { low: thousandth(scores.low), high: thousandth(scores.high) },
  };
};

const disputesOf = ({ disputes }: BriefInput): Brief['disputes'] => ({
  open: disputes[0]?.open ?? 0,
  items: disputes.map(({ id, name, created_at, reason, evidence_urls }) => {
    const { quote, sources } = makeQuoter();
    return {
      dispute_id: id,
      user_name: name,
      created_at: created_at.toISOString(),
      quote: quote(reason, brief_limits.short_quote),
      sources: [...new Set([...sources, ...evidence_urls.slice(0, 3).map(flatten)])],
    };
  }),
});

const resolutionOf = ({ question, consensus }: BriefInput): Brief['resolution'] => {
  const { status, outcome, resolution_note: note, description } = question;
  const { quote, sources } = makeQuoter();
  const criteria = quote(description, 2 * brief_limits.quote);
  const forecast = chanceIn(consensus);
  const is_resolved = status === 'resolved';
  const score = is_resolved && outcome !== null && forecast !== null;
  return {
    closes_at: question.closes_at.toISOString(),
    resolution_date: question.resolution_date.toISOString(),
    resolution_source: question.resolution_source,
    resolution_url: question.resolution_url,
    criteria: criteria === '' ? null : { quote: criteria, sources },
    outcome: is_resolved ? outcomeText(question) : null,
    resolution_note: note === null ? null : shorten(flatten(note), brief_limits.quote),
    brier: score ? thousandth(brier(forecast / 100, outcome)) : null,
  };
};

/** Returns the quantiles of a number or a date. Empty for other questions. */
const quantilesIn = ({ headline: quantiles }: Consensus) =>
  quantiles === undefined ? {} : { quantiles };

const stateOf = ({ question, consensus }: BriefInput, { leading }: Sides): Brief['state'] => ({
  total_predictions: consensus.total_predictions,
  forecast: chanceIn(consensus),
  ...quantilesIn(consensus),
  position: leading === null ? null : positionOf(question, leading),
  share:
    leading === null
      ? null
      : Math.max(
          consensus.yes_percent ?? 0,
          question.question_type === 'binary' ? (consensus.no_percent ?? 0) : 0,
        ),
  mean_probability: consensus.mean_probability,
  median_probability: consensus.median_probability,
  p25: consensus.p25,
  p75: consensus.p75,
  pooled: consensus.pooled,
  candidates: consensus.candidates,
  by_owner_mean: consensus.by_owner_mean,
  avg_confidence: consensus.avg_confidence,
  contested: consensus.contested,
  options: (consensus.options ?? []).map(({ avg_confidence: _, ...option }) => option),
});

export const buildBrief = (input: BriefInput): Brief => {
  const { question, consensus, chosen, sees_reasoning } = input;
  const sides = rankSides(question, consensus);
  const position = positionOf(question, sides.first);
  const quoted = [...chosen.for, ...chosen.against];
  const brief: Brief = {
    question_id: question.id,
    question: question.question,
    status: question.status,
    question_type: question.question_type,
    category: question.category,
    subcategory: question.subcategory,
    as_of: input.as_of.toISOString(),
    offset: consensus.offset,
    headline: [],
    state: stateOf(input, sides),
    momentum: {
      measure: isNumber(question) ? position : `the chance of ${position}`,
      windows: windowsOf(input, sides),
    },
    families: {
      effective_forecasters: consensus.effective_forecasters,
      position,
      rows: consensus.model_breakdown.map((row) => ({
        model_family: row.model_family,
        count: row.count,
        share: row.yes_percent,
        mean_probability: row.option_probabilities?.[sides.first] ?? row.mean_probability,
        avg_confidence: row.avg_confidence,
        ...(row.quantiles && { median: row.quantiles.p50 }),
      })),
    },
    reasoning_hidden: !sees_reasoning,
    arguments: {
      for: chosen.for.map((row) => argumentOf(question, row)),
      against: chosen.against.map((row) => argumentOf(question, row)),
    },
    minority: minorityOf(input, sides),
    sources: sourcesOf(question, sees_reasoning ? input.sample : []),
    voices: {
      brier_convention,
      rows: quoted.map((row) => ({
        user_id: row.agent_id,
        user_name: row.name,
        model_family: row.model_family,
        position: positionOf(question, row.side),
        confidence: row.confidence,
        record: recordOf(row),
      })),
    },
    would_change: { items: wouldChangeOf(input, sides) },
    disputes: disputesOf(input),
    resolution: resolutionOf(input),
    notes: notesOf(input),
  };
  return { ...brief, headline: headlineOf(brief, input) };
};
