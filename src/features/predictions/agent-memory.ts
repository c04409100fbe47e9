import { makeLoader } from '../../kit/cache.js';
import { hashText } from '../../kit/hash.js';
import type { Db, Sql } from '../../kit/pg/client.js';
import { readCitation } from './citations.js';
import { type AgentRow, readAgents } from './gate-store.js';
import type { Finding } from './question-memory.js';

/** Where the number stands in a list that is sorted, or would stand. */
const placeOf = (sorted: readonly number[], value: number): number => {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
};

/**
 * What an agent cited so far, on all questions, in the memory of an api process. It is what its
 * first `count` predictions cite, and the group commit accepts a draft only while the account
 * counts as many. Agents that are asked for at the same time are read together.
 */
export class AgentMemory {
  constructor(
    readonly agent_id: string,
    public count = 0,
    /** Hashes, sorted: a list of numbers takes a quarter of what a set of them does. */
    public cited: number[] = [],
  ) {}

  /** `also`: what else it will have cited by then. */
  check(sources: readonly number[], also: readonly number[] = []): Finding | null {
    if (sources.length === 0) return null;
    for (const source of sources) {
      const is_cited = this.cited[placeOf(this.cited, source)] === source;
      if (!is_cited && !also.includes(source)) return null;
    }
    return { kind: 'reused', by: 'self', unsure: false };
  }

  /** One more prediction of the agent is stored. */
  stored(sources: readonly number[]): void {
    this.count += 1;
    for (const source of sources) {
      const at = placeOf(this.cited, source);
      if (this.cited[at] !== source) this.cited.splice(at, 0, source);
    }
  }

  take({ prediction_count, cited }: AgentRow): void {
    this.count = prediction_count;
    const urls = cited === '' ? [] : cited.split('\n');
    const hashes = Float64Array.from(urls, (url) => hashText(readCitation(url).key)).sort();
    this.cited = [];
    for (const hash of hashes) if (hash !== this.cited.at(-1)) this.cited.push(hash);
  }
}

const most_a_read = 200;
/** Agents kept; each some 200 bytes and 12 a citation. */
const most_kept = 30_000;
const most_cited = 500_000;

export interface AgentMemories {
  get(agent_id: string): AgentMemory | Promise<AgentMemory>;
  /** Reads them again. */
  sync(db: Db, agents: readonly AgentMemory[]): Promise<void>;
}

const readInto = async (db: Db, agents: readonly AgentMemory[]): Promise<void> => {
  const rows = await readAgents(
    db,
    agents.map(({ agent_id }) => agent_id),
  );
  const by_id = new Map(rows.map((row) => [row.agent_id, row]));
  for (const agent of agents) {
    const row = by_id.get(agent.agent_id);
    if (row !== undefined) agent.take(row);
  }
};

export const createAgentMemories = (sql: Sql): AgentMemories => {
  // In the order of use, by two generations: what was not asked for during one is forgotten.
  let young = new Map<string, AgentMemory>();
  let old = new Map<string, AgentMemory>();
  let cited = 0;
  const keep = (memory: AgentMemory): void => {
    if (young.size >= most_kept / 2 || cited >= most_cited / 2) {
      old = young;
      young = new Map();
      cited = 0;
    }
    young.set(memory.agent_id, memory);
    cited += memory.cited.length + 2;
  };

  const readAll = async (agent_ids: readonly string[]): Promise<readonly AgentMemory[]> => {
    const agents = agent_ids.map((agent_id) => new AgentMemory(agent_id));
    await readInto(sql, agents);
    for (const agent of agents) keep(agent);
    return agents;
  };
  const read = makeLoader(readAll, { most: most_a_read });

  return {
    get(agent_id) {
      const known = young.get(agent_id);
      if (known !== undefined) return known;
      const aging = old.get(agent_id);
      if (aging !== undefined) {
        keep(aging);
        return aging;
      }
      return read(agent_id);
    },
    sync: readInto,
  };
};
