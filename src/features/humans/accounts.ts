import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { waitUntilFloor } from '../../kit/pace.js';
import type { Tx } from '../../kit/pg/client.js';
import { revokeSessions } from '../events/index.js';
import { humans_faults } from './faults.js';
import { knownLetter, resetLetter, verifyLetter } from './letters.js';
import { digestToken, makeToken, type Sessions } from './live.js';
import type { LoginLimit } from './login-limit.js';
import { queueMail } from './mail/index.js';
import {
  isTokenOf,
  readAddress,
  readHumanName,
  reset_life_ms,
  reset_mails_per_hour,
  session_life_ms,
  type TokenKind,
  verify_life_ms,
} from './rules.js';
import {
  countTokensSince,
  deleteTokens,
  findHumanByEmail,
  findTokenOwner,
  type HumanRow,
  insertHuman,
  insertToken,
  isKnownAddress,
  keepAddress,
  lockHuman,
  markVerified,
  pruneTokens,
  setPassword,
} from './store.js';

/**
 * Sign-up, verification, log-in and reset. No answer tells whether an address has an account:
 * known and unknown addresses cost the same password work, get the same answer, and not before
 * `floor_ms`, which covers the few statements that only one of them needs.
 */

export type AccountDeps = Deps & { readonly sessions: Sessions; readonly logins: LoginLimit };

/** The last statement of a transaction: it keeps the answer, where the call has a key for it. */
export type KeepIn<R = void> = (tx: Tx, result: R) => Promise<void>;

const floor_ms = 120;

const invalid = (path: string, message: string): Fault =>
  refuse(common_faults.INVALID_REQUEST, { fields: [{ path, message }] });

const issueToken = async (
  tx: Tx,
  human_id: string,
  use: { readonly kind: TokenKind; readonly now: Date; readonly life_ms: number },
): Promise<string> => {
  const { token, digest } = makeToken(use.kind);
  await insertToken(tx, {
    digest,
    human_id,
    kind: use.kind,
    created_at: use.now,
    expires_at: new Date(use.now.getTime() + use.life_ms),
  });
  return token;
};

interface ResetMail {
  readonly human: HumanRow;
  readonly letter: typeof resetLetter;
  readonly now: Date;
}

/** Sends a link that sets a new password; left out when the address got too many of them. */
const mailResetLink = async (tx: Tx, deps: AccountDeps, mail: ResetMail): Promise<void> => {
  const { human, letter, now } = mail;
  await lockHuman(tx, human.id);
  const since = new Date(now.getTime() - 3_600_000);
  const sent = await countTokensSince(tx, human.id, { kind: 'reset', since });
  if (sent >= reset_mails_per_hour) return;
  const token = await issueToken(tx, human.id, { kind: 'reset', now, life_ms: reset_life_ms });
  const link = `${deps.public_url}/auth/reset?token=${token}`;
  const { config } = deps;
  await queueMail(tx, letter({ to: human.email, name: human.name, link }), { config, at: now });
};

export interface SignUp {
  readonly email: string;
  readonly password: string;
  readonly name?: string | undefined;
}

/**
 * Opens an account and mails the link that verifies its address. An address that has one already
 * gets another mail; the password in the call is then dropped, so that nobody can plant a password
 * in an account that its owner verifies later.
 */
export const signUp = async (
  deps: AccountDeps,
  ask: SignUp,
  keep?: KeepIn,
): Promise<undefined | Fault> => {
  const started_ms = performance.now();
  const address = readAddress(ask.email);
  if (address === null) return invalid('body.email', 'This is not an e-mail address.');
  const name = readHumanName(ask.name);
  if (name === null) return invalid('body.name', 'Write a name of 1 to 80 characters.');
  const password_hash = await deps.sessions.passwords.hash(ask.password);
  if (isFault(password_hash)) return password_hash;
  const now = deps.clock();
  const human = { id: makeId(), ...address, name: name ?? null, password_hash, created_at: now };
  await deps.sql.begin(async (tx) => {
    if (await insertHuman(tx, human)) {
      const use = { kind: 'verify', now, life_ms: verify_life_ms } as const;
      const token = await issueToken(tx, human.id, use);
      const link = `${deps.public_url}/auth/verify?token=${token}`;
      const letter = verifyLetter({ to: human.email, name: human.name, link });
      await queueMail(tx, letter, { config: deps.config, at: now });
    } else {
      const known = await findHumanByEmail(tx, human.email_key);
      if (known !== undefined) {
        await mailResetLink(tx, deps, { human: known, letter: knownLetter, now });
      }
    }
    await keep?.(tx);
  });
  await waitUntilFloor(started_ms, floor_ms);
  return undefined;
};

