import type { Deps } from '../../http/deps.js';
import { type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { ensureImportOwner, import_owner_id, registerAgent } from '../accounts/index.js';
import { cleanName } from '../accounts/rules.js';
import { agents_faults } from '../accounts/schema.js';
import { recordAct } from '../audit/index.js';
import {
  type Imported,
  type ImportOutcome,
  type PredictionParts,
  type ReviseParts,
  recordImported,
} from '../predictions/index.js';
import {
  close_step,
  type QuestionParts,
  type QuestionRow,
  readQuestion,
  takeStep,
} from '../questions/index.js';
import { question_faults } from '../questions/schema.js';
import { decideQuestion } from '../resolution/index.js';
import {
  type Decision,
  isSameOutcome,
  readDecision,
  readVoiding,
  refuseBoth,
} from '../resolution/rules.js';
import { readResolvedTo, refuseTwo } from './resolved-to.js';
import type { AgentItem, ForecastItem, ResolutionItem } from './schema.js';
import { findByName, findBySource, type SourceName } from './store.js';

/** Imports agents, forecasts and resolutions, item by item. */

/**
 * Registers an agent whose forecasts are imported. It belongs to the import's own owner. So it is
 * linked, like every agent that predicts, and an import can never speak for an agent of another
 * owner. Its API key works and is shown once.
 */
export const importAgent = async (deps: Deps, item: AgentItem, admin: string) => {
  const clean = cleanName(item.name);
  if ('message' in clean) {
    return refuseFields([clean], clean.message);
  }
  const owner_id = await ensureImportOwner(deps.sql);
  const findKnown = async () => {
    const [known] = await findByName(deps.sql, [clean.name_key]);
    if (known === undefined) return undefined;
    if (known.owner_id === owner_id) return { kind: 'exists' as const, agent_id: known.id };
    return refuse(agents_faults.DUPLICATE_NAME, {
      message: 'An agent that was not imported has this name. Use a different name.',
    });
  };
  const known = await findKnown();
  if (known !== undefined) return known;
  const at = deps.clock();
  const body = { name: item.name, model: item.model };
  const imported = await deps.sql.begin(async (tx) => {
    const registered = await registerAgent(tx, body, { owner_id, at });
    if (isFault(registered)) return registered;
    const { agent, api_key } = registered;
    const subject = { kind: 'agent', id: agent.id };
    await recordAct(tx, { admin, act: 'agent.import', subject, at });
    return { kind: 'created' as const, agent_id: agent.id, api_key };
  });
  // If two imports register a name at the same time, the second finds the agent of the first.
  return isFault(imported) ? ((await findKnown()) ?? imported) : imported;
};

const sourceKey = ({ source, source_id }: SourceName): string => `${source}\n${source_id}`;

const refuseSource = ({ source, source_id }: SourceName): Fault =>
  refuse(question_faults.QUESTION_NOT_FOUND, {
    message: `There is no published question ${source_id} from ${source}.`,
  });

const nameKey = (name: string): string => {
  const clean = cleanName(name);
  return 'message' in clean ? '' : clean.name_key;
};

/**
 * Imports forecasts. Each forecast names its question by source and its agent by name. Returns the
 * outcome of each, in order.
 */
export const importForecasts = async (
  deps: Deps & Pick<PredictionParts, 'placing'> & ReviseParts,
  items: readonly ForecastItem[],
  admin: string,
): Promise<readonly ImportOutcome[]> => {
  const now = deps.clock();
  const [questions, agents] = await Promise.all([
    findBySource(deps.sql, items),
    findByName(
      deps.sql,
      items.map(({ agent }) => nameKey(agent)),
    ),
  ]);
  const by_source = new Map(questions.map((question) => [sourceKey(question), question]));
  const by_name = new Map(agents.map((agent) => [agent.name_key, agent]));
  const read = (item: ForecastItem): Imported | Fault => {
    const question = by_source.get(sourceKey(item));
    if (question === undefined) return refuseSource(item);
    const agent = by_name.get(nameKey(item.agent));
    if (agent === undefined || agent.owner_id !== import_owner_id) {
      const message = `There is no imported agent named ${item.agent.slice(0, 60)}.`;
      return refuse(agents_faults.AGENT_NOT_FOUND, { message });
    }
    const at = item.forecast_at == null ? {} : { at: new Date(item.forecast_at) };
    return { question, agent, stated: item, reasoning: item.reasoning ?? null, ...at };
  };
  const forecasts = items.map(read);
  const good = forecasts.filter((one): one is Imported => !isFault(one));
  const recorded = (await recordImported(deps, good, { admin, now })).values();
  return forecasts.map((one) => (isFault(one) ? one : recorded.next().value!));
};

const outcomes = ['outcome', 'correct_options', 'outcome_value', 'resolved_to'] as const;

const readItem = (item: ResolutionItem, question: QuestionRow, now: Date): Decision | Fault => {
  const stated = outcomes.filter((name) => item[name] !== undefined);
  if (item.void === true && stated[0] !== undefined) return refuseBoth(stated[0]);
  if (item.resolved_to !== undefined && stated.length > 1) return refuseTwo(stated);
  const read = item.resolved_to === undefined ? item : readResolvedTo(item.resolved_to, question);
  if (isFault(read)) return read;
  const body = { ...item, ...read };
  return body.void === true ? readVoiding(body) : readDecision(body, question, now);
};

const isDecided = ({ status }: QuestionRow): boolean =>
  status === 'resolved' || status === 'voided';

const isSame = (row: QuestionRow, decision: Decision): boolean =>
  decision.kind === (row.status === 'voided' ? 'void' : 'resolve') && isSameOutcome(row, decision);

const refuseOther = (row: QuestionRow): Fault =>
  refuse(question_faults.INVALID_TRANSITION, {
    message: `The question is ${row.status} with a different outcome. Imports do not change outcomes.`,
  });

/**
 * Decides a question that is named by its source. A decided question stays as it is: the same
 * outcome again counts as `exists`, and a different one is refused, because an import must never
 * create a revision by accident. An open question is closed before it is resolved.
 */
export const importResolution = async (
  deps: Deps & QuestionParts,
  item: ResolutionItem,
  admin: string,
) => {
  const [named] = await findBySource(deps.sql, [item]);
  const row = named === undefined ? undefined : await readQuestion(deps.sql, named.id);
  if (row === undefined) return refuseSource(item);
  const decision = readItem(item, row, deps.clock());
  if (isFault(decision)) return decision;
  const question_id = row.id;
  if (isDecided(row)) {
    return isSame(row, decision) ? { kind: 'exists' as const, question_id } : refuseOther(row);
  }
  // If the question closes on schedule at this very moment, this step does nothing.
  if (row.status === 'open' && decision.kind === 'resolve') {
    const call = { id: question_id, admin, clock: deps.clock };
    await deps.sql.begin((tx) => takeStep(tx, close_step, call));
  }
  let is_there = false;
  const decided = await deps.sql.begin((tx) =>
    decideQuestion(tx, {
      question_id,
      decided_by: admin,
      at: deps.clock(),
      decide(now) {
        if (!isDecided(now)) return decision;
        // It was decided meanwhile: by a second run of this import, or by someone else.
        is_there = isSame(now, decision);
        return refuseOther(now);
      },
    }),
  );
  if (is_there) return { kind: 'exists' as const, question_id };
  if (isFault(decided)) return decided;
  deps.questions.forget(question_id);
  return { kind: 'created' as const, question_id };
};
