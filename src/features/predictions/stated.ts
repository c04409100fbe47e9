import { normaliseText } from '../../kit/text.js';
import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  percentDistribution,
} from '../points/index.js';
import type { Failure } from './schema.js';

/**
 * What a client states, in any of the accepted forms, brought to one value. A yes/no question
 * takes `prediction` + `confidence`, or `probability` (of YES); a question with options takes
 * `selected_option` + `confidence`, or `probabilities`. Forms given together must agree. Beside
 * `selected_option`, as clients for both kinds of question send it, `prediction` says nothing and
 * `probability` is the confidence.
 */

export interface StatedBody {
  /** Also "yes" and "true", "no" and "false", in any case. */
  readonly prediction?: boolean | string;
  readonly confidence?: number;
  readonly probability?: number;
  readonly selected_option?: string;
  readonly probabilities?: Readonly<Record<string, number>>;
}

export interface StatedQuestion {
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
}

/** The columns of a stored prediction from which its distribution follows. */
export interface Stated {
  /** Null for a question with options. */
  readonly prediction: boolean | null;
  /** Chance of YES in whole percent; null for a question with options. */
  readonly probability: number | null;
  /** Whole percent on the side or the option taken. */
  readonly confidence: number;
  /** Index of the option; null for a yes/no question. */
  readonly selected_option: number | null;
  /** Whole percents that sum to 100, where stated; null: the rest is spread evenly. */
  readonly probabilities: readonly number[] | null;
}

type Result = Stated | { readonly failures: readonly Failure[] };

/** The stated value, or everything that is wrong with it. */
export const readStated = (body: StatedBody, question: StatedQuestion): Result =>
  question.question_type === 'binary' ? readBinary(body) : readMulti(body, question.options);

/** The distribution that is stated; `options` is the number of options of the question. */
export const distributionOf = (stated: Stated, options: number): Distribution => {
  const { probability, probabilities, confidence } = stated;
  if (probability !== null) return binaryDistribution(probability);
  if (probabilities !== null) return percentDistribution(probabilities);
  return evenRestDistribution({ options, selected: stated.selected_option ?? 0, confidence });
};

type Code = 'INVALID_CONFIDENCE' | 'INVALID_OPTION';
type PercentField = keyof StatedBody | 'prior_probability';
const failure = (code: Code, field: PercentField, message: string): Failure => ({
  path: `body.${field}`,
  message,
  code,
});
const fail = (...failures: readonly Failure[]): Result => ({ failures });

/**
 * Whole percents from 0 to 100, or a fraction strictly between 0 and 1, which is rounded to the
 * nearest whole percent, a half up (0.004 is 0 and 0.996 is 100). Exactly 1 could be either, and
 * is refused. The digits are cut to 12 first, so that 0.285 is 28.5 and not 28.499999999999996.
 */
export const readPercent = (value: number, field: PercentField): number | Failure => {
  if (value === 1) {
    return failure(
      'INVALID_CONFIDENCE',
      field,
      `${field} 1 is ambiguous: send 100 for certain, or 0.01 for one percent.`,
    );
  }
  if (value > 0 && value < 1) return Math.round(Number((value * 100).toPrecision(12)));
  if (Number.isInteger(value) && value >= 0 && value <= 100) return value + 0;
  return failure(
    'INVALID_CONFIDENCE',
    field,
    `${field} is a whole number from 0 to 100, or a fraction between 0 and 1.`,
  );
};

/** The schema of the wire lets no other text through. */
const readSide = (given: boolean | string | undefined): boolean | undefined =>
  typeof given === 'string' ? /^(?:yes|true)$/i.test(given) : given;

const readBinary = (body: StatedBody): Result => {
  for (const field of ['selected_option', 'probabilities'] as const) {
    if (body[field] !== undefined) {
      return fail(
        failure('INVALID_OPTION', field, 'A yes/no question takes prediction or probability.'),
      );
    }
  }
  const prediction = readSide(body.prediction);
  const probability =
    body.probability === undefined ? undefined : readPercent(body.probability, 'probability');
  const confidence =
    body.confidence === undefined ? undefined : readPercent(body.confidence, 'confidence');
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
      const message = 'Send prediction (true or false) with confidence, or probability.';
      return fail(failure('INVALID_OPTION', 'prediction', message));
    }
    if (confidence === undefined) {
      const message = 'Send confidence with prediction: a whole number from 0 to 100.';
      return fail(failure('INVALID_CONFIDENCE', 'confidence', message));
    }
    return binaryStated(prediction, prediction ? confidence : 100 - confidence);
  }
  // At 50 both sides agree with the probability; YES is taken where none is named.
  const side = prediction ?? probability >= 50;
  const on_side = side ? probability : 100 - probability;
  if (prediction !== undefined && confidence === undefined && on_side < 50) {
    const message = `prediction ${prediction} contradicts probability ${probability}.`;
    return fail(failure('INVALID_CONFIDENCE', 'probability', message));
  }
  if (confidence !== undefined && confidence !== on_side) {
    const message = `confidence ${confidence} contradicts probability ${probability}; send one.`;
    return fail(failure('INVALID_CONFIDENCE', 'probability', message));
  }
  return binaryStated(side, probability);
};

const binaryStated = (prediction: boolean, probability: number): Stated => ({
  prediction,
  probability,
  confidence: prediction ? probability : 100 - probability,
  selected_option: null,
  probabilities: null,
});