/** Verifies the address of the link's account. The link goes on working until it runs out. */
export const verifyAddress = async (
  deps: AccountDeps,
  { token, ip }: { readonly token: string; readonly ip: string },
  keep?: KeepIn,
): Promise<undefined | Fault> => {
  if (!isTokenOf('verify', token)) return refuse(humans_faults.INVALID_LINK);
  const now = deps.clock();
  return deps.sql.begin(async (tx) => {
    const use = { digest: digestToken(token), kind: 'verify', now } as const;
    const human_id = await findTokenOwner(tx, use);
    if (human_id === undefined) return refuse(humans_faults.INVALID_LINK);
    await markVerified(tx, human_id, now);
    await keepAddress(tx, { human_id, digest: deps.logins.digestOf(human_id, ip), now });
    await keep?.(tx);
    return undefined;
  });
};

export interface LogIn {
  readonly token: string;
  readonly expires_at: Date;
  readonly human: HumanRow;
}

interface LogInAsk {
  readonly email: string;
  readonly password: string;
  readonly ip: string;
}

/** Begins a session; one fault for an unknown address and for a wrong password. */
export const logIn = async (
  deps: AccountDeps,
  ask: LogInAsk,
  keep?: KeepIn<LogIn>,
): Promise<LogIn | Fault> => {
  const started_ms = performance.now();
  const session = await tryLogIn(deps, ask, keep);
  await waitUntilFloor(started_ms, floor_ms);
  return session ?? refuse(humans_faults.INVALID_CREDENTIALS);
};

const tryLogIn = async (
  deps: AccountDeps,
  { email, password, ip }: LogInAsk,
  keep: KeepIn<LogIn> | undefined,
): Promise<LogIn | Fault | undefined> => {
  const { sql, logins, sessions } = deps;
  const address = readAddress(email);
  if (address === null) return undefined;
  const known = await findHumanByEmail(sql, address.email_key);
  const digest = logins.digestOf(known?.id ?? '', ip);
  const is_at_home = known !== undefined && (await isKnownAddress(sql, known.id, digest));
  const attempt = await logins.take(address.email_key, is_at_home ? digest : null);
  if (isFault(attempt)) return attempt;
  const right = await sessions.passwords.verify(known?.password_hash ?? null, password);
  const session =
    right === true && known !== undefined
      ? await openSession(deps, { known, digest, keep })
      : undefined;
  if (isFault(right) || session !== undefined) await attempt.giveBack();
  return isFault(right) ? right : session;
};

interface Opening {
  readonly known: HumanRow;
  /** Of where it is opened from. */
  readonly digest: Buffer;
  readonly keep: KeepIn<LogIn> | undefined;
}

const openSession = async (
  deps: AccountDeps,
  { known, digest, keep }: Opening,
): Promise<LogIn | undefined> => {
  const now = deps.clock();
  return deps.sql.begin(async (tx) => {
    const human = await lockHuman(tx, known.id);
    // A reset that came in between ended every session and must not be followed by this one.
    if (human === undefined || human.password_hash !== known.password_hash) return undefined;
    await pruneTokens(tx, human.id, now);
    await keepAddress(tx, { human_id: human.id, digest, now });
    const use = { kind: 'session', now, life_ms: session_life_ms } as const;
    const token = await issueToken(tx, human.id, use);
    const session = { token, expires_at: new Date(now.getTime() + session_life_ms), human };
    await keep?.(tx, session);
    return session;
  });
};

/** Mails a link that sets a new password, when the address has an account. */
export const forgotPassword = async (
  deps: AccountDeps,
  email: string,
  keep?: KeepIn,
): Promise<void> => {
  const started_ms = performance.now();
  const address = readAddress(email);
  const human = address === null ? undefined : await findHumanByEmail(deps.sql, address.email_key);
  const now = deps.clock();
  await deps.sql.begin(async (tx) => {
    if (human !== undefined) await mailResetLink(tx, deps, { human, letter: resetLetter, now });
    await keep?.(tx);
  });
  await waitUntilFloor(started_ms, floor_ms);
};

/**
 * Sets a new password by a mailed link, which also proves the address; the link, every other link
 * and every session of the account end.
 */
export const resetPassword = async (
  deps: AccountDeps,
  ask: { readonly token: string; readonly password: string; readonly ip: string },
  keep?: KeepIn,
): Promise<undefined | Fault> => {
  if (!isTokenOf('reset', ask.token)) return refuse(humans_faults.INVALID_LINK);
  const use = { digest: digestToken(ask.token), kind: 'reset', now: deps.clock() } as const;
  // Looked up before the hash, so that made-up tokens cost no password work.
  const owner = await deps.sql.begin((tx) => findTokenOwner(tx, use));
  if (owner === undefined) return refuse(humans_faults.INVALID_LINK);
  const password_hash = await deps.sessions.passwords.hash(ask.password);
  if (isFault(password_hash)) return password_hash;
  return deps.sql.begin(async (tx) => {
    await lockHuman(tx, owner);
    const human_id = await findTokenOwner(tx, use);
    if (human_id === undefined) return refuse(humans_faults.INVALID_LINK);
    await setPassword(tx, human_id, password_hash);
    await markVerified(tx, human_id, use.now);
    await revokeSessions(tx, human_id);
    await deleteTokens(tx, human_id);
    const digest = deps.logins.digestOf(human_id, ask.ip);
    await keepAddress(tx, { human_id, digest, now: use.now });
    await keep?.(tx);
    return undefined;
  });
};
