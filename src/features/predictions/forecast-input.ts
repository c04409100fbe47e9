import { findName } from '../../kit/names.js';
import {
  fromPercent,
  isAmbiguous,
  type Scale,
  toFraction,
  toPercent,
  whole_bp,
} from '../../kit/percent.js';
import type { ForecastData } from '../events/catalogue.js';
import { type RangeColumns, rangeOf } from '../questions/range.js';
import type { QuestionType } from '../questions/schema.js';
import { type CdfBody, readCdf, scaleOfCdf, showCdf } from './cdf-input.js';
import { nameProbabilities, no_cdf } from './columns.js';
import type { ForecastColumns } from './distribution.js';
import type { Failure } from './faults.js';

/**
 * Reads a forecast in any of the accepted forms. A yes/no question takes `prediction` +
 * `confidence`, or `probability` (of YES); a question with options takes `selected_option` +
 * `confidence`, or `probabilities`. Forms given together must agree. Some clients send the same
 * fields to both kinds of question: beside `selected_option`, `prediction` is ignored and
 * `probability` is the confidence. Numbers are percentages or fractions of 1, as `scale` says.
 * Without `scale`, a number strictly between 0 and 1 is a fraction. A question about a number or a
 * date takes a distribution; see `cdf-input.ts`.
 */

interface GivenBody extends CdfBody {
  /** Also accepts "yes", "true", "no" and "false", in upper or lower case. */
  readonly prediction?: boolean | string;
  readonly confidence?: number;
  readonly probability?: number;
  readonly selected_option?: string;
  /** Keyed by option, or a list in the order of the options. */
  readonly probabilities?: Readonly<Record<string, number>> | readonly number[];
}
/** Null means absent, so answers and lines of exports can be sent back unchanged. */
export type ForecastBody = { readonly [N in keyof GivenBody]: GivenBody[N] | null };

export interface ForecastQuestion extends Omit<RangeColumns, 'unit'> {
  readonly question_type: QuestionType;
  readonly options: readonly string[];
}

type Result = ForecastColumns | { readonly failures: readonly Failure[] };

/** Returns the forecast, or everything that is wrong with it. */
export const readForecastInput = (body: ForecastBody, question: ForecastQuestion): Result => {
  const present = Object.entries(body).filter(([, value]) => value !== null);
  const given = Object.fromEntries(present) as GivenBody;
  const range = rangeOf(question);
  const foreign = findForeign(given, question);
  if (foreign !== null) return fail(foreign);
  if (range !== null) {
    const cdf = readCdf(given, range);
    return 'path' in cdf
      ? fail({ ...cdf, code: 'INVALID_DISTRIBUTION' })
      : { ...no_forecast, confidence: whole_bp / 2, cdf };
  }
  return question.question_type === 'binary'
    ? readBinary(given)
    : readMulti(given, question.options);
};

const no_forecast = {
  prediction: null,
  probability: null,
  selected_option: null,
  probabilities: null,
  cdf: null,
};

/** Returns the text of the selected option. Null if the question has no options. */
export const optionIn = (
  { selected_option }: ForecastColumns,
  options: readonly string[],
): string | null => (selected_option === null ? null : (options[selected_option] ?? null));

/** Formats a forecast for events. */
export const dataOf = (
  stated: ForecastColumns,
  { options, question_type }: Pick<ForecastQuestion, 'options' | 'question_type'>,
): ForecastData => {
  const { prediction, probability, confidence, selected_option, probabilities } = stated;
  const named = nameProbabilities(options, probabilities);
  return {
    confidence: toPercent(confidence),
    ...(prediction === null || probability === null
      ? {}
      : { prediction, probability: toPercent(probability) }),
    ...(selected_option === null
      ? {}
      : {
          selected_option: options[selected_option] ?? '',
          option_index: selected_option,
          option_count: options.length,
        }),
    ...(named === null ? {} : { probabilities: named }),
    ...showCdf(stated.cdf, { question_type }),
    scale: 'percent',
  };
};

