import { checkFloors, type FloorShape } from './floors.js';
import { readMachine } from './machine.js';
import { formatNumber, isDisturbed, type Result } from './report.js';
import { compareRounds, runStage } from './rounds.js';
import type { Bench, BenchContext, Formula, Sample, Stage, Summaries } from './types.js';

const oneLine = (sample: Sample): string =>
  ['per_second', 'p50_ms', 'p99_ms']
    .filter((name) => sample[name] !== undefined)
    .map((name) => `${name} ${formatNumber(sample[name] as number, name === 'per_second' ? 0 : 2)}`)
    .join('  ');

const values = (
  formulas: Readonly<Record<string, Formula>>,
  apply: (formula: Formula) => number | undefined,
): Readonly<Record<string, number | undefined>> =>
  Object.fromEntries(Object.entries(formulas).map(([name, formula]) => [name, apply(formula)]));

const isWanted = (name: string, only: BenchContext['only']): boolean =>
  only === undefined || only.some((wanted) => name.startsWith(wanted));

const narrow = ({ subjects }: Stage, only: BenchContext['only']): Stage => ({
  subjects: subjects.filter(({ name }) => isWanted(name, only)),
});

/** Where only some subjects are measured, only what can be said of them is held against a floor. */
const floorsOf = (
  shapes: Readonly<Record<string, FloorShape>>,
  known: Readonly<Record<string, number | undefined>>,
  only: BenchContext['only'],
): Readonly<Record<string, FloorShape>> =>
  only === undefined
    ? shapes
    : Object.fromEntries(Object.entries(shapes).filter(([name]) => known[name] !== undefined));

/**
 * Prepares a bench, runs all stages and rounds, and compares the figures with the floors. The
 * bench is closed whatever happens; an invalid round is thrown on, never averaged away.
 */
export const runBench = async (
  bench: Bench,
  context: BenchContext,
  floor_shapes: Readonly<Record<string, FloorShape>>,
): Promise<Result> => {
  const machine = readMachine();
  const prepared = await bench.prepare(context);
  let subjects: Summaries = {};
  let rounds: readonly Summaries[] = Array.from({ length: context.rounds }, () => ({}));
  try {
    for (const makeStage of prepared.stages) {
      const stage = narrow(makeStage(subjects), context.only);
      const result = await runStage(stage, {
        rounds: context.rounds,
        reduce: bench.reduce ?? {},
        stop: context.stop,
        onRound: (subject, index, sample) =>
          context.tell(`round ${index + 1}  ${subject.name.padEnd(24)} ${oneLine(sample)}`),
      });
      subjects = { ...subjects, ...result.summaries };
      rounds = rounds.map((round, index) => ({ ...round, ...result.rounds[index] }));
    }
  } finally {
    await prepared.close();
  }
  if (Object.keys(subjects).length === 0) {
    throw new Error(`No subject of ${bench.name} begins with ${context.only?.join(' or ')}.`);
  }
  const ratios = values(bench.ratios, (formula) => compareRounds(formula, rounds));
  const figures = values(bench.figures ?? {}, (formula) => formula(subjects));
  const known = { ...figures, ...ratios };
  const floors = checkFloors(floorsOf(floor_shapes, known, context.only), known);
  return {
    bench: bench.name,
    question: bench.question,
    machine,
    rounds: context.rounds,
    seconds: context.seconds,
    quick: context.quick,
    disturbed: isDisturbed(subjects),
    subjects,
    missing: prepared.missing,
    ratios: Object.fromEntries(
      Object.entries(ratios).map(([name, value]) => [name, value ?? null]),
    ),
    floors,
    met: Object.values(floors).every((floor) => floor.met),
  };
};
