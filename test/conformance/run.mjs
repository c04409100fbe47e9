#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { checks, Skipped } from './checks.mjs';
import { checkClient } from './clients.mjs';
import { makeRandom } from './cutter.mjs';
import { findLast, readAll, readState } from './log.mjs';

const help = `Usage: prediction-forum-conformance URL [options]

Checks that the event stream of a service keeps its promises; it only reads.

  --events N         how many of the newest events are compared (default 5000, at most 9000)
  --only TEXT        the checks whose names hold it
  --seed N           of the places where connections are cut (default: a new one, which is shown)
  --client COMMAND   checks a client instead: COMMAND URL AFTER UNTIL follows the log and writes
                     "OFFSET ID" for each event on a line; may be given several times
  --after N, --until N
                     what a client is to follow (default: the newest --events); at N is a public event
  --cut-bytes N      a connection of a client is cut after so many bytes at most (default 1000000)

Exit code: 0 all promises are kept; 1 one is broken; 2 wrong arguments.`;

const fail = (text) => {
  console.error(`${text}\n\n${help}`);
  process.exit(2);
};

const readArguments = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        only: { type: 'string', default: '' },
        events: { type: 'string', default: '5000' },
        seed: { type: 'string', default: String(Date.now() % 1_000_000) },
        client: { type: 'string', multiple: true, default: [] },
        after: { type: 'string' },
        until: { type: 'string' },
        'cut-bytes': { type: 'string', default: '1000000' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    return fail(error.message);
  }
};

const { values, positionals } = readArguments();
const [given = ''] = positionals;
if (values.help) {
  console.log(help);
  process.exit(0);
}
if (!URL.canParse(given) || positionals.length > 1) fail('Give the address of one service.');
const url = given.replace(/\/$/, '');
const [most, seed, cut_bytes] = [values.events, values.seed, values['cut-bytes']].map(Number);
if (![most, seed, cut_bytes].every((n) => Number.isSafeInteger(n) && n > 0)) {
  fail('--events, --seed and --cut-bytes take a number above 0.');
}
const random = makeRandom(seed);

let failures = 0;
const report = async (name, run) => {
  try {
    const seen = await run();
    if (seen instanceof Skipped) console.log(`skipped  ${name}: ${seen.why}`);
    else console.log(`ok       ${name}: ${seen}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED   ${name}: ${error.cause?.message ?? error.message}`);
  }
};

console.log(`${url}, seed ${seed}`);
const { head, oldest } = await readState(url).catch((error) =>
  fail(`${url} is no prediction-forum: ${error.cause?.message ?? error.message}`),
);
const until = Number(values.until ?? (await findLast(url, { after: oldest - 1, until: head })));
const after = Number(values.after ?? Math.max(oldest - 1, until - most));
if (values.client.length > 0) {
  await Promise.all(
    values.client.map((command) => {
      const log = (line) => console.log(`         ${command}: ${line}`);
      return report(command, () =>
        checkClient({ url, command, after, until, random, most_bytes: cut_bytes, log }),
      );
    }),
  );
} else {
  const from = Math.max(oldest - 1, until - Math.min(most, 9_000));
  if (until === from) fail('The log has no event yet.');
  const events = await readAll(url, { after: from, until });
  const service = { url, random, events, after: from, until, head, oldest };
  const wanted = Object.entries(checks).filter(([name]) => name.includes(values.only));
  if (wanted.length === 0) fail(`No check has "${values.only}" in its name.`);
  for (const [name, check] of wanted) await report(name, () => check(service));
}
console.log(failures === 0 ? 'All promises are kept.' : `${failures} broken.`);
process.exit(failures === 0 ? 0 : 1);