/** Formats a forecast for answers. Sent back, it gives the same forecast. */
export const showForecastInput = (
  stated: ForecastColumns,
  question: Pick<ForecastQuestion, 'options' | 'question_type'>,
) => {
  const { prediction, probability, confidence, probabilities, cdf } = stated;
  return {
    prediction,
    selected_option: optionIn(stated, question.options),
    probability: probability === null ? null : toPercent(probability),
    confidence: toPercent(confidence),
    probabilities: nameProbabilities(question.options, probabilities),
    ...(showCdf(cdf, question) ?? no_cdf),
    scale: 'percent' as const,
  };
};

/** Returns the scale in which the numbers were read. Null if the body has no numbers. */
export const understoodScale = (body: ForecastBody): Scale | null => {
  const { scale, probabilities, probability, confidence } = body;
  if (scale) return scale;
  // Answers to numeric questions also have a confidence, so the distribution comes first.
  if (body.quantiles ?? body.cdf ?? body.continuous_cdf) return scaleOfCdf(body);
  if (probabilities) return sumOf(Object.values(probabilities)) > 50 ? 'percent' : 'fraction';
  const single = probability ?? confidence ?? null;
  return single === null ? null : scaleOf(single, null);
};

type Code = 'INVALID_CONFIDENCE' | 'INVALID_OPTION';
type PercentField = keyof GivenBody | 'prior_probability';
const failure = (code: Code, field: PercentField, message: string): Failure => ({
  path: `body.${field}`,
  message,
  code,
});
const fail = (...failures: readonly Failure[]): Result => ({ failures });

/** Allows a difference of one basis point, because each number was rounded separately. */
const agree = (bp: number, other: number): boolean => Math.abs(bp - other) <= 1;

interface Read {
  readonly field: PercentField;
  readonly scale: Scale | null | undefined;
}

/** Without a scale, a number below 1 is a fraction. */
const scaleOf = (value: number, scale: Scale | null | undefined): Scale =>
  scale ?? (value < 1 ? 'fraction' : 'percent');

/**
 * Converts a number to the nearest basis point. Without a scale, 1 (within floating-point noise) is
 * rejected, because it could mean 1 % or 100 %.
 */
export const readProbability = (value: number, { field, scale }: Read): number | Failure => {
  if (isAmbiguous(value) && !scale) {
    return failure(
      'INVALID_CONFIDENCE',
      field,
      `${field} ${value} is ambiguous. Send 100 for certain or 0.01 for one percent, or state the ` +
        'scale: percent or fraction.',
    );
  }
  const fraction = toFraction(value, scaleOf(value, scale));
  if (fraction >= 0 && fraction <= 1) return fromPercent(fraction * 100);
  const range = { percent: '0 to 100', fraction: '0 to 1' } as const;
  return failure(
    'INVALID_CONFIDENCE',
    field,
    scale
      ? `${field} must be from ${range[scale]}, because scale is ${scale}.`
      : `${field} must be a percentage from 0 to 100, or a fraction between 0 and 1.`,
  );
};

/** The schema of the body accepts no other texts. */
const readSide = (given: boolean | string | undefined): boolean | undefined =>
  typeof given === 'string' ? /^(?:yes|true)$/i.test(given) : given;

const readNamed = ({ scale }: GivenBody, field: PercentField, value: number) =>
  readProbability(value, { field, scale });

const readBinary = (body: GivenBody): Result => {
  const prediction = readSide(body.prediction);
  const probability =
    body.probability === undefined ? undefined : readNamed(body, 'probability', body.probability);
  const confidence =
    body.confidence === undefined ? undefined : readNamed(body, 'confidence', body.confidence);
  const wrong = [probability, confidence].filter((value) => typeof value === 'object');
  if (wrong.length > 0) return fail(...wrong);
  return settleBinary({
    prediction,
    probability: probability as number | undefined,
    confidence: confidence as number | undefined,
  });
};

interface BinaryParts {
  readonly prediction: boolean | undefined;
  readonly probability: number | undefined;
  readonly confidence: number | undefined;
}

