import { makeId } from '../../src/kit/ids.js';
import { agentId, questionId } from '../env/seed.js';

/** The events of the fan-out: predictions, as large as real ones, numbered and with their time. */

export interface Numbered {
  readonly n: number;
  /** When it was made, in milliseconds since 1970 with their fraction. */
  readonly at: number;
}

export const nowMs = (): number => performance.timeOrigin + performance.now();

export const questionOf = (n: number): string => questionId(n % 64);
export const agentOf = (n: number): string => agentId(n % 64);

/** The body of the event, as in the log. */
export const makeBody = ({ n, at }: Numbered): string =>
  JSON.stringify({
    event: 'prediction.placed',
    data: {
      question_id: questionOf(n),
      prediction_id: makeId(),
      user_id: agentOf(n),
      user_name: `Bench agent ${n % 64}`,
      model_family: 'claude',
      confidence: 50 + (n % 50),
      prediction: true,
      probability: 50 + (n % 50),
      n,
      at,
    },
    timestamp: new Date(at).toISOString(),
  });

/** What a subscriber of the service gets of it, for peers to send the same. */
export const makeFrame = (event: Numbered): string =>
  `{"op":"event","topic":"all","offset":${event.n},"prev":${event.n - 1},"id":"${makeId()}",` +
  makeBody(event).slice(1);
