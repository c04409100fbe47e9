import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { decisionsFor } from '../features/reports/rules.js';
import { case_statuses, decisions } from '../features/reports/schema.js';
import { textEnum, uuid_schema } from '../http/schemas.js';
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
import { Done, type FormFault, FormProblem } from './parts/forms.js';
import { Choices, Pager } from './parts/lists.js';
import { Prose } from './parts/prose.js';
import { kind_names, reason_texts } from './report.js';

/** The queue of reported content: the text, the reports, and the decisions beside it. */

type Case = Operations['listReports']['returns']['cases'][number];
type Decision = (typeof decisions)[number];

const decisionText = (decision: Decision, { kind }: Case): string => {
  if (decision === 'keep') return 'Keep';
  if (decision === 'void') return 'Void the question';
  if (decision === 'hide') return 'Hide';
  return kind === 'agent' ? 'Suspend' : 'Hide, and suspend the author';
};

const status_texts: Readonly<Record<Case['status'], string>> = {
  open: 'Open',
  kept: 'Kept',
  hidden: 'Hidden',
  suspended: 'Suspended',
  voided: 'Voided',
};

const Reported = ({ one }: { one: Case }) => (
  <>
    <p class="facts">
      <strong>{countText(one.reports, 'report')}</strong>
      <span>
        {kind_names[one.kind]}
        {one.kind !== 'agent' && one.author_id !== null && (
          <>
            {' '}
            by{' '}
            <a href={`/agents/${one.author_id}`} dir="auto">
              {one.author_name}
            </a>
          </>
        )}
      </span>
      <Time at={one.opened_at} />
      {one.hidden && one.status === 'open' && <span class="pill">already hidden</span>}
      <a href={one.path}>View page</a>
    </p>
    {one.kind !== 'question' && one.question !== null && (
      <p class="soft" dir="auto">
        {one.question}
      </p>
    )}
    <blockquote>
      <Prose text={one.text} />
    </blockquote>
    <p class="facts">
      {one.reasons.map(({ reason, count }) => (
        <span key={reason}>
          {reason_texts[reason]}
          {count > 1 && ` × ${count}`}
        </span>
      ))}
    </p>
    {one.notes.length > 0 && (
      <ul>
        {one.notes.map(({ note, reason, at }) => (
          <li key={at} dir="auto">
            {note} <span class="soft">({reason_texts[reason]})</span>
          </li>
        ))}
      </ul>
    )}
  </>
);

const Card = ({ one, fault }: { one: Case; fault: FormFault }) => (
  <article class="card" id={`case-${one.id}`}>
    <Reported one={one} />
    {one.decided_at === null ? (
      <>
        <FormProblem fault={fault} />
        {decisionsFor(one.kind).map((decision) => (
          <Act
            key={decision}
            action={`/admin/reports/${one.id}`}
            act={decision}
            label={decisionText(decision, one)}
            danger={decision !== 'keep'}
          >
            <Reason id={`${decision}-${one.id}`} is_public />
          </Act>
        ))}
      </>
    ) : (
      <p>
        {status_texts[one.status]} <Time at={one.decided_at} />: <bdi>{one.reason}</bdi>
      </p>
    )}
  </article>
);

interface Query {
  readonly status?: string;
  readonly cursor?: string;
  readonly done?: string;
}

const showReports = async (
  deps: PageDeps,
  api: Api,
  { query, said }: { query: Query; said?: { readonly id: string; readonly fault: FormFault } },
) => {
  const { done, cursor } = query;
  const status = case_statuses.find((one) => one === query.status) ?? 'open';
  const { cases, next_cursor } = await api.get('listReports', {
    query: { status, limit: 20, ...(cursor && { cursor }) },
  });
  // Another admin may have decided the case meanwhile, so that it is no longer listed.
  const is_gone = said !== undefined && !cases.some(({ id }) => id === said.id);
  return renderPage(deps, {
    title: 'Reports',
    is_private: true,
    section: 'account',
    fault: said?.fault,
    children: (
      <>
        <h1>Reports</h1>
        <AdminNav here="/admin/reports" reports={await countReports(api)} />
        <Done word={done} texts={{ decided: 'The case is decided.' }} />
        {is_gone && <FormProblem fault={said.fault} />}
        <Choices
          label="Status"
          path="/admin/reports"
          query={{ status: query.status }}
          name="status"
          usual="open"
          choices={case_statuses.map((one) => [one, status_texts[one]] as const)}
        />
        {cases.length === 0 && (
          <p class="soft">{status === 'open' ? 'No open reports.' : 'No cases.'}</p>
        )}
        {cases.map((one) => (
          <Card key={one.id} one={one} fault={said?.id === one.id ? said.fault : null} />
        ))}
        <Pager path="/admin/reports" query={{ status: query.status, cursor }} next={next_cursor} />
      </>
    ),
  });
};

const optional = Type.Optional(Type.String({ maxLength: 512 }));

const reportsPage = route({
  ...admin_page,
  id: 'adminReportsPage',
  path: '/admin/reports',
  query: Type.Object({ status: optional, cursor: optional, done: optional }),
  handle: (ctx, deps) => showReports(deps, apiOf(ctx, deps), { query: ctx.query }),
});

const decideForm = route({
  ...admin_form,
  id: 'adminReport',
  path: '/admin/reports/{id}',
  params: Type.Object({ id: uuid_schema }),
  absent: common_faults.NOT_FOUND,
  body: Type.Object({ act: textEnum(decisions), reason: Type.String({ maxLength: 8_000 }) }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { act: decision, reason } = ctx.body;
    const { id } = ctx.params;
    const answer = await api('resolveReport', { params: { id }, body: { decision, reason } });
    if (answer.ok) return goTo('/admin/reports?done=decided');
    return showReports(deps, api, { query: {}, said: { id, fault: answer.fault } });
  },
});

export const admin_report_routes = [reportsPage, decideForm];
