import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { type Fault, refuse } from '../fault.js';
import {
  type Check,
  compileCheck,
  findJsonProblem,
  readJson,
  sayFirst,
} from '../http/validation.js';
import type { Core } from './core.js';
import { type FrameId, frame_id, ws_faults } from './frames.js';
import type { Session } from './session.js';

/**
 * What clients may say: a registry of ops. Those of every socket stand in `inbound.ts`; a feature
 * adds its own through `ops` of the hub's options.
 *
 *   const ops = {
 *     shout: defineOp({
 *       schema: Type.Object({ id: frame_id, text: Type.String() }),
 *       take: (core, session, { id, text }) => makeFrame('shouted', id, { text }),
 *     }),
 *   };
 *
 * A frame is parsed, counted against the frame limit and checked before `take` gets it; frames
 * that come while a credential is looked up arrive after it. `take` must not throw and must not
 * wait. It returns the text of the answer, or a fault, which becomes an error frame with the id of
 * the frame, or '' when the answer comes later: by `sendText(core, session, text)`, which does
 * nothing once the socket is gone. `session.caller` says who asks at that moment, `session.address`
 * from where. What an op keeps for each socket goes into a `WeakMap` under the session.
 */
export interface Op<F = unknown> {
  readonly schema: TSchema;
  /** Largest frame of this op; without it, that of all others. At most `payload_bytes`. */
  readonly most_bytes?: number;
  /** What it carries is somebody else's: only the syntax of the frame has been looked at. */
  readonly is_envelope?: boolean;
  /** False: it has a limit of its own, and is not counted against that of frames. */
  readonly is_counted?: boolean;
  /** `text` is that of the whole frame. */
  readonly take: (core: Core, session: Session, frame: F, text: string) => string | Fault;
}

export type Ops = Readonly<Record<string, Op>>;

/** Gives `take` the type of the schema. */
export const defineOp = <S extends TSchema>(op: {
  readonly schema: S;
  readonly most_bytes?: number;
  readonly is_envelope?: boolean;
  readonly is_counted?: boolean;
  readonly take: (core: Core, session: Session, frame: Static<S>, text: string) => string | Fault;
}): Op => op as unknown as Op;

export interface Frame {
  readonly op: Op;
  readonly id: FrameId;
  readonly value: unknown;
  readonly text: string;
}

export type ReadFrame =
  | { readonly kind: 'frame'; readonly frame: Frame }
  /** Well-formed, but refused: the socket stays open. */
  | { readonly kind: 'refused'; readonly id: FrameId; readonly fault: Fault }
  /** Not a frame at all: the sender is broken, and the socket is closed. */
  | { readonly kind: 'broken'; readonly problem: string };

export type FrameReader = (raw: Buffer) => ReadFrame;

const checkId = compileCheck(Type.Object({ id: frame_id }), 'frame');
const broken = (problem: string): ReadFrame => ({ kind: 'broken', problem });

const tooLarge = (most: number) => broken(`A frame has at most ${most} bytes.`);

/** Reads one text frame; never throws. `frame_bytes` bounds frames of ops that say nothing else. */
export const makeFrameReader = (ops: Ops, frame_bytes: number): FrameReader => {
  const checks = new Map<string, Check>();
  for (const [name, op] of Object.entries(ops)) checks.set(name, compileCheck(op.schema, 'frame'));
  const most_of_all = Math.max(...Object.values(ops).map((op) => op.most_bytes ?? frame_bytes));

  return (raw) => {
    if (raw.byteLength > most_of_all) return tooLarge(frame_bytes);
    const parsed = readJson(raw);
    if (!parsed.ok) return broken(parsed.problem);
    const { value, text } = parsed;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return broken('A frame is a JSON object.');
    }
    const { op: name, id } = value as { op?: unknown; id?: unknown };
    if (typeof name !== 'string') return broken('A frame has an "op".');
    const known_id = checkId(value) === null ? (id as FrameId) : undefined;
    const check = checks.get(name);
    const op = ops[name];
    const problem = op?.is_envelope === true ? null : findJsonProblem(value);
    if (problem !== null) return broken(problem);
    const most_bytes = op?.most_bytes ?? frame_bytes;
    if (raw.byteLength > most_bytes) return tooLarge(most_bytes);
    if (check === undefined || op === undefined) {
      const message = `There is no op "${name.slice(0, 40)}".`;
      return { kind: 'refused', id: known_id, fault: refuse(ws_faults.UNKNOWN_OP, { message }) };
    }
    const fields = check(value);
    if (fields !== null) {
      const fault = refuse(ws_faults.INVALID_FRAME, { message: sayFirst('frame', fields), fields });
      return { kind: 'refused', id: known_id, fault };
    }
    return { kind: 'frame', frame: { op, id: known_id, value, text } };
  };
};
