import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createPool, type PoolForecast } from '../../../src/features/consensus/pool.js';
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
  given: [...parts, 10_000 - parts[0] - parts[1]],
});

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

/** Computes the pool from the formulas, over all forecasts at once. */
const pooled = (all: readonly PoolForecast[], rho: number): readonly number[] | null => {
  if (all.length === 0) return null;
  const weight = (one: PoolForecast) => 1 / all.filter(({ owner }) => owner === one.owner).length;
  const x = ({ value }: PoolForecast) => {
    const p = Math.min(0.99, Math.max(0.01, value / 10_000));
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
  const owners = [...new Set(all.map(({ owner }) => owner))].map((name) =>
    sum(
      families.map((f) => {
        const own = f.own.filter(({ owner }) => owner === name);
        return ((f.v / v) * sum(own.map(weight))) / f.w;
      }),
    ),
  );
  const n = 1 / (rho + (1 - rho) * sum(owners.map((a) => a ** 2)));
  const d = (3 * n) / (Math.sqrt(3 * n * n - 3 * n + 1) + 2);
  return [100 / (1 + Math.exp(-d * l))];
};

const means = (all: readonly PoolForecast[]): readonly number[] | null =>
  all.length === 0
    ? null
    : [0, 1, 2].map((n) => sum(all.map(({ given }) => given[n] ?? 0)) / (100 * all.length));

const alike = (found: readonly number[] | null, wanted: readonly number[] | null): void => {
  assert.equal(found?.length, wanted?.length);
  for (const [n, one] of (wanted ?? []).entries()) {
    assert.ok(Math.abs((found?.[n] ?? Number.NaN) - one) < 1e-9, `${found} is not ${wanted}`);
  }
};

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
      alike(binary.read(rho), pooled(all, rho));
      alike(binary.readWithout(one.agent, rho), pooled(others, rho));
      alike(multi.read(rho), means(all));
      alike(multi.readWithout(one.agent, rho), means(others));
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
    t.equal(pool.read(0.6), null);
    put('a', 7_000);
    t.equal(pool.read(0)?.[0]?.toFixed(4), '70.0000');
    t.equal(pool.readWithout('a', 0), null);
    put('b', 7_000);
    // With two forecasts, Σ a² = 1/2. For ρ = 0, n = 2 and d = 6 / (√7 + 2). For ρ = 1, n = d = 1.
    t.equal(pool.read(0)?.[0]?.toFixed(4), '74.9188');
    t.equal(pool.read(1)?.[0]?.toFixed(4), '70.0000');
    t.equal(pool.readWithout('b', 0)?.[0]?.toFixed(4), '70.0000');
    put('b', 0);
    // Clipped at 1 %: (ln(7/3) − ln 99) / 2 = −1.87391.
    t.equal(pool.read(1)?.[0]?.toFixed(4), '13.3090');
    t.end();
  },
);
