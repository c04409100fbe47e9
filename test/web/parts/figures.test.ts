import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { Change, familyClass, Sparkline } from '../../../src/web/parts/figures.js';
import { t } from '../../help/tap.js';

const change = (points: number | null | undefined): string =>
  render(h(Change, { points, over: '24 h' })).replaceAll(/<[^>]+>/g, '');

t.test('a change that is not known is not shown', async (t) => {
  t.equal(change(null), '');
  t.equal(change(undefined), '');
  t.equal(change(0), '±0 in 24 h');
  t.equal(change(0.49), '±0 in 24 h');
  t.equal(change(0.5), '▲up 1 pt in 24 h');
  t.equal(change(-7.6), '▼down 8 pts in 24 h');
});

const trend = (...forecasts: (number | null)[]) =>
  forecasts.map((forecast, n) => ({ at: new Date(n * 3_600_000).toISOString(), forecast }));

/** The heights of a sparkline's points. */
const heights = (...forecasts: (number | null)[]): readonly number[] => {
  const [, points = ''] =
    /points="([^"]*)"/.exec(render(h(Sparkline, { trend: trend(...forecasts) }))) ?? [];
  return points.split(' ').flatMap((y, n) => (n % 2 === 1 ? [Number(y)] : []));
};

t.test('the scale of a sparkline fits its line, with ten points at least', async (t) => {
  t.same(heights(0, 100), [29, 3]);
  t.same(heights(40, 60), [29, 3]);
  t.same(heights(50, 51), [17.3, 14.7], 'one point is a tenth of the height');
  t.same(heights(0, 1), [29, 26.4], 'nothing is below 0');
  t.same(heights(99, 100), [5.6, 3], 'nothing is above 100');
  t.match(render(h(Sparkline, { trend: trend(40, 60) })), /<circle cx="117.0" cy="3.0"/);
  t.same(heights(50), [], 'one point is no line');
  t.same(heights(null, 50), []);
});

t.test('fourteen families have a colour each', async (t) => {
  const families =
    'gpt claude gemini llama mistral deepseek qwen grok command phi gemma nova glm kimi'.split(' ');
  t.equal(new Set(families.map(familyClass)).size, 14);
  t.equal(familyClass('other'), 'family fx');
});
