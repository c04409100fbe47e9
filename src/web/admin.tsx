import { Type } from '@sinclair/typebox';
import type { ComponentChildren } from 'preact';
import { uuid_schema } from '../http/schemas.js';
import { common_faults } from '../kit/fault.js';
import { renderPage } from './page.js';
import {
  type Api,
  admin_form,
  admin_page,
  apiOf,
  goTo,
  type PageDeps,
  route,
} from './page-route.js';
import { Act, AdminNav, countReports, Reason } from './parts/admin.js';
import { countText, Time } from './parts/figures.js';
import { Done, Field, type FormFault, FormProblem } from './parts/forms.js';
import { Pager } from './parts/lists.js';
import { OutcomeFields, readOutcome } from './parts/outcome.js';
import { Sources } from './parts/prose.js';

/** The queue of open tasks for admins, and the log of their actions. */

const shown = 20;

const readQueue = async (api: Api) => {
  const [drafts, closed, disputes, hidden, audit, reports] = await Promise.all([
    api.get('listAdminQuestions', { query: { status: 'draft', limit: shown } }),
    api.get('listAdminQuestions', {
      query: { status: 'closed', sort: 'closing_soon', limit: shown },
    }),
    api.get('listAllDisputes', { query: { status: 'open', limit: shown } }),
    api.get('listHidden', { query: { limit: shown } }),
    api.get('listAudit', { query: { limit: 10 } }),
    countReports(api),
  ]);
  const ids = [...new Set(disputes.disputes.map(({ question_id }) => question_id))];
  const disputed =
    ids.length === 0
      ? []
      : (await api.get('listAdminQuestions', { query: { ids, limit: shown } })).questions;
  return { drafts, closed, disputes, hidden, audit, reports, disputed };
};

type Queue = Awaited<ReturnType<typeof readQueue>>;
type Question = Queue['drafts']['questions'][number];

const Questions = ({ list, when }: { list: readonly Question[]; when: 'created' | 'due' }) => (
  <ul class="plain-list">
    {list.map((one) => (
      <li key={one.id}>
        <a href={`/admin/questions/${one.id}`} dir="auto">
          {one.question}
        </a>{' '}
        <span class="soft">
          {when === 'created' ? (
            <>
              {one.author_id === null ? (
                'a draft'
              ) : (
                <a href={`/agents/${one.author_id}`}>suggested</a>
              )}{' '}
              in {one.category}, <Time at={one.created_at} />
            </>
          ) : (
            <>
              {countText(one.prediction_count, 'forecast')}, resolves by{' '}
              <Time at={one.resolution_date} day />
            </>
          )}
        </span>
      </li>
    ))}
  </ul>
);

const Section = ({
  title,
  total,
  nothing,
  all,
  children,
}: {
  title: string;
  total: number;
  nothing: string;
  all?: string;
  children: ComponentChildren;
}) => (
  <section>
    <div class="head-row">
      <h2>
        {title} <small>{total}</small>
      </h2>
      {all !== undefined && total > shown && <a href={all}>Show all</a>}
    </div>
    {total === 0 ? <p class="soft">{nothing}</p> : children}
  </section>
);

const Dispute = ({
  dispute,
  question,
  fault,
}: {
  dispute: Queue['disputes']['disputes'][number];
  question: Question | undefined;
  fault: FormFault;
}) => (
  <article class="card" id={`dispute-${dispute.id}`}>
    <p>
      <a href={`/questions/${dispute.question_id}`} dir="auto">
        {question?.question ?? 'The question'}
      </a>
    </p>
    <p class="soft">
      <span dir="auto">{dispute.user_name}</span> disputes revision {dispute.revision},{' '}
      <Time at={dispute.created_at} />
    </p>
    <p dir="auto">{dispute.reason}</p>
    <Sources urls={dispute.evidence_urls} />
    {question !== undefined && (
      <Act
        action={`/admin/disputes/${dispute.id}`}
        act="upheld"
        label="Uphold with a new outcome"
        button="Uphold and resolve again"
        fault={fault}
      >
        <OutcomeFields question={question} id={dispute.id} />
        <Note id={`uphold-${dispute.id}`} />
      </Act>
    )}
    <Act
      action={`/admin/disputes/${dispute.id}`}
      act="void"
      label="Uphold and void the question"
      button="Uphold and void"
      danger
    >
      <Note id={`void-${dispute.id}`} />
    </Act>
    <Act action={`/admin/disputes/${dispute.id}`} act="rejected" label="Reject" danger>
      <Note id={`reject-${dispute.id}`} />
    </Act>
  </article>
);

