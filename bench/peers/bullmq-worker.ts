import { createHmac } from 'node:crypto';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { serve } from '../env/child.js';

/**
 * Conventional webhooks: a BullMQ worker that signs and calls `fetch`, ten tries with exponential
 * backoff, 256 in parallel. The certificate authority comes from NODE_EXTRA_CA_CERTS.
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

const sign = (secret: string, text: string) => createHmac('sha256', secret).update(text);

const deliver = async (job: DeliveryJob, attempt: number): Promise<void> => {
  const { url, secret, event_id, body } = job;
  const timestamp = Math.floor(Date.now() / 1_000);
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    signal: AbortSignal.timeout(10_000),
    headers: {
      'content-type': 'application/json',
      'user-agent': 'conventional-webhooks/1',
      'x-svc-event': job.event,
      'x-svc-signature': `sha256=${sign(secret, body).digest('hex')}`,
      'x-svc-delivery': job.delivery_id,
      'x-svc-attempt': String(attempt),
      'x-svc-offset': String(job.offset),
      'webhook-id': event_id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': `v1,${sign(secret, `${event_id}.${timestamp}.${body}`).digest('base64')}`,
    },
    body,
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`answered ${response.status}`);
};

const handlers = {
  async listen(): Promise<number> {
    const { REDIS_URL = '' } = process.env;
    const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
    const worker = new Worker<DeliveryJob>(
      'deliveries',
      ({ data, attemptsMade }) => deliver(data, attemptsMade + 1),
      { connection, concurrency: 256 },
    );
    await worker.waitUntilReady();
    return 0;
  },
};
serve(handlers);
