import path from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { lockHolder } from '../../boot/processes.mjs';
import { ConfigError, readConfig } from '../../config.js';
import { readStatus } from '../../embedded/data-dir.js';

/** Arguments of the commands that call a running service. */

const places = (): { readonly DATA_DIR: string; readonly PORT: number } => {
  try {
    return readConfig();
  } catch (error) {
    // Whatever is wrong with the settings of the service does not keep a tool from another one.
    if (error instanceof ConfigError) return { DATA_DIR: '.data', PORT: 8080 };
    throw error;
  }
};

/** Where the service of this folder listens: while it runs what it says, else what `PORT` says. */
export const localUrl = (): string => {
  const { DATA_DIR, PORT } = places();
  const { state, url } = readStatus(DATA_DIR);
  const runs = state === 'running' && lockHolder(path.join(DATA_DIR, 'service.lock')) !== 0;
  return runs && url !== undefined ? url : `http://127.0.0.1:${PORT === 0 ? 8080 : PORT}`;
};

const common = {
  url: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

type Options = NonNullable<ParseArgsConfig['options']>;

interface Wanted<O extends Options> {
  readonly argv: readonly string[];
  readonly help: string;
  readonly options: O;
  /** Whether one argument stands without a name. */
  readonly takes_one: boolean;
}

/**
 * The options, with `url`, and the argument without a name; or what to print instead: the help, or
 * a sentence that says what is wrong.
 */
export const readArguments = <const O extends Options>(wanted: Wanted<O>) => {
  const { argv, help, takes_one } = wanted;
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: takes_one,
      options: { ...common, ...wanted.options },
    });
    const named = values as ReturnType<typeof parseArgs<{ options: O }>>['values'];
    const { url = localUrl(), help: is_asked } = values as { url?: string; help?: boolean };
    if (is_asked === true || positionals.length !== (takes_one ? 1 : 0)) return help;
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
      return `--url takes an address like http://127.0.0.1:8080, not ${url}.`;
    }
    return { values: named, url, argument: positionals[0] ?? '' };
  } catch (error) {
    return `${error instanceof Error ? error.message : error}\n\n${help}`;
  }
};
