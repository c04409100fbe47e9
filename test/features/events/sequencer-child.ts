import { pino } from 'pino';
import { openSql } from '../../../src/db/client.js';
import { createSealer, createSequencer } from '../../../src/features/events/sequencer.js';

/** The sequencer, or the sealer of a shard, until it is killed. Arguments: `{role, urls}`. */

const { role, urls } = JSON.parse(process.argv[2] ?? '{}') as { role: string; urls: string[] };
const parts = { log: pino({ level: 'silent' }), every_ms: 2 };
const open = (url: string) => openSql({ url, pool: 2, prepare: true, name: role });
const [sql, ...shards] = urls.map(open);
if (sql === undefined) throw new Error('No address was given.');
const service =
  role === 'sequencer' ? createSequencer(sql, shards, parts) : createSealer(sql, parts);
await service.start();
process.send?.('started');
