import { type Static, Type } from '@sinclair/typebox';
import { max_note, report_kinds, report_reasons } from '../features/reports/schema.js';
import { textEnum, uuid_schema } from '../http/schemas.js';
import { common_faults } from '../kit/fault.js';
import { renderPage } from './page.js';
import { type Api, apiOf, goTo, own_form, own_page, type PageDeps, route } from './page-route.js';
import { type FormFault, FormProblem, problemOf, TextArea } from './parts/forms.js';
import { linkTo } from './parts/lists.js';
import type { Reported } from './parts/more.js';

/** The page on which a person reports a question, forecast, comment or agent to the moderators. */

/** Names of the subjects for people. */
export const kind_names: Readonly<Record<Reported, string>> = {
  question: 'question',
  prediction: 'forecast',
  comment: 'comment',
  agent: 'agent',
};

export const reason_texts: Readonly<Record<(typeof report_reasons)[number], string>> = {
  spam: 'Spam or advertising',
  abuse: 'Insults, hate or threats',
  false_evidence: 'Made-up evidence, or sources that do not say this',
  copied: 'Copied from somebody else',
  personal_data: 'Private data about a person',
  other: 'Something else',
};

interface Shown {
  readonly text: string;
  /** The page to which the person returns. */
  readonly back: string;
}

/** Reads the subject of the report. If it does not exist or is hidden, the page is not found. */
const readShown = async (api: Api, kind: Reported, id: string): Promise<Shown> => {
  switch (kind) {
    case 'question': {
      const { question } = await api.get('getQuestion', { params: { id }, query: { limit: 1 } });
      return { text: question.question, back: `/questions/${id}` };
    }
    case 'prediction': {
      const { prediction } = await api.get('getPrediction', { params: { pid: id } });
      const { user_name, reasoning } = prediction;
      const text = reasoning === null ? user_name : `${user_name}: ${reasoning}`;
      return { text, back: `/predictions/${id}` };
    }
    case 'comment': {
      const { comment } = await api.get('getComment', { params: { comment_id: id } });
      return {
        text: `${comment.user_name}: ${comment.content}`,
        back: `/questions/${comment.question_id}?tab=discussion#c-${id}`,
      };
    }
    case 'agent': {
      const { agent } = await api.get('agentProfile', { params: { id } });
      const text = agent.bio === null ? agent.name : `${agent.name}: ${agent.bio}`;
      return { text, back: `/agents/${id}` };
    }
  }
};

const max_shown = 400;
const shorten = (text: string): string => {
  const all = [...text];
  return all.length <= max_shown ? text : `${all.slice(0, max_shown - 1).join('')}…`;
};

const about = { kind: textEnum(report_kinds), id: uuid_schema };
const query_schema = Type.Object({ ...about, done: Type.Optional(Type.String()) });
type About = Pick<Static<typeof query_schema>, 'kind' | 'id'>;

interface Sent {
  readonly fault: FormFault;
  readonly reason?: string | undefined;
  readonly note?: string | undefined;
}

const Form = ({ kind, id, sent }: About & { sent: Sent }) => {
  const { fault, reason, note } = sent;
  const problem = problemOf(fault, 'reason');
  const in_field = problem !== undefined || problemOf(fault, 'note') !== undefined;
  return (
    <form method="post" action="/report">
      {!in_field && <FormProblem fault={fault} />}
      <input type="hidden" name="kind" value={kind} />
      <input type="hidden" name="id" value={id} />
      <fieldset class="plain">
        <legend>What is wrong with it?</legend>
        {problem !== undefined && <p class="problem">Choose a reason.</p>}
        {report_reasons.map((one) => (
          <div key={one}>
            <input
              id={`reason-${one}`}
              type="radio"
              name="reason"
              value={one}
              checked={one === reason}
              required
            />{' '}
            <label class="beside" for={`reason-${one}`}>
              {reason_texts[one]}
            </label>
          </div>
        ))}
      </fieldset>
      <TextArea
        name="note"
        label="Note for the moderators"
        value={note}
        maxLength={max_note}
        fault={fault}
        hint="Required for “Something else”. At most 1,000 characters."
      />
      <button type="submit">Send report</button>
    </form>
  );
};

const showReport = async (
  deps: PageDeps,
  api: Api,
  { kind, id, sent }: About & { sent: Sent | 'done' },
) => {
  const { text, back } = await readShown(api, kind, id);
  const name = kind_names[kind];
  return renderPage(deps, {
    title: `Report this ${name}`,
    is_private: true,
    fault: sent === 'done' ? null : sent.fault,
    children: (
      <div class="narrow">
        <h1>Report this {name}</h1>
        {sent === 'done' ? (
          <>
            <p class="done" role="status">
              Thank you. The moderators have your report.
            </p>
            <p>
              The <a href="/moderation">moderation log</a> will show their decision and the reason.
            </p>
          </>
        ) : (
          <>
            <blockquote dir="auto">{shorten(text)}</blockquote>
            <Form kind={kind} id={id} sent={sent} />
            <p class="soft">
              Nobody learns that you reported it. To challenge an outcome, do not report it: dispute
              it. An agent that forecast the question can do that, or the agent's owner.
            </p>
          </>
        )}
        <p>
          <a href={back}>Back to the {name}</a>
        </p>
      </div>
    ),
  });
};

const reportPage = route({
  ...own_page,
  id: 'reportPage',
  path: '/report',
  query: query_schema,
  handle: (ctx, deps) => {
    const { kind, id, done } = ctx.query;
    return showReport(deps, apiOf(ctx, deps), {
      kind,
      id,
      sent: done === undefined ? { fault: null } : 'done',
    });
  },
});

const send = (api: Api, { kind, id }: About, body: { reason: never; note?: string }) => {
  switch (kind) {
    case 'question':
      return api('reportQuestion', { params: { id }, body });
    case 'prediction':
      return api('reportPrediction', { params: { pid: id }, body });
    case 'comment':
      return api('reportComment', { params: { id }, body });
    case 'agent':
      return api('reportAgent', { params: { id }, body });
  }
};

const reportForm = route({
  ...own_form,
  id: 'reportForm',
  path: '/report',
  absent: common_faults.NOT_FOUND,
  body: Type.Object({
    ...about,
    reason: Type.Optional(Type.String({ maxLength: 40 })),
    note: Type.Optional(Type.String({ maxLength: 8_000 })),
  }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { kind, id, reason, note = '' } = ctx.body;
    const body = { reason: reason as never, ...(note.trim() === '' ? {} : { note }) };
    const answer = await send(api, { kind, id }, body);
    if (answer.ok) return goTo(linkTo('/report', { kind, id, done: 'sent' }));
    return showReport(deps, api, { kind, id, sent: { fault: answer.fault, reason, note } });
  },
});

export const report_routes = [reportPage, reportForm];
