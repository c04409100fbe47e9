import { createHmac } from 'node:crypto';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';

/**
 * Webhooks in the conventional way: a BullMQ worker that signs and calls `fetch`, ten tries with a
 * growing wait, 256 at a time. The certificate authority comes from NODE_EXTRA_CA_CERTS.
 */

export interface DeliveryJob {
  readonly url: string;
  readonly secret: string;
  readonly event: string;
  readonly event_id: string;
  readonly delivery_id: string;
  readonly offset: number;
  readonly body: string;
}

export const job_options = {
  attempts: 10,
  backoff: { type: 'exponential', delay: 5_000 },
  removeOnComplete: true,
} as const;

const deliver = async (job: DeliveryJob, attempt: number): Promise<void> => {
  const { secret, event_id, body } = job;
  const timestamp = Math.floor(Date.now() / 1_000);
  const hex = createHmac('sha256', secret).update(body).digest('hex');
  const standard = createHmac('sha256', secret)
    .update(`${event_id}.${timestamp}.${body}`)
    .digest('base64');
  const answer = await fetch(job.url, {
    method: 'POST',
    redirect: 'manual',
    signal: AbortSignal.timeout(10_000),
    headers: {
      'content-type': 'application/json',
      'user-agent': 'conventional-webhooks/1',
      'x-svc-event': job.event,
      'x-svc-signature': `sha256=${hex}`,
      'x-svc-delivery': job.delivery_id,
      'x-svc-attempt': String(attempt),
      'x-svc-offset': String(job.offset),
      'webhook-id': event_id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': `v1,${standard}`,
    },
    body,
  });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
};

const start = async (): Promise<void> => {
  const { REDIS_URL = '', QUEUE = '', CONCURRENCY = '' } = process.env;
  const connection = new Redis(REDIS_URL.replace(/^unix:/, ''), { maxRetriesPerRequest: null });
  const worker = new Worker<DeliveryJob>(
    QUEUE,
    ({ data, attemptsMade }) => deliver(data, attemptsMade + 1),
    { connection, concurrency: Number(CONCURRENCY) },
  );
  await worker.waitUntilReady();
  process.send?.({ port: 0 });
  process.on('disconnect', () => process.exit(0));
};

if (process.env['QUEUE'] !== undefined) await start();
