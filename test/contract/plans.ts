import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Sql } from '../../src/db/client.js';
import type { PrivateStores } from '../help/stores.js';

/** The plans that Postgres really ran, as its module `auto_explain` writes them to its log. */

/** A part of a plan, with the names that Postgres gives. */
interface Step {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  /** The name of a subquery, where this is its root. */
  readonly 'Subplan Name'?: string;
  readonly Plans?: readonly Step[];
}

export interface Executed {
  /** The role of the process that ran it. */
  readonly role: string;
  /** The statement in one line. */
  readonly text: string;
  readonly plan: Step;
  readonly is_generic: boolean;
}

/** For the sessions of a database that begin from now on; `sql` is of a superuser. */
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

/** `… [pid] prediction-forum api-0 LOG:  … plan:`, and the lines that continue it. */
const entry = /\] prediction-forum (\w+)-\d+ LOG: {2}duration: [\d.]+ ms {2}plan:\n((?:\t.*\n)+)/g;

/** Each statement with each of its plans, once. */
export const readPlans = ({ folder }: Pick<PrivateStores, 'folder'>): readonly Executed[] => {
  const log = readFileSync(path.join(folder, 'log', 'postgres.log'), 'utf8');
  const found = new Map<string, Executed>();
  for (const [, role = '', json = ''] of log.matchAll(entry)) {
    const { 'Query Text': query, Plan: plan, Settings: settings } = JSON.parse(json);
    const text = (query as string).trim().replace(/\s+/g, ' ');
    // Then Postgres makes no other plan, whatever the values are.
    const is_generic = settings?.plan_cache_mode === 'force_generic_plan';
    found.set(`${role} ${json}`, { role, text, plan, is_generic });
  }
  return [...found.values()];
};

/** These take all that comes from below before a limit above them can end it. */
const takes_all = ['Sort', 'Aggregate', 'Hash', 'WindowAgg'];

/**
 * The tables and partitions that a plan reads from one end to the other, also by an index; `indexes`
 * has the table of each index that is not partial.
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
