import type { Test } from 'tap';
import { createGroupScores } from '../../../src/features/points/group-scores.js';
import { t } from '../../help/tap.js';

const near = (t: Test, found: number | null | undefined, wanted: number): void => {
  t.ok(typeof found === 'number' && Math.abs(found - wanted) < 1e-9, `${found} is ${wanted}`);
};

const ln = Math.log;
const rest = async () => undefined;

t.test(
  'a family is the mean over its owners, weighted by time from its first forecast',
  async (t) => {
    const groups = createGroupScores([0]);
    const [a1, a2, b1] = ['gpt-5', 'gpt-5-mini', 'gpt-5'];
    const stated = (owner: string, model: string, p: number, before?: number) => ({
      owner,
      model,
      family: 'gpt',
      after: [p, 1 - p],
      before: before === undefined ? null : [before, 1 - before],
      headline: [0.7, 0.3],
    });
    groups.change(10, stated('a', a1, 0.8));
    groups.change(20, stated('a', a2, 0.4));
    groups.change(40, stated('b', b1, 0.1));
    groups.change(60, { ...stated('c', 'opus', 0.75), family: 'claude', headline: [0.9, 0.1] });
    groups.change(80, { ...stated('a', a1, 0.6, 0.8), headline: [0.9, 0.1] });
    const found = await groups.end(110, rest);
    const find = (kind: string, name: string) =>
      found.find((one) => one.kind === kind && one.name === name);

    // First 0.8, then 0.6 for one owner, then (0.6 + 0.1)/2 with another, and finally ((0.6 +
    // 0.4)/2 + 0.1)/2.
    const gpt = find('family', 'gpt');
    const mean = (of: (p: number) => number): number =>
      (10 * of(0.8) + 20 * of(0.6) + 40 * of(0.35) + 30 * of(0.3)) / 100;
    near(
      t,
      gpt?.forecast,
      mean((p) => p),
    );
    near(
      t,
      gpt?.brier,
      mean((p) => (1 - p) ** 2),
    );
    near(t, gpt?.log_score, mean(ln));
    near(t, gpt?.baseline, 100 * (1 + mean(ln) / ln(2)));
    t.match(gpt, { n_agents: 3, correct: false, hit: false });
    near(t, gpt?.stated, 0.7);
    // The family is compared only with the other one, and only while both have a forecast.
    const apart = (20 * ln(0.35) + 30 * ln(0.3)) / 50 - ln(0.75);
    near(t, gpt?.relative, 100 * apart);
    near(t, find('family', 'claude')?.relative, -100 * apart);

    // The model of both owners: 0.8, then (0.8 + 0.1)/2, finally (0.6 + 0.1)/2.
    const model = find('model', 'gpt-5');
    near(t, model?.brier, (30 * 0.04 + 40 * 0.3025 + 30 * 0.4225) / 100);
    t.equal(model?.n_agents, 2);
    near(t, find('crowd', 'crowd')?.brier, (50 * 0.09 + 50 * 0.01) / 100);
    t.match(find('crowd', 'crowd'), { n_agents: 4, relative: null, correct: true });
    t.match(find('even', 'even'), { forecast: 0.5, brier: 0.25, baseline: 0, n_agents: 0 });
    t.equal(found.length, 7, 'two families, three models, the crowd and the even forecast');
  },
);

t.test(
  'with options the even forecast has 1/n, and without forecasts nobody has a score',
  async (t) => {
    t.same(await createGroupScores([0]).end(5, rest), []);
    const groups = createGroupScores([1, 3]);
    const one = { owner: 'a', family: 'gpt', model: 'gpt-5', before: null };
    const after = [0.1, 0.4, 0.2, 0.3];
    groups.change(5, { ...one, after, headline: after });
    const [family, , crowd, even] = await groups.end(5, rest);
    // No time has passed, so the final forecasts count: (0.01 + 0.01 + 0.04 + 0.04)/2.
    near(t, family?.brier, 0.05);
    near(t, family?.forecast, 0.35);
    near(t, crowd?.brier, 0.05);
    t.match(family, { relative: null, correct: true, hit: true });
    near(t, even?.brier, 0.125);
    near(t, even?.log_score, ln(0.25));
  },
);
