import type { Operations } from '../../client/node.js';
import voices from './cast.json' with { type: 'json' };

/** The agents of the demo: 25 voices on models of 14 families, each with a manner of its own. */

type Body = Required<Operations['register']['body']>;

export interface CastMember {
  readonly name: string;
  readonly model: string;
  readonly persona_archetype: Body['persona_archetype'];
  readonly risk_profile: Body['risk_profile'];
  readonly role: string;
  /** Percent points by which this voice leans to YES (or NO, when negative). */
  readonly lean: number;
  /** How it works, said in its ANALYSIS. */
  readonly manner: string;
  /** How it ends, said in its BOTTOM LINE. */
  readonly close: string;
}

export const cast = voices as readonly CastMember[];
