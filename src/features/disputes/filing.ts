import type { Deps } from '../../kit/deps.js';
import { emit } from '../../kit/event.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import type { AgentCaller } from '../../kit/http/route.js';
import { type Answer, type Reply, reply } from '../../kit/http/route.js';
import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { dispute_opened, dispute_resolved } from '../events/index.js';
import { question_faults } from '../questions/index.js';
import { readFiling, whyNotDisputable } from './rules.js';
import { dispute_faults, type FileBody } from './schema.js';
import {
  type DisputeRow,
  endDispute,
  holdQuestion,
  insertDispute,
  readDispute,
  toWire,
} from './store.js';

/** What agents do with disputes: file and withdraw. */

interface Call {
  readonly params: { readonly id: string };
  readonly caller: AgentCaller;
  keep(tx: Tx, answer: Answer): Promise<void>;
}

export const mustRead = async (tx: Tx, id: string): Promise<DisputeRow> => {
  const row = await readDispute(tx, id);
  if (row === undefined) throw new Error(`dispute ${id} vanished inside its transaction`);
  return row;
};

const announceOpening = (tx: Tx, row: DisputeRow): Promise<string> =>
  emit(tx, dispute_opened, {
    at: row.created_at,
    place: { question_id: row.question_id, agent_id: row.agent_id },
    data: {
      dispute_id: row.id,
      question_id: row.question_id,
      question: row.question,
      user_id: row.agent_id,
      user_name: row.agent_name,
    },
  });

/** However it ended: upheld, rejected or withdrawn. */
export const announceEnding = (tx: Tx, row: DisputeRow, at: Date): Promise<string> =>
  emit(tx, dispute_resolved, {
    at,
    place: { question_id: row.question_id, agent_id: row.agent_id },
    data: {
      dispute_id: row.id,
      question_id: row.question_id,
      status: row.status,
      question: row.question,
      user_id: row.agent_id,
    },
  });

export const fileDispute = async (
  call: Call & { readonly body: FileBody },
  { sql, clock }: Deps,
): Promise<Answer> => {
  const filing = readFiling(call.body);
  if (isFault(filing)) return filing;
  const agent_id = call.caller.id;
  return sql.begin(async (tx): Promise<Reply | Fault> => {
    const at = clock();
    const question = await holdQuestion(tx, call.params.id, agent_id);
    const is_foreign_draft = question?.status === 'draft' && question.author_id !== agent_id;
    if (question === undefined || is_foreign_draft) {
      return refuse(question_faults.QUESTION_NOT_FOUND);
    }
    const why_not = whyNotDisputable(question, at);
    if (why_not !== null) return why_not;
    const { id: question_id, revision } = question;
    const id = makeId();
    const made = { ...filing, id, question_id, agent_id, revision, at };
    if (!(await insertDispute(tx, made))) return refuse(dispute_faults.DUPLICATE_DISPUTE);
    const row = await mustRead(tx, id);
    await announceOpening(tx, row);
    const answer = reply(201, { dispute: toWire(row) });
    await call.keep(tx, answer);
    return answer;
  });
};

/** To who did not file it, a dispute cannot be withdrawn any more than one that is not there. */
export const withdrawDispute = async (call: Call, { sql, clock }: Deps): Promise<Answer> => {
  const { id } = call.params;
  return sql.begin(async (tx): Promise<Reply | Fault> => {
    const at = clock();
    const before = await readDispute(tx, id);
    if (before?.agent_id !== call.caller.id) return refuse(dispute_faults.DISPUTE_NOT_FOUND);
    const none = { note: null, decided_by: null, new_revision: null };
    if (!(await endDispute(tx, { ...none, id, status: 'withdrawn', at }))) {
      return refuse(dispute_faults.DISPUTE_NOT_OPEN);
    }
    const row = await mustRead(tx, id);
    await announceEnding(tx, row, at);
    const answer = reply(200, { dispute: toWire(row) });
    await call.keep(tx, answer);
    return answer;
  });
};
