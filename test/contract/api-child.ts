import { readConfig } from '../../src/config.js';
import { startProcess } from '../../src/process/start.js';

/** An api process whose log output is read from outside. Its settings come from the environment. */

const options = { role: 'api', index: 0, shared_port: false } as const;
const running = await startProcess(readConfig(), options);
process.send?.(running.port);
process.once('message', async () => {
  await running.stop();
  process.disconnect();
});
