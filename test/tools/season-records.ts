import { execFileSync } from 'node:child_process';
import { makeRandom } from '../help/long-run.js';

/** A made-up season in the format of question sets that give a crowd's probability and outcomes. */

export interface SeasonRecord {
  readonly source: string;
  readonly source_id: string;
  readonly question: string;
  readonly background: string;
  readonly resolution_criteria: string;
  readonly url: string;
  readonly opens_at: string;
  readonly closes_at: string;
  readonly frozen_at: string;
  readonly crowd_probability: number;
  readonly resolved_on: string | null;
  readonly resolved_to: number | null;
}

const places = ['Narvik', 'Trieste', 'Gdansk', 'Porto', 'Varna', 'Cork', 'Turku', 'Nantes'];
const things = ['ferry', 'library', 'tram line', 'weather station', 'wind farm', 'market hall'];

export const makeSeason = (count: number, seed: number): readonly SeasonRecord[] => {
  const random = makeRandom(seed);
  return Array.from({ length: count }, (_, n) => {
    const crowd_probability = random() ** 2;
    // A slightly overconfident crowd.
    const happens = random() < 0.1 + 0.8 * crowd_probability;
    const is_resolved = n % 5 !== 4;
    const place = places[n % places.length];
    const thing = things[n % things.length];
    return {
      source: n % 2 === 0 ? 'almanac' : 'harbourbook',
      source_id: `s-${n}`,
      question: `Will the ${thing} number ${n} of ${place} be open before the winter of 2025?`,
      background: n % 3 === 0 ? '' : `<p>The ${thing} of ${place} was planned for years.</p>`,
      resolution_criteria: 'Decided by what the town says.',
      url: `https://almanac.town-records.org/q/${n}`,
      opens_at: '2025-03-01T08:00:00+00:00',
      // Some of the questions close in the future but are already decided.
      closes_at: n % 10 === 0 ? '2031-01-01T00:00:00+00:00' : '2025-12-01T00:00:00+00:00',
      frozen_at: '2025-10-16T00:00:00+00:00',
      crowd_probability,
      resolved_on: is_resolved ? '2025-12-01' : null,
      resolved_to: is_resolved ? (happens ? 1 : 0) : null,
    };
  });
};

/** An agent's forecast and the outcome. Everything below follows from them. */
export interface Scored {
  /** Percent of YES. */
  readonly probability: number;
  readonly happened: boolean;
}

/** Computed from the numbers alone, without the service's code. */
export const scoreDirectly = (forecasts: readonly Scored[]) => {
  const n = forecasts.length;
  let brier = 0;
  let log_score = 0;
  let correct = 0;
  const bins = Array.from({ length: 10 }, () => ({ n: 0, stated: 0, hits: 0 }));
  for (const { probability, happened } of forecasts) {
    const p = probability / 100;
    brier += (p - Number(happened)) ** 2 / n;
    const on_what_happened = happened ? p : 1 - p;
    log_score += Math.log(Math.min(0.9999, Math.max(0.0001, on_what_happened))) / n;
    if (on_what_happened > 0.5) correct += 1;
    const takes_yes = probability >= 50;
    const confidence = takes_yes ? probability : 100 - probability;
    const bin = bins[Math.min(9, Math.floor(confidence / 10))];
    if (bin === undefined) throw new Error(`${probability} is no percent`);
    bin.n += 1;
    bin.stated += confidence;
    bin.hits += takes_yes === happened ? 1 : 0;
  }
  const ece = bins.reduce(
    (sum, bin) => (bin.n === 0 ? sum : sum + Math.abs(bin.hits - bin.stated / 100) / n),
    0,
  );
  return { n, brier, log_score, correct, ece, bins };
};

/** The output of the example converter for a file of such records. */
export const convert = (file: string, flags: readonly string[] = []): string =>
  execFileSync(process.execPath, ['examples/import/forecastbench.mjs', file, ...flags], {
    encoding: 'utf8',
  });
