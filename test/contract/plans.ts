import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Sql } from '../../src/db/client.js';
import type { PrivateStores } from '../help/stores.js';

/** The plans that Postgres really executed, as its module `auto_explain` logs them. */

/** A node of a plan, with the member names of Postgres. */
interface Step {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  /** The name of the subquery if this node is its root. */
  readonly 'Subplan Name'?: string;
  readonly Plans?: readonly Step[];
}

export interface Executed {
  /** The role of the process that ran the statement. */
  readonly role: string;
  /** The statement in one line. */
  readonly text: string;
  readonly plan: Step;
  readonly is_generic: boolean;
}

/** Logs the plans of sessions that start from now on. `sql` must connect as a superuser. */
export const logPlans = async (sql: Sql): Promise<void> => {
  const settings = {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_format': 'json',
    'auto_explain.log_settings': 'on',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_parameter_max_length': '0',
  };
  await sql.unsafe(`load 'auto_explain'`);
  for (const [name, value] of Object.entries(settings)) {
    await sql.unsafe(`alter database forum set ${name} = '${value}'`);
  }
};

/** `… [pid] prediction-forum api-0 LOG:  … plan:`, and its continuation lines. */
const entry = /\] prediction-forum (\w+)-\d+ LOG: {2}duration: [\d.]+ ms {2}plan:\n((?:\t.*\n)+)/g;

/** The logged statements with their plans, without repeats. */
export const readPlans = ({ folder }: Pick<PrivateStores, 'folder'>): readonly Executed[] => {
  const log = readFileSync(path.join(folder, 'log', 'postgres.log'), 'utf8');
  const found = new Map<string, Executed>();
  for (const [, role = '', json = ''] of log.matchAll(entry)) {
    const { 'Query Text': query, Plan: plan, Settings: settings } = JSON.parse(json);
    const text = (query as string).trim().replace(/\s+/g, ' ');
    // With this setting Postgres uses the same plan for all values.
    const is_generic = settings?.plan_cache_mode === 'force_generic_plan';
    found.set(`${role} ${json}`, { role, text, plan, is_generic });
  }
  return [...found.values()];
};

/** Nodes that read all their input, even if a limit above them stops early. */
const takes_all = ['Sort', 'Aggregate', 'Hash', 'WindowAgg'];

/**
 * The tables and partitions that a plan reads completely, even through an index. `indexes` contains
 * the table of each index that is not partial.
 */
export const scannedBy = (
  step: Step,
  indexes: ReadonlyMap<string, string>,
  is_limited = false,
): readonly string[] => {
  const { 'Node Type': type, 'Index Name': index = '', 'Relation Name': table = '' } = step;
  const by_index = step['Index Cond'] === undefined && !is_limited ? indexes.get(index) : undefined;
  const scanned = type === 'Seq Scan' ? table : by_index;
  const below = (step.Plans ?? []).flatMap((one) => {
    const is_apart = one['Subplan Name'] !== undefined || takes_all.includes(type);
    return scannedBy(one, indexes, type === 'Limit' || (is_limited && !is_apart));
  });
  return scanned === undefined ? below : [scanned, ...below];
};
