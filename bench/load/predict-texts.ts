import { adjectives, nouns, places, sources, verbs } from './vocabulary.js';

/**
 * Generates reasoning texts as agents write them: four sections, about 950 characters, two unique
 * sources, no two texts alike. Text `n` is always the same, so a run can be repeated.
 */

export type Random = () => number;

/** sfc32 (Chris Doty-Humphrey). A few warm-up steps make neighbouring seeds diverge immediately. */
export const makeRandom = (seed: number): Random => {
  let a = seed | 0;
  let b = Math.imul(seed, 0x9e3779b1);
  let c = 0x5bf03635;
  let counter = 1;
  const next = (): number => {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  };
  for (let i = 0; i < 12; i++) next();
  return next;
};

const pick = <T>(random: Random, list: readonly T[]): T => list[(random() * list.length) | 0] as T;

const slots: Readonly<Record<string, (random: Random) => string>> = {
  n: (random) => pick(random, nouns),
  a: (random) => pick(random, adjectives),
  v: (random) => pick(random, verbs),
  p: (random) => pick(random, places),
  d: (random) => String(2 + ((random() * 96) | 0)),
};

/** Sentence templates with slots: noun, adjective, verb (past), place, number. */
const sentences = {
  evidence: [
    'The {a} {n} in {p} {v} by {d} percent after the {n} {v} the {a} {n}.',
    'Two {a} reports say that the {n} {v} while every {n} near {p} {v}.',
    'In {p} a {a} {n} {v} its {n}, and {d} of the {n} contracts {v}.',
    'Records show {d} cases where the {a} {n} {v} before any {n} {v}.',
    'The {n} office of {p} {v} the {a} figures; the {n} count {v} to {d}.',
    'Shipments through {p} {v} {d} times, though only one {a} {n} {v} publicly.',
    'Minutes of the {n} board list {d} {a} items, among them a {n} that {v}.',
    'Around {p}, where a {n} {v}, local desks describe demand for {n} as {a}.',
  ],
  analysis: [
    'A {a} {n} usually {v} within {d} weeks unless the {n} has {v} first.',
    'Since the {n} and the {a} {n} {v} together, I treat the {n} as {a}.',
    'The base rate for a {a} {n} is near {d} in a hundred; the {n} {v} it slightly.',
    'What matters is whether the {n} {v} the {a} {n}, not how the {n} in {p} {v}.',
    'My model of the {n} {v} the {a} trend, so the {n} gets less weight than the {n}.',
    'Working backwards from the {n}, someone must have {v} at least {d} {n} orders.',
    'Incentives point one way: {a} owners gain when a {n} {v}, others lose little.',
    'Momentum fades fast here; {d} sessions after a {n} {v}, the {n} looks {a} again.',
  ],
  counter: [
    'Against this, the {a} {n} in {p} once {v} although the {n} {v} early.',
    'The {n} could be {a}: {d} earlier forecasts {v} because one {n} {v}.',
    'A sceptic would note that no {a} {n} has {v} since the {n} {v} in {p}.',
    'If the {n} is only {a}, then the {n} {v} for reasons the {n} never {v}.',
    'Sampling error alone might explain it, given just {d} {a} observations of {n}.',
    'People close to the {p} {n} dispute this and call every {n} there {a}.',
  ],
  bottom: [
    'On balance the {a} {n} decides it, and the {n} has mostly {v}.',
    'I lean on the {n} rather than the {a} {n}; {d} days remain for the {n}.',
    'The {n} that {v} is worth more than the {a} {n} that has not.',
    'Hence my number: above what {p} traders imply, below any {a} {n} headline.',
    'Unless a {n} gets {v} soon, I expect little change and stay near {d} percent.',
  ],
} as const;

const fill = (random: Random, template: string): string =>
  template.replace(/\{(.)\}/g, (_, slot: string) => slots[slot]!(random));

/** Lists of details. Nearly all their words are random, so two texts have few words in common. */
const particulars = [
  'Watched so far: {a} {n}, {a} {n}, {n} and {n} near {p}, {n} from {p}.',
  '{p}: {n} {v}, {n} {v}, {n} {v}; {p}: {n} {v}, {a} {n} {v}.',
  'Signals by weight: {n} {d}, {n} {d}, {a} {n} {d}, {a} {n} {d}, {n} {d}.',
] as const;

/** Picks `count` different templates of a list and fills them. */
const several = (random: Random, templates: readonly string[], count = 1): string => {
  const rest = [...templates];
  const chosen = Array.from({ length: count }, () => {
    const [template = ''] = rest.splice((random() * rest.length) | 0, 1);
    return fill(random, template);
  });
  return chosen.join(' ');
};

const makeUrl = (random: Random, n: number, which: string): string =>
  `https://${pick(random, sources)}/${pick(random, nouns)}/${pick(random, nouns)}-${n}${which}`;

/** Text number `n`. */
export const makeReasoning = (n: number): string => {
  const random = makeRandom(n);
  const [first, second] = [makeUrl(random, n, 'a'), makeUrl(random, n, 'b')];
  const { evidence, analysis, counter, bottom } = sentences;
  return (
    `EVIDENCE: ${several(random, evidence)} ${several(random, particulars)} ` +
    `See ${first} and ${second}.\n\n` +
    `ANALYSIS: ${several(random, analysis, 2)} ${several(random, particulars)}\n\n` +
    `COUNTER-EVIDENCE: ${several(random, counter)} ${several(random, particulars)}\n\n` +
    `BOTTOM LINE: ${several(random, bottom)}`
  );
};

/** A confidence from 51 to 95, which depends on `n`. */
export const makeConfidence = (n: number): number =>
  51 + ((Math.imul(n, 2_654_435_761) >>> 8) % 45);

/** A comment of about 200 characters. */
export const makeComment = (n: number): string => {
  const random = makeRandom(n);
  const clause = (): string => fill(random, 'the {a} {n} of {p} {v} the {n}');
  return `Note ${n}: ${clause()} while ${clause()}, although ${clause()}.`;
};
