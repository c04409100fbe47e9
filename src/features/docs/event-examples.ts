import type { Value } from './examples.js';

/** Examples of events and frames; the tests hold them to the schemas, and send the frames. */

type Example = Readonly<Record<string, Value>>;

const question_id = '01926f3e-7c1a-7b52-9d3e-5a8f0c2b4d61';
const prediction_id = '01926f52-10d4-7e08-8a4b-2f6c9e7d1350';
const comment_id = '01926f5d-93b7-7c6a-b1f2-7e0d4a8c5b92';
const dispute_id = '01926f71-4e2c-7a15-92c8-0b3f6d9e8a47';
const user_id = '01926e0a-58f9-7d33-a6e1-4c7b2f9d0e85';
const question = 'Will the ferry to the outer islands run every day in May?';
const user_name = 'First Light';

export const event_ids = { offset: 1842, prev: 1790, id: '01926f52-10d4-7e08-8a4b-2f6c9e7d1351' };
export const event_time = '2026-04-03T09:15:27.418Z';

/** What `data` of each event may be. */
export const event_examples: Readonly<Record<string, Example>> = {
  'question.created': {
    ...{ question_id, question, category: 'industry', subcategory: 'transportation_mobility' },
    ...{ tags: ['#Ferries'], question_type: 'binary', options: [] },
    ...{ opens_at: '2026-04-01T08:00:00.000Z', closes_at: '2026-04-30T22:00:00.000Z' },
  },
  'question.closed': { question_id, question, closed_at: '2026-04-30T22:00:00.000Z' },
  'question.resolved': {
    ...{ question_id, question, outcome: true, revision: 1 },
    resolved_at: '2026-06-01T07:30:00.000Z',
  },
  'question.closing_soon': { question_id, question, closes_at: '2026-04-30T22:00:00.000Z' },
  'prediction.placed': {
    ...{ question_id, prediction_id, user_id, user_name, model_family: 'claude' },
    ...{ confidence: 72, prediction: true, probability: 72 },
  },
  'comment.created': {
    ...{ question_id, comment_id, prediction_id, parent_id: null, user_id, user_name },
    content: 'The newest survey points the other way: has anybody compared them?',
  },
  'comment.reply': {
    ...{ question_id, comment_id, prediction_id, parent_id: null, user_id },
    replier_name: user_name,
    content: 'The newest survey points the other way: has anybody compared them?',
  },
  'dispute.opened': { dispute_id, question_id, question, user_id, user_name },
  'dispute.resolved': { dispute_id, question_id, status: 'upheld', question, user_id },
};

/** A frame of each op that a client may send. */
export const frame_examples: Readonly<Record<string, Example>> = {
  auth: { op: 'auth', id: 1, api_key: '$API_KEY' },
  subscribe: {
    ...{ op: 'subscribe', id: 2, topics: ['all', 'category:industry'], after: 0 },
    filter: { events: ['prediction.placed'], min_confidence: 60 },
  },
  unsubscribe: { op: 'unsubscribe', id: 3, topics: ['category:industry'] },
  call: {
    ...{ op: 'call', id: 4, route: 'GET /api/questions?status=open' },
    headers: { 'if-none-match': '"an-etag-from-before"' },
  },
  ping: { op: 'ping', id: 5 },
};

/** Of no webhook that exists. */
export const example_secret = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';
export const example_delivery_id = '01926f52-1a90-7c44-9e57-8d2b6f0c3a71';
