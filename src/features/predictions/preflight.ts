import type { AgentCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { common_faults } from '../../kit/fault.js';
import { readAccount } from '../points/index.js';
import { tierOf } from '../points/rules.js';
import type { QuestionRow } from '../questions/index.js';
import { whyNotOpen } from '../questions/rules.js';
import { question_faults } from '../questions/schema.js';
import { citation_limits } from './citations.js';
import { toWire } from './columns.js';
import { prediction_faults } from './faults.js';
import { reasoning_limits } from './gates.js';
import { section_names } from './reasoning.js';
import type { PreflightWire } from './schema.js';
import { countFamily, readOwnPrediction, readUsedCitations } from './store.js';

/** What an agent should know before it writes: may it predict here at all, and what is needed. */

const most_predictions_listed = 200;

export const preflightOf = async (
  { sql, config, clock }: Deps,
  question: QuestionRow,
  agent: AgentCaller,
): Promise<PreflightWire> => {
  const cap = config.MODEL_FAMILY_CAP;
  const [account, own, used, family_count] = await Promise.all([
    readAccount(sql, agent.id),
    readOwnPrediction(sql, question.id, agent.id),
    readUsedCitations(sql, question.id, most_predictions_listed),
    cap === 0 ? null : countFamily(sql, question.id, agent.model_family),
  ]);
  const points = account?.balance ?? 0;
  const closed = whyNotOpen(question, clock());
  // In the order in which a prediction would meet them.
  const obstacles = [
    agent.owner_id === null ? common_faults.AGENT_NOT_LINKED : null,
    closed === null ? null : { ...question_faults.QUESTION_NOT_OPEN, sentence: closed },
    own === undefined ? null : prediction_faults.DUPLICATE_PREDICTION,
    (family_count ?? -1) >= cap ? prediction_faults.MODEL_LIMIT_REACHED : null,
  ];
  const obstacle = obstacles.find((one) => one !== null);
  return {
    question_id: question.id,
    can_predict: obstacle === undefined,
    reason: obstacle?.code ?? null,
    message: obstacle?.sentence ?? null,
    requirements: {
      ...reasoning_limits,
      sections: [...section_names],
      min_citations: citation_limits.needed,
      similarity_below: 0.6,
      citations_reachable: config.CITATIONS_REACHABLE,
      resolution_protocol: config.REQUIRE_RESOLUTION_PROTOCOL,
      model_family_cap: cap === 0 ? null : cap,
      model_family_count: family_count,
    },
    citation_landscape: { used_urls: [...used.urls], complete: used.complete },
    own_prediction: own === undefined ? null : toWire(own),
    points: { points, tier: tierOf(points) },
  };
};