const settleBinary = ({ prediction, probability, confidence }: BinaryParts): Result => {
  if (probability === undefined) {
    if (prediction === undefined) {
      const message = 'Send prediction (true or false) with confidence, or send probability.';
      return fail(failure('INVALID_OPTION', 'prediction', message));
    }
    if (confidence === undefined) {
      const message = 'Send confidence with prediction: a number from 0 to 100.';
      return fail(failure('INVALID_CONFIDENCE', 'confidence', message));
    }
    return binaryStated(prediction, prediction ? confidence : whole_bp - confidence);
  }
  // At 50 both sides agree with the probability, and YES is the default.
  const side = prediction ?? probability >= whole_bp / 2;
  const on_side = side ? probability : whole_bp - probability;
  if (prediction !== undefined && confidence === undefined && on_side < whole_bp / 2) {
    const message = `prediction ${prediction} contradicts probability ${toPercent(probability)}.`;
    return fail(failure('INVALID_CONFIDENCE', 'probability', message));
  }
  if (confidence !== undefined && !agree(confidence, on_side)) {
    const message = `confidence ${toPercent(confidence)} contradicts probability ${toPercent(probability)}. Send only one.`;
    return fail(failure('INVALID_CONFIDENCE', 'probability', message));
  }
  return binaryStated(side, probability);
};

const binaryStated = (prediction: boolean, probability: number): ForecastColumns => ({
  ...no_forecast,
  prediction,
  probability,
  confidence: prediction ? probability : whole_bp - probability,
});

const of_options = ['selected_option', 'probabilities'] as const;
const of_number = ['quantiles', 'cdf', 'continuous_cdf', 'below', 'above'] as const;
const of_sides = ['prediction', 'probability'] as const;

/** Fields that each type of question rejects. */
const foreign: Readonly<Record<QuestionType, readonly PercentField[]>> = {
  binary: [...of_options, ...of_number],
  multi: [...of_number, ...of_sides],
  numeric: [...of_options, ...of_sides],
  date: [...of_options, ...of_sides],
};

const taken: Readonly<Record<QuestionType, string>> = {
  binary: 'This is a yes/no question. Send prediction or probability.',
  multi: 'This question has options. Send selected_option or probabilities.',
  numeric: 'This question asks for a number. Send quantiles, cdf or continuous_cdf.',
  date: 'This question asks for a date. Send quantiles, cdf or continuous_cdf.',
};

/**
 * Finds a field that belongs to another type of question. With `selected_option`, `prediction` and
 * `probability` are allowed. Questions about a number or a date ignore `confidence`, because
 * answers contain it and can be sent back.
 */
const findForeign = (body: GivenBody, { question_type }: ForecastQuestion): Failure | null => {
  const found = foreign[question_type].find(
    (field) =>
      body[field as keyof GivenBody] !== undefined &&
      !(body.selected_option !== undefined && of_sides.some((side) => side === field)),
  );
  return found === undefined ? null : failure('INVALID_OPTION', found, taken[question_type]);
};

/** Reads `confidence`, or `probability` in its place. If both are sent, they must agree. */
const readConfidence = (body: GivenBody): number | Failure | undefined => {
  const { confidence: given, probability } = body;
  const confidence = given === undefined ? undefined : readNamed(body, 'confidence', given);
  if (probability === undefined || typeof confidence === 'object') return confidence;
  const other = readNamed(body, 'probability', probability);
  if (typeof other === 'object' || confidence === undefined) return other;
  if (agree(confidence, other)) return confidence;
  const message = `confidence ${toPercent(confidence)} contradicts probability ${toPercent(other)}. Send only one.`;
  return failure('INVALID_CONFIDENCE', 'probability', message);
};

const readMulti = (body: GivenBody, options: readonly string[]): Result => {
  const failures: Failure[] = [];
  const keep = <T extends object | number>(value: T | Failure | undefined): T | undefined => {
    if (typeof value !== 'object' || !('code' in value)) return value as T | undefined;
    failures.push(value);
    return undefined;
  };
  const selected = keep<number>(readSelected(body.selected_option, options));
  const confidence = keep<number>(readConfidence(body));
  const shares = keep<number[]>(readProbabilities(body, options));
  if (failures.length > 0) return fail(...failures);
  if (shares !== undefined) return settleStatedShares(shares, { selected, confidence });
  if (selected === undefined) {
    const message = 'Send selected_option with confidence, or send probabilities.';
    return fail(failure('INVALID_OPTION', 'selected_option', message));
  }
  if (confidence === undefined) {
    const message = 'Send confidence with selected_option: a number from 0 to 100.';
    return fail(failure('INVALID_CONFIDENCE', 'confidence', message));
  }
  return { ...no_forecast, confidence, selected_option: selected };
};

