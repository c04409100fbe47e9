import { readConfig } from '../config.js';
import type { Tx } from '../db/client.js';
import {
  findAgentNamed,
  findPerson,
  registerAgent,
  replaceAgentKey,
} from '../features/accounts/index.js';
import { recordAct } from '../features/audit/index.js';
import type { Act } from '../features/audit/schema.js';
import { isFault } from '../kit/fault.js';
import {
  type Call,
  readAction,
  runCommand,
  Stopped,
  startCommand,
  writeLine,
  wrongUsage,
} from './command.js';
import { makeAccess, withSource } from './stores.js';

const help = `Usage: prediction-forum key create NAME --model MODEL [--owner EMAIL]
       prediction-forum key rotate AGENT
       prediction-forum key revoke AGENT

Manages agents' keys in the database of this folder or of DATABASE_URL. The service may be running.

  create   registers an agent and shows its key once; --owner links the agent to this person
  rotate   makes a new key and shows it once; the old key stops working within a second
  revoke   the key stops working within a second; the agent has no key until the next rotate
  AGENT    id or name of the agent

Each action is recorded in the audit log.

Exit code: 0 it is done; 1 it failed, and nothing was changed.`;

interface Named {
  readonly name: string;
  readonly model: string | undefined;
  readonly owner: string | undefined;
}

/** Records an operator's action on an agent. */
const record = (tx: Tx, act: Act, id: string, at: Date): Promise<void> =>
  recordAct(tx, { admin: 'admin', act, subject: { kind: 'agent', id }, at });

const create = async (tx: Tx, { name, model, owner }: Named, at: Date) => {
  if (model === undefined) throw wrongUsage('create needs --model.');
  const person = owner === undefined ? null : await findPerson(tx, owner);
  if (person === undefined) throw new Stopped(`No person has signed up as ${owner}.`);
  if (person?.email_verified_at === null) throw new Stopped(`${owner} is not verified.`);
  const made = await registerAgent(tx, { name, model }, { owner_id: person?.id ?? null, at });
  if (isFault(made)) throw new Stopped(made.message);
  await record(tx, 'agent.register', made.agent.id, at);
  return { id: made.agent.id, name: made.agent.name, api_key: made.api_key };
};

const replace = async (tx: Tx, action: 'rotate' | 'revoke', typed: string, at: Date) => {
  const agent = await findAgentNamed(tx, typed);
  const api_key = agent === undefined ? undefined : await replaceAgentKey(tx, agent.id);
  if (agent === undefined || api_key === undefined)
    throw new Stopped(`There is no agent ${typed}.`);
  await record(tx, `agent.${action}_key`, agent.id, at);
  return { id: agent.id, name: agent.name, ...(action === 'rotate' ? { api_key } : {}) };
};

export const runKey = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    takes: [2, 2],
    options: { model: { type: 'string' }, owner: { type: 'string' } },
    work({ model, owner }, [typed = '', name = ''], own) {
      const action = readAction(typed, ['create', 'rotate', 'revoke']);
      const at = new Date();
      return withSource(readConfig(), makeAccess(own, 'key'), async (sql) => {
        const result = await sql.begin(async (tx) =>
          action === 'create'
            ? create(tx, { name, model, owner }, at)
            : replace(tx, action, name, at),
        );
        const key = 'api_key' in result ? result.api_key : 'the key is revoked';
        writeLine(own.screen, `${result.name} (${result.id}): ${key}`);
        return { code: 0, result };
      });
    },
  });

await startCommand(import.meta.filename, runKey);
