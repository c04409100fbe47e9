import { backoff, pause } from './calls.js';
import { isPassing, StreamGap } from './errors.js';
import type { Call, ConsumeOptions, Delivery } from './types.js';

/** A member of a durable consumer. It takes events over HTTP and retries during outages. */

const wait_s = 25;

export async function* consume(
  call: Call,
  { consumer, member, limit = 10, signal, onGap }: ConsumeOptions,
): AsyncGenerator<Delivery, undefined, undefined> {
  const params = { name: consumer };
  /** Events of the last take that are neither acknowledged nor released. */
  const held = new Set<number>();
  /** The event that the caller's loop is handling. */
  let at_hand: number | undefined;
  const take = async () => {
    const body = { member, limit, wait: wait_s };
    const options = { timeout_ms: (wait_s + 10) * 1_000, ...(signal && { signal }) };
    for (let tries = 0; ; tries += 1) {
      try {
        return await call('takeEvents', { params, body, ...options });
      } catch (error) {
        if (!isPassing(error)) throw error;
        await pause(backoff(tries, 500, 10_000), signal);
      }
    }
  };
  const ack = async (offset: number): Promise<boolean> => {
    const body = { member, offsets: [offset] };
    const { acknowledged } = await call('acknowledgeEvents', { params, body });
    held.delete(offset);
    return acknowledged.length > 0;
  };
  const release = async (
    offsets: readonly number[],
    how: { readonly delay_seconds?: number; readonly tried?: boolean } = {},
  ): Promise<void> => {
    const body = { member, offsets, ...how };
    const { released } = await call('releaseEvents', { params, body });
    for (const offset of [...offsets, ...released]) held.delete(offset);
  };
  const extend = async (offset: number, seconds?: number): Promise<boolean> => {
    const body = { member, offsets: [offset], ...(seconds === undefined ? {} : { seconds }) };
    return (await call('extendEvents', { params, body })).extended.length > 0;
  };
  /**
   * Releases the remaining events. Only the current event counts as tried, because the loop did not
   * reach the later ones.
   */
  const giveBack = async (): Promise<void> => {
    if (at_hand !== undefined && held.has(at_hand)) await release([at_hand]);
    if (held.size > 0) await release([...held], { tried: false });
  };
  try {
    while (!signal?.aborted) {
      held.clear();
      const { events, gap } = await take();
      for (const { offset } of events) held.add(offset);
      if (gap !== null) {
        const lost = { topic: `consumer:${consumer}`, ...gap };
        if (onGap === undefined) throw new StreamGap(lost);
        onGap(lost);
      }
      for (const event of events) {
        const { offset } = event;
        if (signal?.aborted) break;
        // If the caller released an event, the later events of its question were released too.
        if (!held.has(offset)) continue;
        const acts = {
          ack: () => ack(offset),
          release: (delay_seconds?: number) =>
            release([offset], delay_seconds === undefined ? {} : { delay_seconds }),
          extend: (seconds?: number) => extend(offset, seconds),
        };
        at_hand = offset;
        yield { ...event, ...acts } as unknown as Delivery;
      }
    }
  } catch (error) {
    if (!signal?.aborted) throw error;
  } finally {
    // If releasing fails, the leases expire later.
    await giveBack().catch(() => undefined);
  }
}
