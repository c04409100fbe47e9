import type { Db } from '../../db/client.js';
import { newestFirst, readTotal, startsWith } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';

/** Queries for admins: all agents and people, including suspended agents and e-mail addresses. */

export interface AgentsFilter {
  /** Start of the name, normalised like `name_key`. An empty string matches every name. */
  readonly name_start: string;
  readonly suspended?: boolean | undefined;
}

export interface AdminAgentRow {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: string;
  readonly owner_id: string | null;
  readonly owner_email: string | null;
  readonly suspended_at: Date | null;
  readonly created_at: Date;
}

export interface PersonRow {
  readonly id: string;
  readonly email: string;
  readonly name: string | null;
  readonly email_verified_at: Date | null;
  readonly agent_count: number;
  readonly created_at: Date;
}

const agentConditions = (db: Db, { name_start, suspended }: AgentsFilter) => db`
  true
  ${suspended === undefined ? db`` : db`and (a.suspended_at is not null) = ${suspended}`}
  ${name_start === '' ? db`` : db`and ${startsWith(db, 'a.name_key', name_start)}`}`;

export const listAdminAgents = (db: Db, filter: AgentsFilter, page: PageRequest) =>
  db<AdminAgentRow[]>`
    select
      a.id, a.name, a.model, a.model_family, a.owner_id, h.email as owner_email, a.suspended_at,
      a.created_at
    from agents a
    left join humans h on h.id = a.owner_id
    where ${agentConditions(db, filter)}
      ${newestFirst(db, 'a.id', page)}`;

export const countAdminAgents = (db: Db, filter: AgentsFilter) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total from agents a where ${agentConditions(db, filter)}`);

/** Filters people by the start of their e-mail address, normalised like `email_key`. */
const peopleConditions = (db: Db, email_start: string) =>
  email_start === '' ? db`true` : startsWith(db, 'h.email_key', email_start);

export const listPeople = (db: Db, email_start: string, page: PageRequest) =>
  db<PersonRow[]>`
    select
      h.id, h.email, h.name, h.email_verified_at, h.created_at,
      (select count(*)::integer from agents a where a.owner_id = h.id) as agent_count
    from humans h
    where ${peopleConditions(db, email_start)}
      ${newestFirst(db, 'h.id', page)}`;

export const countPeople = (db: Db, email_start: string) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total from humans h where ${peopleConditions(db, email_start)}`);
