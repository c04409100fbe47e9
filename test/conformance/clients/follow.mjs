import { createClient } from '../../../dist/clients/typescript/src/node.js';

/** Runs the TypeScript client for the conformance suite. Arguments: URL AFTER UNTIL. */

const [base_url, after, until] = process.argv.slice(2);
const client = createClient({ base_url });
const stream = client.stream({ topics: ['all'], after: Number(after), backfill: true });
for await (const { offset, id } of stream) {
  if (!process.stdout.write(`${offset} ${id}\n`)) {
    await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
  if (offset >= Number(until)) break;
}