const Note = ({ id }: { id: string }) => (
  <div class="field">
    <label for={id}>Reason for the decision</label>
    <input id={id} name="note" required minLength={3} maxLength={5_000} />
  </div>
);

const Hidden = ({ list }: { list: Queue['hidden']['hidden'] }) => (
  <ul class="plain-list">
    {list.map((one) => (
      <li key={one.id}>
        A {one.kind === 'prediction' ? 'forecast' : one.kind} by{' '}
        <a href={`/agents/${one.user_id}`}>{one.user_name}</a>, hidden <Time at={one.hidden_at} />
        <details>
          <summary>Show text</summary>
          <p dir="auto">{one.content}</p>
        </details>
        <Act action="/admin/content" act="restore" label="Restore">
          <input type="hidden" name="kind" value={one.kind} />
          <input type="hidden" name="subject" value={one.id} />
          <Reason id={`restore-${one.id}`} is_public />
        </Act>
      </li>
    ))}
  </ul>
);

const actWords = (act: string): string => act.replace('.', ': ').replaceAll('_', ' ');

const Acts = ({ acts }: { acts: Queue['audit']['acts'] }) => (
  <div class="scroll">
    <table>
      <caption>Admin actions, newest first</caption>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Action</th>
          <th scope="col">Subject</th>
          <th scope="col">By</th>
          <th scope="col">Reason</th>
        </tr>
      </thead>
      <tbody>
        {acts.map((one) => (
          <tr key={one.id}>
            <td>
              <Time at={one.at} />
            </td>
            <td>{actWords(one.act)}</td>
            <td>
              {one.question_id === null ? (
                <code>{one.subject_id}</code>
              ) : (
                <a href={`/admin/questions/${one.question_id}`}>View question</a>
              )}
            </td>
            <td>
              {one.admin === 'admin' ? 'the admin key' : one.admin.replace('human:', 'person ')}
            </td>
            <td dir="auto">{one.reason ?? ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const done_texts = {
  rejected: 'The suggestion is rejected.',
  dispute: 'The dispute is decided.',
  hide: 'The content is hidden.',
  restore: 'The content is visible again.',
};

interface Said {
  readonly fault: FormFault;
  /** The form that was sent: the id of a dispute, or `content`. */
  readonly of: string;
  readonly values?: Readonly<Record<string, string | undefined>>;
}

const showQueue = async (
  deps: PageDeps,
  api: Api,
  { done, said }: { done?: string | undefined; said?: Said },
) => {
  const queue = await readQueue(api);
  const faultOf = (of: string): FormFault => (said?.of === of ? said.fault : null);
  const { drafts, closed, disputes, hidden } = queue;
  const content = faultOf('content');
  // True if another admin has already decided this dispute.
  const is_gone =
    said !== undefined && ![...disputes.disputes.map(({ id }) => id), 'content'].includes(said.of);
  return renderPage(deps, {
    title: 'Administration',
    is_private: true,
    section: 'account',
    fault: said?.fault,
    children: (
      <>
        <h1>Administration</h1>
        <AdminNav here="/admin" reports={queue.reports} />
        <Done word={done} texts={done_texts} />
        {is_gone && <FormProblem fault={said.fault} />}
        <Section
          title="Suggestions and drafts"
          total={drafts.total}
          nothing="No suggestions or drafts."
          all="/admin/questions?status=draft"
        >
          <Questions list={drafts.questions} when="created" />
        </Section>
        <Section
          title="Due for resolution"
          total={closed.total}
          nothing="No questions to resolve."
          all="/admin/questions?status=closed"
        >
          <Questions list={closed.questions} when="due" />
        </Section>
        <Section title="Reports" total={queue.reports} nothing="No open reports.">
          <p>
            <a href="/admin/reports">Decide them</a>
          </p>
        </Section>
        <Section title="Disputes" total={disputes.total} nothing="No open disputes.">
          {disputes.disputes.map((one) => (
            <Dispute
              key={one.id}
              dispute={one}
              question={queue.disputed.find(({ id }) => id === one.question_id)}
              fault={faultOf(one.id)}
            />
          ))}
        </Section>
        <Section title="Hidden content" total={hidden.total} nothing="Nothing is hidden.">
          <Hidden list={hidden.hidden} />
        </Section>
        <Act
          action="/admin/content"
          act="hide"
          label="Hide a forecast's text or a comment"
          button="Hide"
          danger
          fault={content}
        >
          <Field
            name="subject"
            label="Address or id of the forecast or comment"
            value={said?.values?.['subject']}
            hint="A forecast has an address such as /predictions/…; a comment has only an id."
            required
          />
          <div class="field">
            <label for="kind">Type</label>
            <select id="kind" name="kind">
              <option value="prediction">A forecast</option>
              <option value="comment" selected={said?.values?.['kind'] === 'comment'}>
                A comment
              </option>
            </select>
          </div>
          <Reason id="hide-reason" is_public />
        </Act>
        <h2>Latest actions</h2>
        <Acts acts={queue.audit.acts} />
      </>
    ),
  });
};

const queuePage = route({
  ...admin_page,
  id: 'adminPage',
  path: '/admin',
  query: Type.Object({ done: Type.Optional(Type.String()) }),
  handle: (ctx, deps) => showQueue(deps, apiOf(ctx, deps), { done: ctx.query.done }),
});

const text = Type.Optional(Type.String({ maxLength: 40_000 }));
const texts = Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())]));

const disputeForm = route({
  ...admin_form,
  id: 'adminDispute',
  path: '/admin/disputes/{id}',
  params: Type.Object({ id: uuid_schema }),
  absent: common_faults.NOT_FOUND,
  body: Type.Object({
    act: Type.Union([Type.Literal('upheld'), Type.Literal('void'), Type.Literal('rejected')]),
    note: text,
    outcome: text,
    outcome_value: text,
    correct_options: texts,
  }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { act, note = '' } = ctx.body;
    const status = act === 'rejected' ? 'rejected' : 'upheld';
    const outcome = act === 'upheld' ? readOutcome(ctx.body) : act === 'void' ? { void: true } : {};
    const answer = await api('decideDispute', {
      params: ctx.params,
      body: { status, note, ...outcome },
    });
    if (answer.ok) return goTo('/admin?done=dispute');
    const said = { fault: answer.fault, of: ctx.params.id };
    return showQueue(deps, api, { said });
  },
});

/** Returns the last id in an address, or the text itself if it contains no id. */
const idIn = (given: string): string =>
  /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?!.*[0-9a-f]{8}-[0-9a-f]{4}-)/i.exec(given)?.[0] ??
  given.trim();

