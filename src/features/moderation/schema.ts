import { textSchema } from '../../http/schemas.js';

/** Length of the reason for an action, in characters after trimming. */
export const reason_limits = { min: 3, max: 2_000 } as const;

/** The schema counts UTF-16 units before trimming. `reason_limits` are checked after trimming. */
export const reason_schema = textSchema({
  minLength: reason_limits.min,
  maxLength: reason_limits.max,
  description: 'Everybody can read it in the moderation log. Name no person.',
});