/** Without an option, a side and a chance of YES say nothing about a question with options. */
const findForeign = (body: StatedBody): Failure | null => {
  if (body.selected_option !== undefined) return null;
  for (const field of ['prediction', 'probability'] as const) {
    if (body[field] === undefined) continue;
    const message = 'This question has options: send selected_option or probabilities.';
    return failure('INVALID_OPTION', field, message);
  }
  return null;
};

/** `confidence`, or `probability` in its place. */
const readConfidence = ({
  confidence: given,
  probability,
}: StatedBody): number | Failure | undefined => {
  const confidence = given === undefined ? undefined : readPercent(given, 'confidence');
  if (probability === undefined || typeof confidence === 'object') return confidence;
  const other = readPercent(probability, 'probability');
  if (confidence === undefined || confidence === other || typeof other === 'object') return other;
  const message = `confidence ${confidence} contradicts probability ${other}; send one.`;
  return failure('INVALID_CONFIDENCE', 'probability', message);
};

const readMulti = (body: StatedBody, options: readonly string[]): Result => {
  const foreign = findForeign(body);
  if (foreign !== null) return fail(foreign);
  const failures: Failure[] = [];
  const keep = <T extends object | number>(value: T | Failure | undefined): T | undefined => {
    if (typeof value !== 'object' || !('code' in value)) return value as T | undefined;
    failures.push(value);
    return undefined;
  };
  const selected = keep<number>(readSelected(body.selected_option, options));
  const confidence = keep<number>(readConfidence(body));
  const percents = keep<number[]>(readProbabilities(body.probabilities, options));
  if (failures.length > 0) return fail(...failures);
  if (percents !== undefined) return settleStatedPercents(percents, { selected, confidence });
  if (selected === undefined) {
    const message = 'Send selected_option with confidence, or probabilities.';
    return fail(failure('INVALID_OPTION', 'selected_option', message));
  }
  if (confidence === undefined) {
    const message = 'Send confidence with selected_option: a whole number from 0 to 100.';
    return fail(failure('INVALID_CONFIDENCE', 'confidence', message));
  }
  return {
    prediction: null,
    probability: null,
    confidence,
    selected_option: selected,
    probabilities: null,
  };
};

interface MultiParts {
  readonly selected: number | undefined;
  readonly confidence: number | undefined;
}

const settleStatedPercents = (percents: number[], parts: MultiParts): Result => {
  const most = Math.max(...percents);
  const selected = parts.selected ?? percents.indexOf(most);
  if (percents[selected] !== most) {
    const message = 'selected_option is not the most probable of the probabilities; send one.';
    return fail(failure('INVALID_OPTION', 'selected_option', message));
  }
  if (parts.confidence !== undefined && parts.confidence !== most) {
    const message = `confidence ${parts.confidence} contradicts the probabilities; send one.`;
    return fail(failure('INVALID_CONFIDENCE', 'confidence', message));
  }
  return {
    prediction: null,
    probability: null,
    confidence: most,
    selected_option: selected,
    probabilities: percents,
  };
};

/** Options are compared in NFC and without blanks around them, otherwise to the letter. */
const findOption = (text: string, options: readonly string[]): number => {
  const wanted = normaliseText(text).trim();
  return options.findIndex((option) => normaliseText(option).trim() === wanted);
};

const unknownOption = (field: keyof StatedBody, text: string, options: readonly string[]) =>
  failure(
    'INVALID_OPTION',
    field,
    `“${text.slice(0, 60)}” is not an option; the options are ${options.join(', ')}.`,
  );

const readSelected = (
  text: string | undefined,
  options: readonly string[],
): number | Failure | undefined => {
  if (text === undefined) return undefined;
  const index = findOption(text, options);
  return index === -1 ? unknownOption('selected_option', text, options) : index;
};

/** By option, in the question's order; options that are not named have 0. */
const readProbabilities = (
  stated: Readonly<Record<string, number>> | undefined,
  options: readonly string[],
): number[] | Failure | undefined => {
  if (stated === undefined) return undefined;
  const field = 'probabilities';
  const values = new Array<number>(options.length).fill(0);
  const named = new Set<number>();
  for (const [text, value] of Object.entries(stated)) {
    const index = findOption(text, options);
    if (index === -1) return unknownOption(field, text, options);
    if (named.has(index)) {
      return failure('INVALID_OPTION', field, `“${text.slice(0, 60)}” is named twice.`);
    }
    if (!(value >= 0 && value <= 100.5)) {
      return failure('INVALID_CONFIDENCE', field, 'A probability lies between 0 and 100.');
    }
    named.add(index);
    values[index] = value;
  }
  const sum = values.reduce((total, value) => total + value, 0);
  if (Math.abs(sum - 100) <= 0.5 + 1e-9 || Math.abs(sum - 1) <= 0.005 + 1e-9) {
    return shareOut(values, sum);
  }
  const shown = Number(sum.toFixed(3));
  return failure('INVALID_CONFIDENCE', field, `probabilities sum to ${shown}, not to 100 or 1.`);
};

/**
 * Largest remainder: everybody gets the whole part of their share of 100, and the points left over
 * go to the largest remainders, the earlier option first. Remainders are compared to nine digits,
 * so that the noise of 0.29·100 decides nothing.
 */
const shareOut = (values: readonly number[], sum: number): number[] => {
  const shares = values.map((value) => Math.round((value / sum) * 100e9) / 1e9);
  const percents = shares.map(Math.floor);
  const left = 100 - percents.reduce((total, percent) => total + percent, 0);
  const order = [...shares.keys()].sort(
    (a, b) => shares[b]! - percents[b]! - (shares[a]! - percents[a]!) || a - b,
  );
  for (const index of order.slice(0, left)) percents[index]! += 1;
  return percents;
};
