import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import type { Test } from 'tap';
import { pickPort } from '../../src/process/embedded/processes.js';
import { startSmtp } from '../features/mail/smtp.js';
import { makeCaller } from '../help/app.js';
import { openBrowser, without_chromium } from '../help/browser.js';
import { findProgram } from '../help/debian.js';
import { makeTestFolder, project_root, removeTestFolder } from '../help/own-stores.js';
import { promisedOutput, readDocument, readFenced, readSection, runBash } from '../help/readme.js';
import { endService } from '../help/service.js';
import { makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * Follows the tutorial on this machine with the domain `localhost`: its files, Debian's Caddy with a
 * certificate of its own, a mail server, and people in a browser. Folders of the system are below a
 * test folder. The commands of apt, git and systemd are left out; their blocks are `console`.
 */

const tutorial = readDocument('docs/tutorials/forum-for-friends.md');

const blocks = (heading: string): readonly string[] =>
  readFenced(readSection(tutorial, heading), 'bash');
const block = (heading: string): string => blocks(heading)[0] ?? '';

/** A label as it is in the tutorial. */
const named = (label: string): string => {
  if (!tutorial.includes(`**${label}**`)) throw new Error(`The tutorial does not name ${label}.`);
  return label;
};

const caddy = without_chromium === false ? findProgram('caddy') : null;
const skip =
  without_chromium || (caddy === null && 'caddy is neither installed nor to be had with apt-get');

const startChild = (
  t: Test,
  command: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
) => {
  const [program = '', ...words] = command;
  const child = spawn(program, words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  /** Waits for something that the program does. */
  const untilDone = (what: string, look: () => Promise<unknown>) =>
    until(
      what,
      async () => {
        if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`);
        return look();
      },
      120_000,
      100,
    );
  return { child, untilDone };
};

/** The machine of the reader: its folders, and the shell into which the commands are pasted. */
const makeMachine = (t: Test) => {
  const [data_dir, home] = [makeTestFolder(), makeTestFolder()];
  t.teardown(() => removeTestFolder(home));
  for (const folder of ['systemd/system', 'caddy', 'cron.d']) {
    mkdirSync(path.join(home, 'etc', folder), { recursive: true });
  }
  /** The same text with the folders of this machine. */
  const localise = (text: string): string =>
    text
      .replaceAll('/var/lib/prediction-forum', data_dir)
      .replaceAll('/opt/prediction-forum', project_root)
      .replaceAll(/(?<![\w./])\/etc(?=\/)/g, path.join(home, 'etc'));
  const read = (file: string): string =>
    localise(readFileSync(path.join(home, 'etc', file), 'utf8'));
  const env = {
    ...caddy?.env,
    PATH: `${path.dirname(caddy?.command ?? '')}:${process.env['PATH']}`,
    HOME: home,
    XDG_DATA_HOME: path.join(home, 'share'),
    CURL_CA_BUNDLE: path.join(home, 'share/caddy/pki/authorities/local/root.crt'),
  };
  const sudo = 'sudo() { if [ "$1" = -u ]; then shift 2; fi; "$@"; }\n';
  const run = async (script: string) => {
    const ran = await runBash(sudo + localise(script), env as Record<string, string>, home);
    t.equal(ran.code, 0, ran.errors);
    return ran.lines;
  };
  return { data_dir, home, env, read, run };
};

type Machine = ReturnType<typeof makeMachine>;

/** Starts the service as systemd would from the unit that was put in place. */
const startUnit = async (t: Test, { read, data_dir, env }: Machine, port: number) => {
  const unit = read('systemd/system/prediction-forum.service');
  const readLine = (name: string): string =>
    new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  const file = readLine('EnvironmentFile');
  const script = `set -a; . ${file}; ${readLine('Environment')}; exec ${readLine('ExecStart')}`;
  const { child, untilDone } = startChild(t, ['bash', '-euc', script], {
    cwd: readLine('WorkingDirectory'),
    env: {
      PATH: env.PATH,
      HOME: env.HOME,
      PORT: String(port),
      API_PROCESSES: '1',
      // The supervisor ends with this process.
      npm_lifecycle_event: 'test',
    },
  });
  t.teardown(async () => {
    await endService(child, data_dir);
    removeTestFolder(data_dir);
  });
  await untilDone(
    'the forum',
    async () => (await fetch(`http://127.0.0.1:${port}/health`).catch(() => null))?.ok,
  );
  t.equal((await fetch(`http://127.0.0.1:${port}/dev/outbox`)).status, 404, 'production mode');
};

/** Starts Caddy with the file that was put in place, in a way that needs no rights. */
const startCaddy = async (t: Test, { home, read, env }: Machine, port: number) => {
  const options = '{\nadmin off\nskip_install_trust\nauto_https disable_redirects\n}\n';
  const file = path.join(home, 'Caddyfile.local');
  writeFileSync(
    file,
    options + read('caddy/Caddyfile').replace('127.0.0.1:8080', `127.0.0.1:${port}`),
  );
  const command = [caddy?.command ?? '', 'run', '--adapter', 'caddyfile', '--config', file];
  const { untilDone } = startChild(t, command, { cwd: home, env });
  await untilDone('the certificate', async () => existsSync(env.CURL_CA_BUNDLE));
  return untilDone;
};

const password = 'correct horse battery';

const press = (page: Page, button: string) =>
  page.getByRole('button', { name: named(button), exact: true }).click();
const fillIn = (page: Page, label: string, value: string) =>
  page.getByLabel(named(label), { exact: true }).fill(value);

/** Signs a person up, opens the link of the e-mail, and logs in. */
const becomePerson = async (
  context: BrowserContext,
  smtp: Awaited<ReturnType<typeof startSmtp>>,
  { url, email }: { readonly url: string; readonly email: string },
): Promise<Page> => {
  const page = await context.newPage();
  await page.goto(`${url}/account/signup`);
  await fillIn(page, 'E-mail address', email);
  await fillIn(page, 'Password', password);
  await press(page, 'Sign up');
  await page.getByText('An e-mail is on its way').waitFor();
  const mail = await until('the e-mail', () => smtp.taken.find(({ to }) => to === `<${email}>`));
  const [link = ''] =
    /https:\/\/\S+token=\S+/.exec(mail.text.replaceAll('=\n', '').replaceAll('=3D', '=')) ?? [];
  if (!link.startsWith(`${url}/auth/verify?`)) throw new Error(`a wrong link: ${mail.text}`);
  await page.goto(link);
  await press(page, 'Yes, this is my address');
  await page.waitForURL(/\/account\/login/);
  await fillIn(page, 'E-mail address', email);
  await fillIn(page, 'Password', password);
  await press(page, 'Log in');
  await page.getByText('Your address is verified.').waitFor();
  return page;
};

/** The command of a line in a file of cron, as cron passes it to the shell. */
const commandsIn = (cron: string): readonly string[] =>
  Array.from(cron.matchAll(/^(?:\S+ ){5}forum (.+)$/gm), ([, command = '']) =>
    command.replaceAll('\\%', '%'),
  );

t.test('a forum for friends, from its settings to its backup', { skip }, async (t) => {
  const smtp = await startSmtp(t);
  const [port, https_port] = [await pickPort(), await pickPort()];
  const [domain, email] = [`localhost:${https_port}`, 'ada@example.org'];
  const url = `https://${domain}`;
  const machine = makeMachine(t);
  const { data_dir, read, run } = machine;

  const values = block('## 1. Say who you are')
    .replace('forum.example.org', domain)
    .replace('you@example.org', email)
    .replace(/smtps:[^']+/, smtp.url);
  const follow = (script: string) => run(`${values}\n${script}`);
  await follow(block('## 4. Write the settings'));
  t.match(read('prediction-forum.env'), `MAIL_FROM="Our forum <${email}>"\n`);
  await follow(block('## 5. Start the forum'));
  await startUnit(t, machine, port);
  const [configure = '', check = ''] = blocks('## 6. Put the proxy in front');
  await follow(configure);
  t.match(read('caddy/Caddyfile'), `${domain} {`);
  const untilDone = await startCaddy(t, machine, port);
  await untilDone(
    'the forum behind Caddy',
    async () =>
      (await runBash(`curl -fs ${url}/health`, machine.env as Record<string, string>)).code === 0,
  );
  t.same(await follow(check), promisedOutput(check));

  const browser = await openBrowser(t);
  const enter = () => browser.context({ ignoreHTTPSErrors: true });
  const admin = await becomePerson(await enter(), smtp, { url, email });
  t.equal((await admin.goto(`${url}/admin`))?.status(), 200);
  await admin.goto(`${url}/admin/questions/new`);
  const question = 'Will all friends have come to the summer party before the soup is cold?';
  await fillIn(admin, 'Question', question);
  await fillIn(admin, 'Resolution criteria', 'Resolves Yes if nobody is missing.');
  await admin.getByLabel(named('Category'), { exact: true }).selectOption({ index: 1 });
  await fillIn(admin, 'Closes (UTC)', '2099-07-01T18:00');
  await press(admin, 'Save as a draft');
  await admin.getByText(named('Publish…'), { exact: true }).click();
  await press(admin, 'Publish');
  await admin.getByText('The question is published.').waitFor();

  const friend = await becomePerson(await enter(), smtp, { url, email: 'bob@example.org' });
  t.equal((await friend.goto(`${url}/admin`))?.status(), 404, 'a friend is no admin');
  await friend.goto(`${url}/account/agents`);
  await fillIn(friend, 'Name', 'Soup Watcher');
  await fillIn(friend, 'Model', 'claude-sonnet-4');
  await press(friend, 'Register');
  const key = (await friend.locator('#key').textContent())?.trim() ?? '';
  t.match(key, /^sk_/);

  const call = makeCaller(`http://127.0.0.1:${port}`);
  const { body: open } = await call('GET', '/api/questions?status=open');
  t.match(open.questions, [{ question }]);
  const placed = await call('POST', `/api/questions/${open.questions[0].id}/predict`, {
    key,
    body: { probability: 35, reasoning: makeReasoning() },
  });
  t.equal(placed.status, 201);

  await follow(block('## 10. Back it up every night'));
  const [backUp = '', clean = ''] = commandsIn(read('cron.d/prediction-forum'));
  const backups = path.join(data_dir, 'backups');
  const old = path.join(backups, 'forum-2020-01-01.tar.gz');
  writeFileSync(old, '');
  utimesSync(old, 0, 0);
  await run(`export DATA_DIR=${data_dir}\n${backUp}`);
  await run(clean);
  t.match(readdirSync(backups), [/^forum-\d{4}-\d\d-\d\d\.tar\.gz$/]);
  t.equal(readdirSync(backups).length, 1, 'the old one is removed');
  const manifest = await run(`tar xOzf ${backups}/*.tar.gz manifest.json`);
  t.match(manifest.join(''), 'predictions');
});
