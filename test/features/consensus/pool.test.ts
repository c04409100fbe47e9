import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  createPool,
  type Pool,
  type Pooled,
  type PoolFit,
  type PoolForecast,
} from '../../../src/features/consensus/pool.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

/** A pool that is updated forecast by forecast equals a pool computed from all of them. */

const step = fc.record({
  agent: fc.integer({ min: 0, max: 14 }),
  value: fc.integer({ min: 0, max: 10_000 }),
  parts: fc.tuple(fc.nat(5_000), fc.nat(5_000)),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** An agent keeps its family and its owner; an owner has agents of several families. */
const forecastOf = ({ agent, value, parts }: Step): PoolForecast => ({
  agent: String(agent),
  owner: String(agent % 4),
  family: ['claude', 'gpt', 'gemini'][Math.floor(agent / 3) % 3] as string,
  value,
  given: [...parts, 10_000 - parts[0] - parts[1]].map((bp) => 2 * bp),
});

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.slice(Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2) + 1);
  return Math.round(sum(middle) / middle.length) / 100;
};

/** Computes the candidates for one chance from the formulas, over all forecasts at once. */
const candidatesOf = (
  all: readonly PoolForecast[],
  rho: number,
  chanceIn: (one: PoolForecast) => number,
): readonly number[] => {
  const weight = (one: PoolForecast) => 1 / all.filter(({ owner }) => owner === one.owner).length;
  const x = (one: PoolForecast) => {
    const p = Math.min(0.99, Math.max(0.01, chanceIn(one) / 10_000));
    return Number(Math.log(p / (1 - p)).toFixed(9));
  };
  const names = [...new Set(all.map(({ family }) => family))];
  const families = names.map((name) => {
    const own = all.filter(({ family }) => family === name);
    const w = sum(own.map(weight));
    return { own, w, v: w / (1 + 0.25 * Math.max(0, w - 1)) };
  });
  const v = sum(families.map((family) => family.v));
  const l = sum(families.map((f) => (f.v * sum(f.own.map((o) => weight(o) * x(o)))) / f.w)) / v;
  const owner_names = [...new Set(all.map(({ owner }) => owner))];
  const by_owner = sum(all.map((one) => weight(one) * x(one))) / owner_names.length;
  const owners = owner_names.map((name) =>
    sum(
      families.map((f) => {
        const own = f.own.filter(({ owner }) => owner === name);
        return ((f.v / v) * sum(own.map(weight))) / f.w;
      }),
    ),
  );
  const n = 1 / (rho + (1 - rho) * sum(owners.map((a) => a ** 2)));
  const d = (3 * n) / (Math.sqrt(3 * n * n - 3 * n + 1) + 2);
  const logistic = (odds: number) => 100 / (1 + Math.exp(-odds));
  return [
    median(all.map(chanceIn)),
    logistic(by_owner),
    logistic(d * l),
    logistic(((1 + d) / 2) * l),
  ];
};

const weights = [0.1, 0.2, 0.3, 0.4];

const ofYes = (all: readonly PoolForecast[], rho: number): readonly number[] => {
  const found = candidatesOf(all, rho, ({ value }) => value);
  return [sum(found.map((one, i) => one * weights[i]!)), ...found];
};

const ofOptions = (all: readonly PoolForecast[], rho: number): readonly number[] => {
  const lists = [0, 1, 2].map((n) =>
    candidatesOf(all, rho, ({ given }) => Math.round(given[n]! / 2)),
  );
  const scaled = weights.map((_, i) => {
    const whole = sum(lists.map((one) => one[i]!));
    return lists.map((one) => (whole === 0 ? 100 / 3 : (100 * one[i]!) / whole));
  });
  const headline = lists.map((_, n) => sum(scaled.map((one, i) => one[n]! * weights[i]!)));
  return [...headline, ...scaled.flat()];
};

const means = (all: readonly PoolForecast[]): readonly number[] =>
  [0, 1, 2].map((n) => sum(all.map(({ given }) => given[n]!)) / (200 * all.length));

const alike = (found: readonly number[] | undefined, wanted: readonly number[]): void => {
  assert.equal(found?.length, wanted.length);
  for (const [n, one] of wanted.entries()) {
    assert.ok(Math.abs((found?.[n] ?? Number.NaN) - one) < 1e-9, `${found} is not ${wanted}`);
  }
};

const figuresIn = (pooled: Pooled | null) =>
  pooled && [...pooled.headline, ...pooled.candidates.flat()];

t.test('each step, and each step without an agent, is that of all that stand', async (t) => {
  const rhos = fc.double({ min: 0, max: 0.99, noNaN: true });
  const property = fc.property(fc.array(step, { maxLength: 40 }), rhos, (steps, rho) => {
    const [binary, multi] = [createPool(0), createPool(3)];
    const standing = new Map<string, PoolForecast>();
    for (const one of steps.map(forecastOf)) {
      for (const pool of [binary, multi]) pool.put(one);
      standing.set(one.agent, one);
      const all = [...standing.values()];
      const others = all.filter(({ agent }) => agent !== one.agent);
      for (const [some, without] of [
        [all, null],
        [others, one.agent],
      ] as const) {
        const read = (pool: Pool, fit: PoolFit) =>
          without === null ? pool.read(fit) : pool.readWithout(without, fit);
        const now = { rho, weights: { chance: weights, number: [] } };
        const old = { rho, weights: null };
        if (some.length === 0) {
          for (const pool of [binary, multi]) assert.equal(read(pool, now), null);
          continue;
        }
        alike(figuresIn(read(binary, now)) ?? [], ofYes(some, rho));
        alike(figuresIn(read(multi, now)) ?? [], ofOptions(some, rho));
        alike(read(binary, old)?.headline, [ofYes(some, rho)[3]!]);
        alike(read(multi, old)?.headline, means(some));
      }
    }
  });
  await holds(t, property);
});

t.test(
  'one forecaster is taken at its word, two of 70 % go further the less they correlate',
  (t) => {
    const pool = createPool(0);
    const put = (agent: string, value: number) =>
      pool.put({ agent, owner: agent, family: 'gpt', value, given: [] });
    const read = (rho: number) => pool.read({ rho, weights: null })?.headline[0]?.toFixed(4);
    const readWithout = (agent: string) =>
      pool.readWithout(agent, { rho: 0, weights: null })?.headline[0]?.toFixed(4);
    t.equal(read(0.6), undefined);
    put('a', 7_000);
    t.equal(read(0), '70.0000');
    t.equal(readWithout('a'), undefined);
    put('b', 7_000);
    // With two forecasts, Σ a² = 1/2. For ρ = 0, n = 2 and d = 6 / (√7 + 2). For ρ = 1, n = d = 1.
    t.equal(read(0), '74.9188');
    t.equal(read(1), '70.0000');
    t.equal(readWithout('b'), '70.0000');
    put('b', 0);
    // Clipped at 1 %: (ln(7/3) − ln 99) / 2 = −1.87391.
    t.equal(read(1), '13.3090');
    t.end();
  },
);
