import invented from './questions.json' with { type: 'json' };

/** The questions of the demo and what can be said about each. All of it is invented for it. */

export interface Script {
  /** `{date}` becomes the day it closes. */
  readonly question: string;
  readonly description: string;
  readonly category: string;
  readonly subcategory: string;
  readonly tags: readonly string[];
  /** None: a yes/no question. */
  readonly options?: readonly string[];
  readonly days_open: number;
  /** Where voices without a lean stand, in percent; for options: on the first one. */
  readonly middle: number;
  readonly hosts: readonly string[];
  readonly evidence: readonly string[];
  readonly analysis: readonly string[];
  readonly counter: readonly string[];
}

export const scripts: readonly Script[] = invented;
