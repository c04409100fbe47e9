import { type Static, Type } from '@sinclair/typebox';
import { common_faults, type Fault, isFault, refuse } from '../fault.js';
import type { Credentials } from '../http/pipeline.js';
import { closeCodeOf } from './close-codes.js';
import { type Core, endSession, enterKey, sendText } from './core.js';
import { errorFrame, frame_id, makeFrame, ws_faults } from './frames.js';
import { isGone, takeHeld } from './inbound.js';
import { defineOp } from './ops.js';
import type { Session } from './session.js';
import { askWho, digestCredential, headersOfCredentials, takeKeySeat } from './upgrade.js';

/** A socket that was opened without a credential shows it by a frame. */

const secret = Type.String({ minLength: 1, maxLength: 512 });
const auth_frame = Type.Object({
  id: frame_id,
  api_key: Type.Optional(secret),
  token: Type.Optional(secret),
});
type AuthFrame = Static<typeof auth_frame>;

const readCredentials = (core: Core, { api_key, token }: AuthFrame): Credentials | Fault => {
  if (api_key !== undefined && token !== undefined) return refuse(common_faults.AMBIGUOUS_AUTH);
  if (api_key !== undefined) return { api_key, authorization: '', admin_key: '' };
  if (token !== undefined) return core.options.readToken(token);
  return refuse(common_faults.MISSING_AUTH, { message: 'Send "api_key" or "token".' });
};

const authenticate = async (core: Core, session: Session, frame: AuthFrame): Promise<void> => {
  const { id } = frame;
  const credentials =
    session.caller.kind === 'anonymous'
      ? readCredentials(core, frame)
      : refuse(ws_faults.ALREADY_AUTHENTICATED);
  if (isFault(credentials)) return sendText(core, session, errorFrame(credentials, id));
  session.held = [];
  const who = await askWho(core, credentials);
  const refused = isFault(who) ? who : await takeKeySeat(core, session.seats, who);
  if (isGone(core, session)) return;
  if (refused !== null || isFault(who)) {
    const fault = refused ?? (who as Fault);
    sendText(core, session, errorFrame(fault, id));
    endSession(core, session, closeCodeOf(fault), fault.def.code);
    return;
  }
  session.caller = who;
  session.credential = digestCredential(credentials);
  session.credential_headers = headersOfCredentials(credentials);
  enterKey(core, session);
  sendText(core, session, makeFrame('authenticated', id, { as: session.caller.kind }));
  takeHeld(core, session);
};

export const auth_op = defineOp({
  schema: auth_frame,
  take: (core, session, frame) => {
    authenticate(core, session, frame).catch((error: unknown) => core.onBug(error));
    return '';
  },
});
