import { common_faults, type Fault, refuse } from './fault.js';
import { countCharacters, normaliseText } from './text.js';

export interface TextLimits {
  readonly min: number;
  readonly max: number;
}

/**
 * A text as it is kept: trimmed and as `normaliseText` has it, with its characters counted after
 * that. The schema of the wire can only count before, and so lets some blanks more through.
 */
export const readText = (text: string, path: string, { min, max }: TextLimits): string | Fault => {
  const kept = normaliseText(text).trim();
  const length = countCharacters(kept);
  if (length >= min && length <= max) return kept;
  const name = path.replace('body.', '');
  return refuse(common_faults.INVALID_REQUEST, {
    message: `${name} must have ${min} to ${max} characters; it has ${length}.`,
    fields: [{ path, message: `${min} to ${max} characters after trimming, not ${length}` }],
  });
};
