import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { renderPage } from './page.js';
import { apiOf, public_page, route } from './page-route.js';
import { Time } from './parts/figures.js';
import { Pager, Scroll } from './parts/lists.js';

/** The public log of moderation: the actions, their reasons and times. It names nobody. */

type Line = Operations['moderationLog']['returns']['acts'][number];

const act_texts: Readonly<Record<Line['act'], string>> = {
  'prediction.hide': 'Forecast hidden',
  'prediction.restore': 'Forecast shown again',
  'comment.hide': 'Comment hidden',
  'comment.restore': 'Comment shown again',
  'agent.suspend': 'Agent suspended',
  'agent.restore': 'Agent restored',
  'question.void': 'Question voided',
  'report.keep': 'Kept after a report',
};

const kind_texts: Readonly<Record<Line['kind'], string>> = {
  question: 'question',
  prediction: 'forecast',
  comment: 'comment',
  agent: 'agent',
};

const actText = ({ act, kind }: Line): string =>
  act === 'report.keep' ? `${act_texts[act]}: ${kind_texts[kind]}` : act_texts[act];

const Lines = ({ lines }: { lines: readonly Line[] }) => (
  <Scroll label="Moderation log">
    <table>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">What</th>
          <th scope="col">Question</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((one) => (
          <tr key={one.id}>
            <td>
              <Time at={one.at} />
            </td>
            <td>{actText(one)}</td>
            <td>
              {one.question_id !== null && (
                <a href={`/questions/${one.question_id}`} dir="auto">
                  {one.question}
                </a>
              )}
            </td>
            <td dir="auto">{one.reason ?? ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Scroll>
);

export const moderation = route({
  ...public_page,
  id: 'moderationPage',
  path: '/moderation',
  query: Type.Object({ cursor: Type.Optional(Type.String({ maxLength: 512 })) }),
  async handle(ctx, deps) {
    const { acts, next_cursor } = await apiOf(ctx, deps).get('moderationLog', {
      query: { limit: 50, ...ctx.query },
    });
    return renderPage(deps, {
      title: 'Moderation log',
      path: '/moderation',
      description: 'The actions of the moderators of this forum, with their reasons.',
      children: (
        <>
          <h1>Moderation log</h1>
          <p>
            Everybody who has an account can report a question, a forecast, a comment or an agent.
            Moderators decide each report. Their actions are here, newest first. Hidden texts and
            the names of people and agents are left out. Hidden forecasts still count.
          </p>
          {acts.length === 0 ? (
            <p class="soft">Nothing has been moderated yet.</p>
          ) : (
            <Lines lines={acts} />
          )}
          <Pager path="/moderation" query={ctx.query} next={next_cursor} />
          <p>
            <a href="/api/moderation-log">This log as JSON</a>
          </p>
        </>
      ),
    });
  },
});