interface MultiParts {
  readonly selected: number | undefined;
  readonly confidence: number | undefined;
}

const settleStatedShares = (shares: number[], parts: MultiParts): Result => {
  const most = Math.max(...shares);
  const selected = parts.selected ?? shares.indexOf(most);
  const confidence = shares[selected]!;
  if (!agree(confidence, most)) {
    const message = 'selected_option contradicts the probabilities. Send only one.';
    return fail(failure('INVALID_OPTION', 'selected_option', message));
  }
  if (parts.confidence !== undefined && !agree(parts.confidence, confidence)) {
    const message = `confidence ${toPercent(parts.confidence)} contradicts the probabilities. Send only one.`;
    return fail(failure('INVALID_CONFIDENCE', 'confidence', message));
  }
  return { ...no_forecast, confidence, selected_option: selected, probabilities: shares };
};

const unknownOption = (field: keyof GivenBody, text: string, options: readonly string[]) =>
  failure(
    'INVALID_OPTION',
    field,
    `“${text.slice(0, 60)}” is not an option. The options are ${options.join(', ')}.`,
  );

const readSelected = (
  text: string | undefined,
  options: readonly string[],
): number | Failure | undefined => {
  if (text === undefined) return undefined;
  const index = findName(text, options);
  return index === -1 ? unknownOption('selected_option', text, options) : index;
};

/** Returns basis points in the order of the options. Options that are not named get 0. */
const readProbabilities = (
  { probabilities: stated, scale }: GivenBody,
  options: readonly string[],
): number[] | Failure | undefined => {
  if (stated === undefined) return undefined;
  const field = 'probabilities';
  const values = new Array<number>(options.length).fill(0);
  const named = new Set<number>();
  if (Array.isArray(stated) && stated.length !== options.length) {
    const message = `Send ${options.length} probabilities, one per option in the order of the options.`;
    return failure('INVALID_CONFIDENCE', field, message);
  }
  for (const [text, value] of Object.entries(stated)) {
    const index = Array.isArray(stated) ? Number(text) : findName(text, options);
    if (index === -1) return unknownOption(field, text, options);
    if (named.has(index)) {
      return failure('INVALID_OPTION', field, `“${text.slice(0, 60)}” is named twice.`);
    }
    // Only the sum shows whether these are percentages, so noise is measured on the smaller scale.
    const share = toFraction(value, 'fraction') === 0 ? 0 : value;
    if (!(share >= 0 && share <= 101)) {
      return failure('INVALID_CONFIDENCE', field, 'A probability must be between 0 and 100.');
    }
    named.add(index);
    values[index] = share;
  }
  const sum = sumOf(values);
  const wanted = scale === undefined ? [100, 1] : [scale === 'percent' ? 100 : 1];
  if (wanted.some((whole) => Math.abs(sum - whole) <= whole * 0.01 + 1e-9)) {
    return shareOut(values, sum);
  }
  const message = `The probabilities sum to ${Number(sum.toFixed(3))}. They must sum to ${wanted.join(' or ')}.`;
  return failure('INVALID_CONFIDENCE', field, message);
};

const sumOf = (values: readonly number[]): number =>
  values.reduce((total, value) => total + value, 0);

/**
 * Largest remainder method: each option gets the whole basis points of its share, and the rest goes
 * to the largest remainders, the earlier option first. Remainders are compared to seven digits, so
 * floating-point noise such as in 0.29·100 decides nothing.
 */
const shareOut = (values: readonly number[], sum: number): number[] => {
  const exact = values.map((value) => Math.round((value / sum) * whole_bp * 1e7) / 1e7);
  const shares = exact.map(Math.floor);
  const left = whole_bp - shares.reduce((total, share) => total + share, 0);
  const order = [...exact.keys()].sort(
    (a, b) => exact[b]! - shares[b]! - (exact[a]! - shares[a]!) || a - b,
  );
  for (const index of order.slice(0, left)) shares[index]! += 1;
  return shares;
};
