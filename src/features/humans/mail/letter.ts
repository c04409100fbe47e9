/** A mail that is to be sent. */
export interface Letter {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The links in the text, for the outbox page and for programs that read it. */
  readonly links: readonly string[];
}

/**
 * Attempts before a mail is given up, and the time until the next one: 10 s, then four times it.
 */
export const most_attempts = 8;
export const backoffMs = (attempts: number): number =>
  Math.min(10_000 * 4 ** (attempts - 1), 3_600_000);

/** A mail this old is not sent any more: the link in it has run out or soon will. */
export const letter_life_ms = 24 * 3_600_000;
/** How long a row is kept after that, for the outbox page. */
export const letter_keep_ms = 7 * 24 * 3_600_000;
/** How long one sender may hold a mail; longer than every time limit of the SMTP client. */
export const claim_ms = 120_000;
