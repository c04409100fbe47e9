/**
 * `npm run faults [-- [hosts] PATH…]`: the tests of test/fault in their long form. Signers sleep for 45 s,
 * which is longer than a lease, and Redis for a minute; timers are killed and sleep again and
 * again; full disks, a read-only Postgres and lost connections last for 30 s; everything is killed
 * twice under 200 followers of three api processes. After the word `hosts` each service is two hosts
 * behind HAProxy.
 */
process.env['LONG_FAULTS'] = 'true';
if (process.argv[2] === 'hosts') {
  process.argv.splice(2, 1);
  process.env['FAULT_HOSTS'] = '2';
}
if (process.argv.length === 2) process.argv.push('test/fault');
await import('./run.js');

export {};
