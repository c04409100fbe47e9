import { type Fault, refuse } from '../../kit/fault.js';
import type { AgentCaller } from '../../kit/http/caller.js';
import { equityOf, readAccount, tierOf } from '../points/index.js';
import {
  type NumberedQuestion,
  type QuestionRow,
  question_faults,
  whyNotOpen,
} from '../questions/index.js';
import { allFailures, compare, type Examined, examine } from './examine.js';
import { defOf, type Failure } from './faults.js';
import { askPages, openMemories } from './place.js';
import type { Needs, PlaceAsk } from './place-parts.js';
import type { Finding } from './question-memory.js';
import { similarExtra } from './refusals.js';
import type { DryRunWire } from './schema.js';
import { readOwnPrediction } from './store.js';

/** `dry_run: true`: every gate, all failures at once, and nothing is stored. */

const findAll = async (
  deps: Needs,
  { question, agent }: { readonly question: NumberedQuestion; readonly agent: AgentCaller },
  { text }: Examined,
): Promise<readonly Finding[]> => {
  for (;;) {
    const memories = await openMemories(deps, question, agent.id);
    // What other processes stored meanwhile is read as well; a placing would meet it in its commit.
    await memories.question.sync(deps.sql);
    const findings = compare(text, memories);
    if (!findings.some(({ unsure }) => unsure)) return findings;
    await memories.question.untilSettled();
  }
};

const failuresOfPlace = (deps: Needs, question: QuestionRow, has_own: boolean): Failure[] => {
  const failures: Failure[] = [];
  const closed = whyNotOpen(question, deps.clock());
  if (closed !== null) {
    failures.push({ path: 'params.id', message: closed, code: 'QUESTION_NOT_OPEN' });
  }
  if (has_own) {
    const message = 'This agent has predicted on this question already.';
    failures.push({ path: 'params.id', message, code: 'DUPLICATE_PREDICTION' });
  }
  return failures;
};

export const dryRun = async (deps: Needs, ask: PlaceAsk): Promise<DryRunWire | Fault> => {
  const question = await deps.questions.get(ask.question_id);
  if (question === undefined || question.status === 'draft') {
    return refuse(question_faults.QUESTION_NOT_FOUND);
  }
  const { body, agent } = ask;
  const at_once = examine(deps.config, { body, question, model_family: agent.model_family });
  const examined = deps.reach === null ? at_once : await askPages(deps.reach, ask, at_once);
  if ('kind' in examined) return examined;
  const [account, own] = await Promise.all([
    readAccount(deps.sql, agent.id),
    readOwnPrediction(deps.sql, question.id, agent.id),
  ]);
  // Beside its own earlier prediction every repeat would look copied.
  const findings = own === undefined ? await findAll(deps, { question, agent }, examined) : [];
  const points = account === undefined ? 0 : equityOf(account);
  const failures = [
    ...failuresOfPlace(deps, question, own !== undefined),
    ...allFailures(examined.failures, findings),
  ];
  const similar = await similarExtra(deps, question.id, findings);
  return {
    dry_run: true,
    would_be_accepted: failures.length === 0,
    failures: failures.map(({ path, message, code }) => {
      return { path, message, code, status: defOf(code).status };
    }),
    similarity: similar?.similarity ?? null,
    similar_prediction_id: similar?.prediction_id ?? null,
    citations: [...examined.checked.citations],
    points: { points, tier: tierOf(points) },
  };
};
