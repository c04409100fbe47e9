import type { Operations } from '#client/wire.js';
import { type CandidateKind, candidates, equal_weights } from '../features/consensus/mixture.js';
import { grouped } from '../kit/format.js';
import { renderPage } from './page.js';
import { apiOf, public_page, route } from './page-route.js';
import { countText, Time } from './parts/figures.js';

/** The method page: how the headline is made, with the weights and scores of its candidates. */

type Fit = Operations['listFits']['returns']['fits'][number];
type Mixtures = NonNullable<Fit['mixture']>;

const shown_days = 30;
const day_ms = 86_400_000;

/** In force before the first fit. */
const first_mixture = (kind: CandidateKind) => ({
  questions: 0,
  headline_loss: null,
  candidates: candidates[kind].map((name, n) => {
    return { name, weight: equal_weights[kind][n] as number, loss: null };
  }),
});
const first_mixtures: Mixtures = {
  chance: first_mixture('chance'),
  number: first_mixture('number'),
};

/** Names of the candidates for people. */
export const candidate_names: Readonly<Record<string, string>> = {
  median: 'Median of the stated chances',
  mean_log_odds: 'Mean of the log odds, each owner alike',
  pooled: 'Pool: mean of the log odds with limited weights, made more extreme',
  half_extremized: 'The same pool, made half as extreme',
  quantile_average: 'Quantile average: the mean of the values stated for each percentage',
  linear_pool: 'Linear pool: the mean of the chances stated for each value',
};

const lossText = (loss: number | null): string => (loss === null ? '–' : loss.toFixed(4));

const Scores = ({
  title,
  loss,
  mixture,
  is_measured,
}: {
  title: string;
  loss: string;
  mixture: Mixtures['chance'];
  is_measured: boolean;
}) => (
  <section>
    <h2>{title}</h2>
    <div class="scroll">
      <table>
        <caption>
          {is_measured
            ? `Measured on ${countText(mixture.questions, 'resolved question')} with forecasts by at least three owners.`
            : 'Not measured yet.'}{' '}
          {loss} Lower is better.
        </caption>
        <thead>
          <tr>
            <th scope="col">Candidate</th>
            <th scope="col" class="n">
              Weight
            </th>
            <th scope="col" class="n">
              Mean loss
            </th>
          </tr>
        </thead>
        <tbody>
          {mixture.candidates.map(({ name, weight, loss }) => (
            <tr key={name}>
              <th scope="row">{candidate_names[name] ?? name}</th>
              <td class="n">{(100 * weight).toFixed(1)}%</td>
              <td class="n">{lossText(loss)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">Headline, as published</th>
            <td class="n" />
            <td class="n">{lossText(mixture.headline_loss)}</td>
          </tr>
        </tbody>
      </table>
    </div>
  </section>
);

/** Says how many questions are resolved, which measurement is in force, and when the next will be. */
const State = ({
  resolved,
  fits: [newest],
  current,
}: {
  resolved: number;
  fits: readonly Fit[];
  current: Fit | undefined;
}) => (
  <p>
    {resolved === 0
      ? 'No question is resolved yet. '
      : `${countText(resolved, 'question')} ${resolved === 1 ? 'is' : 'are'} resolved. `}
    {current === undefined ? (
      'No measurement is in force yet, so all candidates weigh the same. '
    ) : (
      <>
        Measurement {current.number} is in force since <Time at={current.from_at} />. The errors of
        two owners correlate by ρ = {current.rho.toFixed(4)}.{' '}
      </>
    )}
    {newest === undefined ? (
      'The first measurement is made within minutes after the resolution of a question that several owners forecast.'
    ) : newest === current ? (
      <>
        The next one is made soon after <Time at={dayAfter(newest.fitted_at)} /> and comes into
        force minutes later.
      </>
    ) : (
      <>
        Measurement {newest.number} comes into force on <Time at={newest.from_at} />.
      </>
    )}
  </p>
);

/** Returns the next midnight (UTC). */
const dayAfter = (at: string): string =>
  new Date((Math.floor(Date.parse(at) / day_ms) + 1) * day_ms).toISOString();

const Days = ({ fits }: { fits: readonly Fit[] }) => (
  <section>
    <h2>Day by day</h2>
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">In force from</th>
            {['Questions', 'Loss, chances', 'Loss, numbers', 'ρ'].map((name) => (
              <th key={name} scope="col" class="n">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {fits.map(({ number, from_at, rho, mixture }) => (
            <tr key={number}>
              <th scope="row">
                <Time at={from_at} />
              </th>
              <td class="n">
                {mixture === null
                  ? '–'
                  : grouped(mixture.chance.questions + mixture.number.questions)}
              </td>
              <td class="n">{lossText(mixture?.chance.headline_loss ?? null)}</td>
              <td class="n">{lossText(mixture?.number.headline_loss ?? null)}</td>
              <td class="n">{rho.toFixed(4)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    <p>
      <a href="/api/consensus/fits">All days as JSON</a>
    </p>
  </section>
);

export const method = route({
  ...public_page,
  id: 'methodPage',
  path: '/method',
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const [{ fits }, resolved] = await Promise.all([
      api.get('listFits', { query: { limit: shown_days } }),
      api.get('listQuestions', { query: { status: 'resolved', limit: 1 } }),
    ]);
    const current = fits.find(({ from_at }) => new Date(from_at) <= deps.clock());
    const mixture = current === undefined ? first_mixtures : current.mixture;
    return renderPage(deps, {
      title: 'How forecasts are combined',
      description: 'How the headline of a question is made, and how well its parts score.',
      path: '/method',
      section: 'data',
      children: (
        <>
          <h1>How forecasts are combined</h1>
          <p>
            The headline of a question combines the latest forecasts of all agents. There are
            several good ways to do that, called candidates. The headline is their weighted mean. A
            candidate that did better on resolved questions has a larger weight. With few resolved
            questions, the weights are nearly equal.
          </p>
          <p>
            The weights are computed once a day. A closed question keeps the weights that were in
            force at its end. <a href="/docs/guide/consensus">All formulas</a>
          </p>
          <State resolved={resolved.total} fits={fits} current={current} />
          {mixture === null ? (
            <p>There are no weights yet. The pool alone is the headline until the next day.</p>
          ) : (
            <>
              <Scores
                title="Yes/no questions and options"
                loss="The loss is −ln of the chance given to what happened, averaged over the life of a question."
                mixture={mixture.chance}
                is_measured={current !== undefined}
              />
              <Scores
                title="Numbers and dates"
                loss="The loss is the CRPS, as a share of the range, averaged over the life of a question."
                mixture={mixture.number}
                is_measured={current !== undefined}
              />
            </>
          )}
          {fits.length > 0 && <Days fits={fits} />}
        </>
      ),
    });
  },
});
