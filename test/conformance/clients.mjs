import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { startCutter } from './cutter.mjs';
import { readEvents } from './log.mjs';

/**
 * A client under test is a program `COMMAND URL AFTER UNTIL`. It follows the whole log after the
 * offset AFTER, even if its connections are cut. It writes a line `OFFSET ID` for each event, and
 * ends after the offset UNTIL. Each line is compared with the log.
 */

async function* linesOf(command, args, log) {
  const [program, ...first] = command.split(' ');
  const child = spawn(program, [...first, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text) => {
    said = (said + text).slice(-2_000);
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.once('error', (error) => log(String(error)));
  try {
    yield* createInterface({ input: child.stdout });
    const code = await ended;
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${said}`);
  } finally {
    child.kill();
  }
}

/** Resolves with a sentence about the compared events. Throws at the first difference. */
export const checkClient = async ({ url, command, after, until, random, most_bytes, log }) => {
  const cutter = await startCutter(url, { random, most_bytes });
  let compared = after;
  try {
    const lines = linesOf(command, [cutter.url, String(after), String(until)], log);
    const wanted = readEvents(url, { after, until });
    for await (const line of lines) {
      const { value: event } = await wanted.next();
      const due = event === undefined ? 'the end' : `${event.offset} ${event.id}`;
      if (line !== due) throw new Error(`"${line}" where ${due} is due`);
      compared = event.offset;
      if (compared % 100_000 === 0) log(`${compared - after} events, ${cutter.cuts()} cuts`);
    }
    if (compared < until) throw new Error(`it ended after ${compared}, before ${until}`);
    return `${compared - after} events, exactly, through ${cutter.cuts()} cuts`;
  } finally {
    cutter.close();
  }
};
