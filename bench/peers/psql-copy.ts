import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';

/** `psql \copy (…) to … csv`: how fast Postgres itself hands the same rows and columns out. */

export const findPsql = (): string | undefined =>
  (process.env.PATH ?? '')
    .split(':')
    .map((folder) => path.join(folder, 'psql'))
    .find((file) => existsSync(file));

export const psql_missing = 'psql is not installed (Debian: apt install postgresql-client).';

const query = `
  select
    p.id, p.question_id, q.question, q.category, q.subcategory, q.question_type, q.options,
    case when r.kind = 'void' then 'voided' when r.kind = 'resolve' then 'resolved'
      when q.closed_at <= now() then 'closed' else 'open' end,
    r.revision, r.outcome, r.correct_options, r.created_at, p.agent_id, null, null, g.model,
    p.model_family, p.prediction, p.probability, p.confidence,
    q.options[p.selected_option + 1], p.probabilities, p.created_at,
    p.hidden_at is not null, p.citations, p.resolution_protocol, p.prior_probability,
    p.prior_basis, p.reasoning
  from predictions p
  join questions q on q.id = p.question_id
  join agents g on g.id = p.agent_id
  left join lateral (
    select d.revision, d.kind, d.outcome, d.correct_options, d.created_at
    from resolutions d
    where d.question_id = p.question_id
    order by d.revision desc
    limit 1
  ) r on true
  order by p.id`.replaceAll(/\s+/g, ' ');

/** The form of libpq for an address that postgres.js also reads; without its password. */
const serverOf = (url: string): { readonly args: readonly string[]; readonly password: string } => {
  const read = new URL(url);
  const host = read.searchParams.get('host') ?? read.hostname;
  const name = read.pathname.slice(1);
  return {
    args: ['-h', host, '-p', read.port, '-U', read.username, '-d', name],
    password: decodeURIComponent(read.password),
  };
};

/** Rows that psql reports to have copied. */
export const copyRows = (program: string, database_url: string): Promise<number> => {
  const { args, password } = serverOf(database_url);
  const child = spawn(program, [...args, '-X', '-c', `\\copy (${query}) to '/dev/null' csv`], {
    env: { PGPASSWORD: password, PGOPTIONS: '-c statement_timeout=0' },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (piece: Buffer) => {
      said += piece;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => {
      const rows = /^COPY (\d+)/m.exec(said)?.[1];
      if (rows === undefined) reject(new Error(`psql: ${said}`));
      else resolve(Number(rows));
    });
  });
};
