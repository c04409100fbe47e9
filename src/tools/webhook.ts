import { type Config, readConfig } from '../config.js';
import type { Sql } from '../db/client.js';
import { recordAct } from '../features/audit/index.js';
import type { Act } from '../features/audit/schema.js';
import {
  createWebhooks,
  findTarget,
  listEveryWebhook,
  readRange,
  sendPing,
  startReplay,
  updateWebhook,
} from '../features/webhooks/index.js';
import { isFault } from '../kit/fault.js';
import { isId } from '../kit/ids.js';
import { caSettings, keySettings, layOver, openDevCa } from '../process/made-settings.js';
import {
  type Call,
  type Outcome,
  readAction,
  runCommand,
  Stopped,
  startCommand,
  writeLine,
  wrongUsage,
} from './command.js';
import { makeAccess, withSource } from './stores.js';

const max_listed = 10_000;

const help = `Usage: prediction-forum webhook list
       prediction-forum webhook test ID
       prediction-forum webhook replay ID --since TIME [--until TIME]
       prediction-forum webhook pause ID
       prediction-forum webhook resume ID

Manages all webhooks in the database of this folder or of DATABASE_URL. The service may be running.

  list     shows each webhook with its owner and the number of waiting deliveries
  test     sends a signed ping now, from this machine
  replay   sends past events again, from the last 7 days; the service must be running
  pause    stops delivery and skips waiting deliveries, as the owner can
  resume   delivers events from now on, and resets the count of failures

Exit code: 0 it is done; 1 it failed (test: the receiver did not answer with 2xx).`;

type Found = Awaited<ReturnType<typeof listEveryWebhook>>[number];

interface Times {
  readonly since: string | undefined;
  readonly until: string | undefined;
}

const list = async (sql: Sql): Promise<Outcome & { readonly said: string }> => {
  const webhooks = await listEveryWebhook(sql, null, max_listed);
  const lines = webhooks.map(({ id, url, owner, owner_id, active, waiting }) =>
    [id, active ? 'active' : 'off', `${waiting} waiting`, owner ?? owner_id, url].join('  '),
  );
  const said = lines.length === 0 ? 'There are no webhooks.' : lines.join('\n');
  return { said, code: 0, result: { webhooks } };
};

const ownerOf = ({ owner_kind: kind, owner_id: id }: Found) => ({ kind, id });

const test = async (sql: Sql, config: Config, hook: Found) => {
  const made = { ...keySettings(config), ...caSettings(await openDevCa(config)) };
  const webhooks = createWebhooks(readConfig(layOver(process.env, made)));
  try {
    const target = await findTarget(sql, ownerOf(hook), hook.id);
    if (target === undefined) throw new Stopped('The webhook was deleted.');
    const result = await sendPing(webhooks, target, new Date());
    return { said: result.message, code: result.delivered ? 0 : 1, result };
  } finally {
    webhooks.close();
  }
};

const change = async (
  sql: Sql,
  action: 'replay' | 'pause' | 'resume',
  hook: Found,
  times: Times,
) => {
  const at = new Date();
  const { since, until } = times;
  if (action === 'replay' && since === undefined) throw wrongUsage('replay needs --since.');
  const body = { ...(since && { since }), ...(until && { until }) };
  const range = action === 'replay' ? await readRange(sql, body, at) : null;
  if (isFault(range)) throw wrongUsage(range.message);
  if (range !== null && !hook.active) throw new Stopped('The webhook is off. Resume it first.');
  const result = await sql.begin(async (tx) => {
    const change = { active: action === 'resume' };
    const row =
      range === null
        ? await updateWebhook(tx, ownerOf(hook), { id: hook.id, change })
        : await startReplay(tx, hook.id, range);
    if (row === undefined) throw new Stopped('A replay of this webhook is still running.');
    const subject = { kind: 'webhook', id: hook.id };
    await recordAct(tx, { admin: 'admin', act: `webhook.${action}` as Act, subject, at });
    return { ...row };
  });
  const events = range === null ? '' : `, events ${range.after + 1} to ${range.until}`;
  return { said: `${hook.id}: ${action}${events}`, code: 0, result };
};

export const runWebhook = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    takes: [1, 2],
    options: { since: { type: 'string' }, until: { type: 'string' } },
    work({ since, until }, [typed = '', id], own) {
      const action = readAction(typed, ['list', 'test', 'replay', 'pause', 'resume']);
      if ((action === 'list') === (id !== undefined)) {
        throw wrongUsage('list takes no id. The other actions need one.');
      }
      const config = readConfig();
      return withSource(config, makeAccess(own, 'webhook'), async (sql) => {
        const [hook] = id !== undefined && isId(id) ? await listEveryWebhook(sql, id, 1) : [];
        if (action !== 'list' && hook === undefined)
          throw new Stopped(`There is no webhook ${id}.`);
        const { said, ...outcome } =
          hook === undefined || action === 'list'
            ? await list(sql)
            : action === 'test'
              ? await test(sql, config, hook)
              : await change(sql, action, hook, { since, until });
        writeLine(own.screen, said);
        return outcome;
      });
    },
  });

await startCommand(import.meta.filename, runWebhook);
