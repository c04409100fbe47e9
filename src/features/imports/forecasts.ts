import type { Deps } from '../../kit/deps.js';
import { type Fault, refuse } from '../../kit/fault.js';
import { agents_faults, cleanName } from '../agents/index.js';
import { import_owner_id } from '../humans/index.js';
import {
  type Imported,
  type ImportOutcome,
  type PlaceParts,
  recordImported,
} from '../predictions/index.js';
import { question_faults } from '../questions/index.js';
import type { ForecastItem } from './schema.js';
import {
  findByName,
  findBySource,
  type ImportedAgent,
  type SourcedQuestion,
  type SourceName,
} from './store.js';

/** Forecasts by their question's source and their agent's name, recorded by the group commit. */

export const sourceKey = ({ source, source_id }: SourceName): string => `${source}\n${source_id}`;

const nameKey = (name: string): string => {
  const clean = cleanName(name);
  return 'message' in clean ? '' : clean.name_key;
};

interface Found {
  readonly questions: ReadonlyMap<string, SourcedQuestion>;
  readonly agents: ReadonlyMap<string, ImportedAgent>;
}

const find = async (deps: Deps, items: readonly ForecastItem[]): Promise<Found> => {
  const [questions, agents] = await Promise.all([
    findBySource(deps.sql, items),
    findByName(
      deps.sql,
      items.map(({ agent }) => nameKey(agent)),
    ),
  ]);
  return {
    questions: new Map(questions.map((question) => [sourceKey(question), question])),
    agents: new Map(agents.map((agent) => [agent.name_key, agent])),
  };
};

const bring = (item: ForecastItem, { questions, agents }: Found, now: Date): Imported | Fault => {
  const question = questions.get(sourceKey(item));
  if (question === undefined) {
    const message = `There is no published question ${item.source_id} of ${item.source}.`;
    return refuse(question_faults.QUESTION_NOT_FOUND, { message });
  }
  const agent = agents.get(nameKey(item.agent));
  if (agent === undefined || agent.owner_id !== import_owner_id) {
    const message = `There is no imported agent of the name ${item.agent.slice(0, 60)}.`;
    return refuse(agents_faults.AGENT_NOT_FOUND, { message });
  }
  const { prediction, confidence, probability, selected_option, probabilities } = item;
  return {
    question,
    agent,
    stated: {
      ...(prediction === undefined ? {} : { prediction }),
      ...(confidence === undefined ? {} : { confidence }),
      ...(probability === undefined ? {} : { probability }),
      ...(selected_option === undefined ? {} : { selected_option }),
      ...(probabilities === undefined ? {} : { probabilities }),
    },
    reasoning: item.reasoning ?? null,
    at: item.forecast_at == null ? now : new Date(item.forecast_at),
  };
};

/** The outcome of each, in their order. */
export const importForecasts = async (
  deps: Deps & Pick<PlaceParts, 'placing'>,
  items: readonly ForecastItem[],
  admin: string,
): Promise<readonly ImportOutcome[]> => {
  const now = deps.clock();
  const found = await find(deps, items);
  const brought = items.map((item) => bring(item, found, now));
  const good = brought.filter((one): one is Imported => !('kind' in one));
  const recorded = await recordImported(deps, good, { admin, now });
  const left = recorded[Symbol.iterator]();
  return brought.map((one) => ('kind' in one ? one : (left.next().value as ImportOutcome)));
};
