import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { nullable } from '../../http/schemas.js';
import { isFault, refuse } from '../../kit/fault.js';
import type { ConsensusParts } from '../consensus/index.js';
import { crowdWasRight } from '../consensus/reading.js';
import { points_rule } from '../points/rules.js';
import { readQuestion, resolving } from '../questions/index.js';
import { question_faults, question_params } from '../questions/schema.js';
import { readDecision } from './rules.js';
import * as wire from './schema.js';
import { netOfPrediction } from './settling.js';
import { read_at_once, readNext, readTimes } from './settling-store.js';

/** Previews the payments of a decision without paying. Uses the functions that settle decisions. */

const route = routeFor<Deps & ConsensusParts>();

/** Maximum number of predictions that a preview counts, to limit the time of a call. */
const max_counted = 30_000;

const preview_answer = Type.Object({
  predictions: Type.Integer({ description: 'All predictions on the question.' }),
  counted: Type.Integer({
    description: `Predictions behind the figures below, at most ${max_counted}.`,
  }),
  winners: Type.Integer({ description: 'Predictions that would win points.' }),
  losers: Type.Integer({ description: 'Predictions that would lose points.' }),
  sum: Type.Integer({ description: 'Sum of all net amounts, in points.' }),
  highest: nullable(Type.Integer()),
  lowest: nullable(Type.Integer()),
  moved: Type.Integer({ description: 'Predictions whose payment would change.' }),
  crowd_was_right: nullable(Type.Boolean({ description: 'Null if undecided.' })),
});

export const preview = route({
  id: 'previewResolution',
  method: 'POST',
  path: '/api/admin/questions/{id}/resolve/preview',
  summary: 'Preview the payments of a resolution; changes nothing',
  tag: 'resolution',
  auth: 'admin',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  body: wire.resolve_body,
  returns: { 200: preview_answer },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    question_faults.INVALID_TRANSITION,
    wire.resolution_faults.INVALID_OUTCOME,
  ],
  async handle({ params: { id }, body }, { sql, consensus, clock }) {
    const [question, times] = await Promise.all([readQuestion(sql, id), readTimes(sql, id)]);
    if (question === undefined || times === undefined) {
      return refuse(question_faults.QUESTION_NOT_FOUND);
    }
    const { status } = question;
    if (!resolving.from.includes(status)) {
      const message = `${resolving.rule}. This one is ${status}.`;
      return refuse(question_faults.INVALID_TRANSITION, { message });
    }
    const decision = readDecision(body, question, clock());
    if (isFault(decision)) return decision;
    const decided = { ...question, ...times, ...decision, points_rule };
    const nets: number[] = [];
    let moved = 0;
    let cursor_agent: string | null = null;
    for (let is_more = true; is_more && nets.length < max_counted; ) {
      const read: Awaited<ReturnType<typeof readNext>> = await readNext(sql, {
        question_id: id,
        cursor_agent,
      });
      for (const prediction of read) {
        const net = netOfPrediction(decided, prediction);
        nets.push(net);
        if (net !== (prediction.paid_net ?? 0)) moved += 1;
      }
      cursor_agent = read.at(-1)?.agent_id ?? null;
      is_more = read.length === read_at_once;
    }
    const extreme = (pick: (a: number, b: number) => number): number | null =>
      nets.length === 0 ? null : nets.reduce((a, b) => pick(a, b));
    const as_resolved = { ...question, ...decision, status: 'resolved' as const };
    return reply(200, {
      // The counter follows the log, so it can be a moment behind.
      predictions: Math.max(question.prediction_count, nets.length),
      counted: nets.length,
      winners: nets.filter((net) => net > 0).length,
      losers: nets.filter((net) => net < 0).length,
      sum: nets.reduce((sum, net) => sum + net, 0),
      highest: extreme(Math.max),
      lowest: extreme(Math.min),
      moved,
      crowd_was_right: crowdWasRight(as_resolved, await consensus.read(question)),
    });
  },
});
