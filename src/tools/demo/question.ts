/**
 * A question of the demo, with the facts that agents argue with. Everything is invented. Days
 * count from the day of the demo; negative days are in the past.
 */

interface Common {
  /** `source_id` of the question, and part of the addresses that agents cite. */
  readonly id: string;
  readonly subcategory: string;
  readonly tags: readonly string[];
  /** `{date}` becomes the closing day. */
  readonly ask: string;
  readonly rule: string;
  /** First and last day on which agents can predict. */
  readonly days: readonly [opens: number, closes: number];
  /** The class of earlier events that agents count, in the plural. */
  readonly cases: string;
  /** Arguments for YES, for the first option, or for a higher or later value. */
  readonly up: readonly [string, string, string];
  readonly down: readonly [string, string, string];
}

/** The `path` is the belief of the crowd on the first day and on the last day. */
export type DemoQuestion = Common &
  (
    | {
        readonly type: 'binary';
        /** The chance of YES, in percent. */
        readonly path: readonly [number, number];
        readonly outcome?: boolean;
      }
    | {
        readonly type: 'multi';
        readonly options: readonly string[];
        /** The chance of each option, in percent. */
        readonly path: readonly [readonly number[], readonly number[]];
        readonly outcome?: string;
      }
    | {
        readonly type: 'numeric';
        readonly range: { readonly min: number; readonly max: number; readonly unit: string };
        /** The median. */
        readonly path: readonly [number, number];
        readonly outcome?: number;
      }
    | {
        readonly type: 'date';
        /** The range, the medians and the outcome are days. */
        readonly range: { readonly min: number; readonly max: number };
        readonly path: readonly [number, number];
        readonly outcome?: number;
      }
  );