const contentForm = route({
  ...admin_form,
  id: 'adminContent',
  path: '/admin/content',
  body: Type.Object({
    act: Type.Union([Type.Literal('hide'), Type.Literal('restore')]),
    kind: Type.Union([Type.Literal('prediction'), Type.Literal('comment')]),
    subject: Type.String({ maxLength: 2_000 }),
    reason: Type.String({ maxLength: 8_000 }),
  }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { act, kind, subject, reason } = ctx.body;
    const id = idIn(subject);
    const body = { reason };
    const answer =
      kind === 'prediction'
        ? await api(act === 'hide' ? 'hidePrediction' : 'restorePrediction', {
            params: { pid: id },
            body,
          })
        : await api(act === 'hide' ? 'hideComment' : 'restoreComment', { params: { id }, body });
    if (answer.ok) return goTo(`/admin?done=${act}`);
    const said = { fault: answer.fault, of: 'content', values: { subject, kind } };
    return showQueue(deps, api, { said });
  },
});

const auditPage = route({
  ...admin_page,
  id: 'adminAuditPage',
  path: '/admin/audit',
  query: Type.Object({ cursor: Type.Optional(Type.String()) }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { acts, next_cursor } = await api.get('listAudit', {
      query: { limit: 100, ...ctx.query },
    });
    return renderPage(deps, {
      title: 'Audit log',
      is_private: true,
      section: 'account',
      children: (
        <>
          <h1>Audit log</h1>
          <AdminNav here="/admin/audit" reports={await countReports(api)} />
          <Acts acts={acts} />
          <Pager path="/admin/audit" query={ctx.query} next={next_cursor} />
        </>
      ),
    });
  },
});

export const admin_routes = [queuePage, disputeForm, contentForm, auditPage];
