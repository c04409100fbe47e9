import { parseArgs } from 'node:util';
import { localUrl } from '../shared/local-url.js';
import { text_limits } from './item.js';

export interface ImportArguments {
  readonly file: string;
  readonly url: string;
  readonly admin_key_file: string;
  /** A mapping file, or the name of one that comes with the service. */
  readonly map: { readonly file: string } | { readonly name: string } | null;
  readonly publish: boolean;
  /** Take the forecasts, the outcomes, that the mapping finds in each record. */
  readonly forecasts: boolean;
  readonly resolutions: boolean;
  /** Points that an agent begins with where the file does not say. */
  /** Where the keys of new agents are written. */
  readonly keys_file: string | null;
}

/** Mappings in `maps/`, by the name `--format` takes. */
export const known_formats = ['forecastbench'] as const;

export const help = `Usage: npm run import -- FILE [options]

Puts the questions of a file into a running service, and forecasts and outcomes with them.

  --url URL               the service (default: the one of this folder, else port 8080 or PORT)
  --admin-key-file FILE   file with the admin key (default .data/admin-key)
  --map FILE              mapping that turns the records of FILE into the fields below
  --format NAME           a mapping that comes along: ${known_formats.join(', ')}
  --publish               publish the questions; without it they become drafts
  --forecasts             also take the forecasts that the mapping finds in each record
  --resolutions           also take the outcomes that the mapping finds in each record
  --keys FILE             write the keys of new agents there, one JSON object a line

FILE is NDJSON (one JSON object a line) or CSV with a header line; .csv, .ndjson and .jsonl
say which, else the first character does. Fields of a record:

  question         text of 10 to ${text_limits.question} characters (required)
  closes_at        when predictions end (required)
  category         pillar; may be left out where subcategory is given
  subcategory      slug of the taxonomy
  description      up to ${text_limits.description} characters
  tags             list of tags of the taxonomy
  question_type    binary (default) or multi
  options          list of 2 to 10 texts, for multi
  opens_at         default: now
  resolution_date  default: closes_at
  resolution_source, resolution_url
  weight           1 to 5 (default 1)
  publish          true or false (default: whether --publish is given)
  source           where the question comes from
  source_id        its id there

A record with a type is something else, in any order within the file; questions go in first, then
agents and forecasts, then resolutions:

  {"type":"agent", "name", "model"}
                   only to say more of an agent than forecasts do
  {"type":"forecast", "source", "source_id", "agent", "model", "forecast_at", "reasoning", …}
                   with prediction and confidence, or probability; for multi selected_option and
                   confidence, or probabilities; forecast_at lies in the time in which the question
                   was open; without reasoning a note says that none was recorded
  {"type":"resolution", "source", "source_id", "resolved_to", "resolution_note"}
                   resolved_to is 1 or 0, an option (several by |), or void

Forecasts need published questions that are not decided. Their agents are registered by name, belong
to the owner of imports. Numbers are percent from 0 to 100, or fractions between 0 and 1. In CSV,
probabilities are written one=30|other=70.

Times are ISO 8601, such as 2027-03-31T12:00:00Z or 2027-03-31; without a zone they are UTC. In
CSV, lists are separated by | and an empty cell is an absent field. Other fields are ignored.

A question that is already there, by source and source_id, is left as it is: run the same
command again to go on after an interruption. A record without a source is known by its content.
Texts over their limit are cut, which is reported. Bad lines are listed with the reason, and the
rest goes in.

Exit code: 0 everything is there; 2 some lines were bad; 1 the import could not go on.`;

/** The arguments, or a sentence that says what is wrong with them. */
export const readImportArguments = (argv: readonly string[]): ImportArguments | string => {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        url: { type: 'string', default: localUrl() },
        'admin-key-file': { type: 'string', default: '.data/admin-key' },
        map: { type: 'string' },
        format: { type: 'string' },
        publish: { type: 'boolean', default: false },
        forecasts: { type: 'boolean', default: false },
        resolutions: { type: 'boolean', default: false },
        keys: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    const [file, ...rest] = positionals;
    if (values.help || file === undefined || rest.length > 0) return help;
    if (values.map !== undefined && values.format !== undefined) {
      return 'Give --map or --format, not both.';
    }
    if (
      values.format !== undefined &&
      !(known_formats as readonly string[]).includes(values.format)
    ) {
      return `--format knows ${known_formats.join(', ')}; for another write a mapping (--map).`;
    }
    if (!/^https?:\/\//.test(values.url) || !URL.canParse(values.url)) {
      return `--url takes an address like http://127.0.0.1:8080, not ${values.url}.`;
    }
    const map = values.map === undefined ? null : { file: values.map };
    return {
      file,
      url: values.url,
      admin_key_file: values['admin-key-file'],
      map: values.format === undefined ? map : { name: values.format },
      publish: values.publish,
      forecasts: values.forecasts,
      resolutions: values.resolutions,
      keys_file: values.keys ?? null,
    };
  } catch (error) {
    return `${error instanceof Error ? error.message : error}\n\n${help}`;
  }
};
