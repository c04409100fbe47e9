import { parseArgs } from 'node:util';

export interface Arguments {
  readonly bench: string;
  readonly json: string | undefined;
  readonly rounds: number;
  readonly seconds: number;
  readonly quick: boolean;
  readonly cpu_prof: boolean;
  /** Connections of the load; absent: what the bench found best. */
  readonly connections?: number;
  /** What the names of the subjects that are measured begin with; absent: all are. */
  readonly only?: readonly string[];
}

const wholeNumber = (text: string | undefined, fallback: number, name: string): number => {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 600) {
    throw new Error(`--${name} takes a whole number from 1 to 600.`);
  }
  return value;
};

const usage =
  'Usage: npm run bench -- NAME [--json FILE] [--rounds N] [--seconds S] [--connections N] ' +
  '[--only SUBJECT,…] [--quick] [--cpu-prof]';

/** The arguments; throws a sentence when they are not right. */
export const readArguments = (argv: readonly string[], names: readonly string[]): Arguments => {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      json: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      'cpu-prof': { type: 'boolean', default: false },
    },
  });
  const [bench, ...rest] = positionals;
  if (bench === undefined || rest.length > 0 || !names.includes(bench)) {
    throw new Error(`${usage}\nBenches: ${names.join(', ')}`);
  }
  return {
    bench,
    json: values.json,
    rounds: wholeNumber(values.rounds, values.quick ? 1 : 5, 'rounds'),
    seconds: wholeNumber(values.seconds, values.quick ? 2 : 8, 'seconds'),
    quick: values.quick,
    cpu_prof: values['cpu-prof'],
    ...(values.only === undefined ? {} : { only: values.only.split(',') }),
    ...(values.connections === undefined
      ? {}
      : { connections: wholeNumber(values.connections, 1, 'connections') }),
  };
};
