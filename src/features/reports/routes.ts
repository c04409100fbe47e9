import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { type Answer, type Context, reply, routeFor } from '../../http/route.js';
import { pageSchema, uuid_schema } from '../../http/schemas.js';
import { type FaultDef, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { readText } from '../../kit/text.js';
import type { PrincipalParts } from '../accounts/index.js';
import { agents_faults } from '../accounts/schema.js';
import { adminName } from '../audit/index.js';
import { comment_faults } from '../comments/schema.js';
import { reason_limits } from '../moderation/schema.js';
import { prediction_faults } from '../predictions/faults.js';
import type { QuestionParts } from '../questions/index.js';
import { question_faults } from '../questions/schema.js';
import { decideCase } from './deciding.js';
import { pathOf, readReport, whyNotFitting, whyNotReportable } from './rules.js';
import * as wire from './schema.js';
import * as store from './store.js';

type Needs = Deps & PrincipalParts & QuestionParts;
const route = routeFor<Needs>();
const tag = 'moderation';

interface ReportCall extends Pick<Context, 'write'> {
  readonly kind: wire.ReportKind;
  readonly id: string;
  readonly absent: FaultDef;
  readonly body: wire.ReportBody;
  /** The person, or the owner of the agent. */
  readonly person_id: string;
  readonly agent_id: string | null;
}

const report = (call: ReportCall, { sql, clock }: Deps): Promise<Answer> | Answer => {
  const { kind, absent, person_id, agent_id } = call;
  const text = readReport(call.body);
  if (isFault(text)) return text;
  const at = clock();
  return call.write(sql, async (tx) => {
    const subject = await store.readSubject(tx, kind, call.id);
    if (subject === undefined) return refuse(absent);
    const why_not = whyNotReportable(subject, person_id);
    if (why_not !== null) return why_not;
    const { id: subject_id } = subject;
    // A second report of a decided subject must not open another case.
    if (await store.hasReported(tx, person_id, subject_id)) {
      return refuse(wire.report_faults.DUPLICATE_REPORT);
    }
    const case_id = await store.openCase(tx, { ...subject, case_id: makeId(), kind, at });
    const by = { person_id, agent_id, subject_id, kind, at };
    const made = await store.insertReport(tx, { ...text, ...by, id: makeId(), case_id });
    if (made === undefined) return refuse(wire.report_faults.DUPLICATE_REPORT);
    return reply(201, { report: made });
  });
};

const reportRoute = (kind: wire.ReportKind, absent: FaultDef) => {
  const parameter = kind === 'prediction' ? 'pid' : 'id';
  const name = `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
  return route({
    id: `report${name}`,
    method: 'POST',
    path: `/api/${kind}s/{${parameter}}/report`,
    summary: `Report ${kind === 'agent' ? 'an' : 'a'} ${kind} to the moderators, once`,
    tag,
    auth: 'member',
    limits: ['reports'],
    stores_answer: 'inside',
    params: Type.Object({ [parameter]: uuid_schema }),
    absent,
    body: wire.report_body,
    returns: { 201: wire.report_answer },
    faults: [absent, wire.report_faults.DUPLICATE_REPORT, wire.report_faults.OWN_CONTENT],
    handle(ctx, deps) {
      const { caller, body } = ctx;
      const id = (ctx.params as Record<string, string>)[parameter] ?? '';
      const is_agent = caller.kind === 'agent';
      // `member` admits only linked agents, so an agent has an owner.
      const person_id = is_agent ? (caller.owner_id ?? '') : caller.id;
      const agent_id = is_agent ? caller.id : null;
      const write: Context['write'] = (sql, work) => ctx.write(sql, work);
      return report({ kind, id, absent, body, person_id, agent_id, write }, deps);
    },
  });
};

const showCase = (row: store.CaseRow) => ({
  ...row,
  path: pathOf(row.kind, row.subject_id, row.question_id),
});

const listReports = route({
  id: 'listReports',
  method: 'GET',
  path: '/api/admin/reports',
  summary: 'Reported content by subject, with the reports and the text, newest case first',
  tag,
  auth: 'admin',
  query: wire.cases_query,
  returns: { 200: pageSchema('cases', wire.case_schema) },
  handle: ({ query }, { reads: sql }) =>
    replyPage({
      path: '/api/admin/reports',
      query,
      plural: 'cases',
      show: showCase,
      read: (page) => store.listCases(sql, query.status, page),
      count: async () => ({ total: await store.countCases(sql, query.status) }),
    }),
});

const absent = wire.report_faults.CASE_NOT_FOUND;

const resolveReport = route({
  id: 'resolveReport',
  method: 'POST',
  path: '/api/admin/reports/{id}/resolve',
  summary: 'Decide all reports of a subject: hide, suspend, void or keep it',
  tag,
  auth: 'admin',
  stores_answer: 'inside',
  params: Type.Object({ id: uuid_schema }),
  absent,
  body: wire.decide_body,
  returns: { 200: wire.case_answer },
  faults: [absent, wire.report_faults.CASE_NOT_OPEN, question_faults.INVALID_TRANSITION],
  async handle(ctx, deps) {
    const { decision } = ctx.body;
    const reason = readText(ctx.body.reason, 'body.reason', reason_limits);
    if (isFault(reason)) return reason;
    const admin = adminName(ctx.caller);
    const at = deps.clock();
    let decided: store.LockedCase | undefined;
    const answer = await ctx.write(deps.sql, async (tx) => {
      const reported = await store.lockCase(tx, ctx.params.id);
      if (reported === undefined) return refuse(absent);
      if (reported.status !== 'open') return refuse(wire.report_faults.CASE_NOT_OPEN);
      const refused =
        whyNotFitting(reported.kind, decision) ??
        (await decideCase(tx, reported, { decision, reason, admin, at }));
      if (refused !== null) return refused;
      decided = reported;
      const row = await store.readCase(tx, reported.id);
      return row === undefined ? refuse(absent) : reply(200, { case: showCase(row) });
    });
    // The author may be suspended, and the question changed.
    if (decided?.author_id != null) deps.principals.forget(decided.author_id);
    if (decided?.question_id != null) deps.questions.forget(decided.question_id);
    return answer;
  },
});

export const routes = [
  reportRoute('question', question_faults.QUESTION_NOT_FOUND),
  reportRoute('prediction', prediction_faults.PREDICTION_NOT_FOUND),
  reportRoute('comment', comment_faults.COMMENT_NOT_FOUND),
  reportRoute('agent', agents_faults.AGENT_NOT_FOUND),
  listReports,
  resolveReport,
];
