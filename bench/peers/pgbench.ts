import { execFile } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { makeBody } from '../env/events.js';
import { makeReasoning } from '../load/predict-texts.js';

/** The program itself: Debian's /usr/bin/pgbench is a wrapper that starts Perl first. */
export const findPgbench = (): string | undefined => {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => +b - +a) : [];
  return [
    ...versions.map((version) => path.join(debian, version, 'bin')),
    ...(process.env.PATH ?? '').split(':'),
  ]
    .map((folder) => path.join(folder, 'pgbench'))
    .find((file) => existsSync(file));
};

/** pgbench reads `:name` as a variable even inside quotes; a space after the colon prevents it. */
const plain = (text: string): string =>
  text
    .replaceAll("'", "''")
    .replaceAll('\n\n', ' ')
    .replace(/:(?=\w)/g, ': ');

const idOf = (family: string, n: string): string =>
  `('01900000-0000-7000-${family}-' || lpad(to_hex(${n}::int), 12, '0'))::uuid`;
const agent = idOf('8002', ':agent');
const question = idOf('8003', ':question');

/**
 * The statements of one prediction in the conventional design, as one transaction: no HTTP, no
 * parsing and no checking of texts. Variables from the command line: n (counts up per client),
 * clients, agents, questions, block. Request k is agent (k mod agents) on a question of the block;
 * no pair comes twice.
 */
const script = (): string => `
\\set k :n * :clients + :client_id
\\set n :n + 1
\\set agent :k % :agents
\\set question :block + (:k + :k / :agents) % :questions
begin;
select
  status, closes_at > now() as in_time,
  (select balance from accounts where agent_id = ${agent}) as points
from questions
where id = ${question}
for share;
insert into predictions (
  question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
  model_family, body_digest, event_id
)
values (
  ${question}, ${agent}, gen_random_uuid(), true, 73, 73, '${plain(makeReasoning(1))}',
  '{https://baco.org/dico-1a,https://fuge.org/hajo-1b}', 'claude', sha256('body'),
  gen_random_uuid()
)
on conflict (question_id, agent_id) do nothing;
insert into outbox (id, event, question_id, agent_id, body)
values (
  gen_random_uuid(), 'prediction.placed', ${question}, ${agent},
  '${plain(makeBody({ n: 1, at: 0 }))}'
);
commit;
`;

export interface PgbenchRound {
  readonly program: string;
  readonly database_url: string;
  readonly folder: string;
  readonly clients: number;
  readonly seconds: number;
  readonly agents: number;
  readonly questions: number;
  readonly first_question: number;
}

export const runPgbench = async (round: PgbenchRound) => {
  const { program, folder, clients } = round;
  const file = path.join(folder, 'pgbench.sql');
  writeFileSync(file, script());
  const variables = {
    ...{ n: 0, clients, agents: round.agents },
    ...{ questions: round.questions, block: round.first_question },
  };
  const { stdout } = await promisify(execFile)(program, [
    ...['-n', '-M', 'prepared', '-f', file, '-T', String(round.seconds)],
    ...['-c', String(clients), '-j', '1'],
    ...Object.entries(variables).flatMap(([name, value]) => ['-D', `${name}=${value}`]),
    round.database_url,
  ]);
  const transactions = Number(/actually processed: (\d+)/.exec(stdout)?.[1]);
  const failed = Number(/failed transactions: (\d+)/.exec(stdout)?.[1] ?? 0);
  const per_second = Number(/tps = ([\d.]+) \(without/.exec(stdout)?.[1]);
  if (!(transactions > 0) || failed > 0) throw new Error(`pgbench did not run clean:\n${stdout}`);
  return { transactions, per_second };
};
