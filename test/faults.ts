/**
 * `npm run faults [-- hosts|cluster|pgbouncer] [PATH…]`: runs the tests of test/fault in their long
 * form. Signers are paused for 45 s, which is longer than a lease, and Redis for a minute. Timers
 * are killed and paused repeatedly. Full disks, a read-only Postgres and lost connections last for
 * 30 s. Everything is killed twice with 200 followers and three api processes. With `hosts`, each
 * service is two hosts behind HAProxy. With `cluster`, Redis is a cluster. With `pgbouncer`,
 * PgBouncer in transaction mode is in front of Postgres. The command also builds the wheel of the
 * Python client on Debian 13.
 */
process.env['LONG_FAULTS'] = 'true';
const variants: Record<string, [name: string, value: string]> = {
  hosts: ['FAULT_HOSTS', '2'],
  cluster: ['TEST_REDIS', 'cluster'],
  pgbouncer: ['FAULT_PGBOUNCER', 'true'],
};
for (;;) {
  const variant = variants[process.argv[2] ?? ''];
  if (variant === undefined) break;
  process.env[variant[0]] = variant[1];
  process.argv.splice(2, 1);
}
if (process.argv.length === 2) process.argv.push('test/fault', 'test/clients/python-wheel.test.ts');
await import('./run.js');
