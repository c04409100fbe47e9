import { format_names } from '../../features/exports/content.js';
import { readArguments } from '../shared/arguments.js';

export const export_subjects = ['predictions', 'consensus-history', 'calibration'] as const;
export type ExportSubject = (typeof export_subjects)[number];

export interface ExportArguments {
  readonly subject: ExportSubject;
  readonly url: string;
  readonly file: string;
  /** Of the route, without the snapshot. */
  readonly query: Readonly<Record<string, string>>;
  readonly snapshot: string | null;
  /** Compress the finished file. */
  readonly gzip: boolean;
  /** Forget what is there of an interrupted export. */
  readonly restart: boolean;
  /** Replace the file. */
  readonly force: boolean;
}

const help = `Usage: npm run export -- WHAT [--out FILE] [--format FORMAT] [options]

WHAT is predictions, consensus-history or calibration. The data of a running service go into a file:

  --out FILE        where to (default WHAT.FORMAT)
  --format FORMAT   ${format_names.join(', ')} (default ndjson); calibration knows json, csv and svg
  --url URL         the service (default: the one of this folder, else port 8080 or PORT)
  --gzip            compress the file; its name gets .gz
  --restart         begin anew instead of going on after an interruption
  --force           replace a file that is there

Which rows:

  --since TIME, --until TIME        when the prediction was made; ISO 8601 with a zone
  --question-id ID, --category SLUG, --subcategory SLUG, --model-family NAME
  --status STATUS                   open, closed, resolved or voided (predictions)
  --as-of TIME                      only what was known then
  --snapshot TIME                   only what was recorded before; for the same file once more
  --names                           with ids and names of agents, where they are public
  --by GROUP, --event EVENT, --bins N, --min-n N, --theme THEME      (calibration)

While it runs the file is called FILE.part, with FILE.part.json beside it. After an interruption of
any kind the same command goes on behind what is there, and the finished file is the same to the
last byte. Its SHA-256 is compared with that of the service, and FILE.manifest.json says what it is.

Exit code: 0 the file is there and right; 1 it is not.`;

/** Options that are members of the query. */
const filters = [
  ...(['since', 'until', 'question-id', 'category', 'subcategory', 'model-family'] as const),
  ...(['status', 'as-of', 'by', 'event', 'bins', 'min-n', 'theme'] as const),
] as const;

const isSubject = (word: string): word is ExportSubject =>
  (export_subjects as readonly string[]).includes(word);

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;

/** The arguments, or a sentence that says what is wrong with them. */
export const readExportArguments = (argv: readonly string[]): ExportArguments | string => {
  const read = readArguments({
    ...{ argv, help, takes_one: true },
    options: {
      ...{ out: text, format: text, gzip: flag, restart: flag, force: flag },
      ...{ names: flag, snapshot: text, since: text, until: text, 'question-id': text },
      ...{ category: text, subcategory: text, 'model-family': text, status: text, 'as-of': text },
      ...{ by: text, event: text, bins: text, 'min-n': text, theme: text },
    },
  });
  if (typeof read === 'string') return read;
  const { values, url, argument: subject } = read;
  if (!isSubject(subject)) return `WHAT is ${export_subjects.join(', ')}, not ${subject}.`;
  const is_calibration = subject === 'calibration';
  const formats: readonly string[] = is_calibration ? ['json', 'csv', 'svg'] : format_names;
  const format = values.format ?? formats[is_calibration ? 0 : 1] ?? '';
  if (!formats.includes(format)) {
    return `--format of ${subject} is ${formats.join(', ')}, not ${format}.`;
  }
  const query: Record<string, string> = { format };
  for (const name of filters) {
    const value = values[name];
    if (value !== undefined) query[name.replaceAll('-', '_')] = value;
  }
  if (values.names) query['names'] = 'true';
  const { gzip, restart, force, snapshot = null, out = `${subject}.${format}` } = values;
  const file = gzip && !out.endsWith('.gz') ? `${out}.gz` : out;
  return { subject, url, file, query, snapshot, gzip, restart, force };
};
