import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { type Config, readConfig } from '../config.js';
import { addVerifiedPerson, adminAddresses, findPerson } from '../features/accounts/index.js';
import { recordAct } from '../features/audit/index.js';
import { makeSecret, writeWhole } from '../process/embedded/data-dir.js';
import { type Call, readAction, runCommand, Stopped, startCommand, wrongUsage } from './command.js';
import { makeAccess, withSource } from './stores.js';

const help = `Usage: prediction-forum admin list
       prediction-forum admin add EMAIL [--name NAME]
       prediction-forum admin new-key

Admins are the holder of the admin key and the people whose verified address is in ADMIN_EMAILS.

  list      shows where the admin key is, and each address of ADMIN_EMAILS
  add       adds a person with a verified address and shows the password once; if the person has
            signed up, only verifies the address. Admins also need the address in ADMIN_EMAILS
  new-key   writes a new admin key into DATA_DIR, which the service uses from its next start

Exit code: 0 it is done; 1 it failed (new-key: ADMIN_KEY is set, so the key is not in DATA_DIR).`;

const keyPlace = ({ ADMIN_KEY, DATA_DIR }: Config): string =>
  ADMIN_KEY === undefined ? path.join(DATA_DIR, 'admin-key') : 'ADMIN_KEY';

const newKey = (config: Config) => {
  if (config.ADMIN_KEY !== undefined) {
    throw new Stopped('ADMIN_KEY is set. Change it where it is set, and restart the service.');
  }
  const file = keyPlace(config);
  writeWhole(file, `${makeSecret()}\n`);
  return { said: `${file} has a new key. Restart the service to use it.`, result: { file } };
};

const list = async (call: Call, config: Config) => {
  const admin_key = keyPlace(config);
  const people = await withSource(config, makeAccess(call, 'admin'), (sql) =>
    Promise.all(
      adminAddresses(config.ADMIN_EMAILS).map(async (email) => {
        const found = await findPerson(sql, email);
        if (found === undefined) return { email, state: 'has not signed up' };
        return { email, state: found.email_verified_at === null ? 'not verified' : 'admin' };
      }),
    ),
  );
  const lines =
    people.length === 0
      ? ['ADMIN_EMAILS is not set in this shell.']
      : people.map(({ email, state }) => `${email}: ${state}`);
  return { said: [`admin key: ${admin_key}`, ...lines].join('\n'), result: { admin_key, people } };
};

const add = (call: Call, config: Config, email: string, name: string | undefined) =>
  withSource(config, makeAccess(call, 'admin'), async (sql) => {
    const password = randomBytes(15).toString('base64url');
    const at = new Date();
    const added = await sql.begin(async (tx) => {
      const person = await addVerifiedPerson(tx, { email, name, password, at });
      if (!person.was_verified) {
        const subject = { kind: 'person', id: person.id };
        await recordAct(tx, { admin: 'admin', act: 'person.verify', subject, at });
      }
      return person;
    });
    const { id, is_new, email_key } = added;
    const is_admin = adminAddresses(config.ADMIN_EMAILS).includes(email_key);
    const said = [
      `${added.email}: ${is_new ? `added; the password is ${password}` : 'now verified'}`,
      is_admin
        ? 'Is an admin, because ADMIN_EMAILS lists the address.'
        : 'Not an admin yet. Add the address to ADMIN_EMAILS.',
    ].join('\n');
    const result = { id, email: added.email, is_new, is_admin, ...(is_new ? { password } : {}) };
    return { said, result };
  });

export const runAdmin = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    takes: [1, 2],
    options: { name: { type: 'string' } },
    async work({ name }, [typed = '', email], own) {
      const action = readAction(typed, ['list', 'add', 'new-key']);
      const config = readConfig();
      if ((action === 'add') !== (email !== undefined)) {
        throw wrongUsage('add needs an e-mail address. The other actions take no argument.');
      }
      const { said, result } =
        action === 'list'
          ? await list(own, config)
          : action === 'add'
            ? await add(own, config, email ?? '', name)
            : newKey(config);
      own.screen.write(`${said}\n`);
      return { code: 0, result };
    },
  });

await startCommand(import.meta.filename, runAdmin);
