import { setTimeout as delay } from 'node:timers/promises';
import type { Sample } from '../frame/types.js';
import { predictRequest } from '../load/predict-requests.js';

/**
 * How late a consensus is: from the moment the answer 201 to a prediction has come to the moment an
 * answer has come that counts it. Every prober has a question of its own, predicts and asks again
 * and again, a millisecond apart.
 */
export interface Probing {
  readonly port: number;
  readonly keys: readonly string[];
  /** One for each prober. */
  readonly question_ids: readonly string[];
  /** The first agent and text of this round. */
  readonly first: number;
  readonly seconds: number;
}

const probe = async (
  { port, keys, question_ids, first, seconds }: Probing,
  n: number,
  found: number[],
): Promise<void> => {
  const base = `http://127.0.0.1:${port}`;
  const question_id = question_ids[n] as string;
  const end_ms = performance.now() + seconds * 1_000;
  for (let count = 1; performance.now() < end_ms; count += 1) {
    const k = first + n + count * question_ids.length;
    const { path, body } = predictRequest(question_id, k, k);
    const placed = await fetch(base + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': keys[k % keys.length] as string },
      body: JSON.stringify(body),
    });
    const text = await placed.text();
    if (placed.status !== 201) throw new Error(`A probe was answered ${placed.status}: ${text}`);
    const at_ms = performance.now();
    for (;;) {
      const answer = await fetch(`${base}/api/questions/${question_id}/consensus`);
      const consensus = (await answer.json()) as { readonly total_predictions: number };
      if (consensus.total_predictions >= count) break;
      if (performance.now() - at_ms > 10_000) throw new Error('A prediction is not counted.');
      await delay(1);
    }
    found.push(performance.now() - at_ms);
  }
};

export const probeStaleness = async (probing: Probing): Promise<Sample> => {
  const found: number[] = [];
  await Promise.all(probing.question_ids.map((_, n) => probe(probing, n, found)));
  found.sort((a, b) => a - b);
  const at = (q: number): number =>
    found[Math.min(found.length - 1, Math.floor(q * found.length))] ?? 0;
  return {
    probes: found.length,
    stale_p50_ms: at(0.5),
    stale_p99_ms: at(0.99),
    stale_max_ms: at(1),
  };
};
