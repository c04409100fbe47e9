/**
 * `npm run faults [-- hosts|cluster|pgbouncer] [PATH…]`: the tests of test/fault in their long
 * form. Signers sleep for 45 s, which is longer than a lease, and Redis for a minute; timers are killed and sleep
 * again and again; full disks, a read-only Postgres and lost connections last for 30 s; everything
 * is killed twice under 200 followers of three api processes. After `hosts` each service is two
 * hosts behind HAProxy; after `cluster` Redis is a cluster; after `pgbouncer` PgBouncer in
 * transaction mode is before Postgres. The wheel of the Python client is built on Debian 13, too.
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
