import { createReadStream, createWriteStream, existsSync, renameSync, rmSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { writeWhole } from '../../embedded/files.js';
import { type Screen, writeLine } from '../shared/terminal.js';
import { type ExportArguments, readExportArguments } from './arguments.js';
import {
  addressOf,
  ask,
  type Downloaded,
  type DownloadParts,
  download,
  Stopped,
  withQuery,
} from './download.js';
import { forgetPart, forgetState, isSameExport, partName, readState } from './part.js';

/** The whole export: service → part → compared with its manifest → file. */

export interface ExportOptions {
  readonly argv: readonly string[];
  readonly screen: Screen;
  /** Set while the person at the terminal wants it to end. */
  readonly stop?: AbortSignal;
  /** How long the service may be away before the export gives up. */
  readonly patience_ms?: number;
}

const default_patience_ms = 90_000;

interface Manifest {
  readonly rows: number;
  readonly file: { readonly bytes: number; readonly sha256: string };
}

const readManifest = async (parts: DownloadParts, snapshot: string): Promise<Manifest> => {
  const { args } = parts;
  const url = withQuery(`${addressOf(args)}/manifest`, { ...args.query, snapshot });
  return (await (await ask(url, parts)).json()) as Manifest;
};

const finish = async (args: ExportArguments, manifest: Manifest): Promise<void> => {
  const { file, gzip } = args;
  const part = partName(file);
  if (gzip) {
    await pipeline(createReadStream(part), createGzip(), createWriteStream(`${part}.gz`));
    renameSync(`${part}.gz`, file);
    rmSync(part);
  } else renameSync(part, file);
  writeWhole(`${file}.manifest.json`, `${JSON.stringify(manifest, null, 2)}\n`, 0o644);
  forgetState(file);
};

const isRight = ({ bytes, sha256 }: Downloaded, { file }: Manifest): boolean =>
  bytes === file.bytes && sha256 === file.sha256;

/** What there is of the same export, after saying so; a Stopped when it is another's. */
const findPart = ({ args, say }: DownloadParts) => {
  if (args.restart) forgetPart(args.file);
  const state = readState(args.file);
  if (state === null) return null;
  const is_same = isSameExport(state, { address: addressOf(args), query: args.query });
  if (!is_same || (args.snapshot !== null && args.snapshot !== state.snapshot)) {
    throw new Stopped(
      `${partName(args.file)} belongs to another export; run that one again, or give --restart.`,
    );
  }
  say(`Going on with the export of ${state.snapshot}.`);
  return state;
};

const exportFile = async (parts: DownloadParts): Promise<string> => {
  const { args, say } = parts;
  let made = await download(parts, findPart(parts));
  let manifest = await readManifest(parts, made.state.snapshot);
  if (!isRight(made, manifest) && made.was_resumed) {
    // A moderator hid something in between: the bytes before and behind do not belong together.
    say('The rows have changed since the export began; beginning anew.');
    forgetPart(args.file);
    made = await download(parts, null);
    manifest = await readManifest(parts, made.state.snapshot);
  }
  if (!isRight(made, manifest)) {
    forgetPart(args.file);
    throw new Stopped('What arrived is not what the service sent (SHA-256); run it again.');
  }
  await finish(args, manifest);
  const { rows, file } = manifest;
  return `${args.file}: ${rows} rows, ${file.bytes} bytes, SHA-256 ${file.sha256}`;
};

const exportCalibration = async (parts: DownloadParts): Promise<string> => {
  const { args } = parts;
  const { format, ...query } = args.query;
  const address = format === 'svg' ? `${addressOf(args)}.svg` : addressOf(args);
  const asked = format === 'svg' ? query : args.query;
  const text = await (await ask(withQuery(address, asked), parts)).text();
  writeWhole(args.file, text, 0o644);
  return `${args.file}: ${Buffer.byteLength(text)} bytes`;
};

/** Exit code: 0 the file is there and right, 1 it is not. */
export const runExport = async (options: ExportOptions): Promise<number> => {
  const { screen, stop, patience_ms = default_patience_ms } = options;
  const say = (line: string): void => writeLine(screen, line);
  const args = readExportArguments(options.argv);
  if (typeof args === 'string') {
    say(args);
    return options.argv.includes('--help') ? 0 : 1;
  }
  if (existsSync(args.file) && !args.force) {
    say(`${args.file} is there already; give --force to replace it, or another --out.`);
    return 1;
  }
  const parts: DownloadParts = { args, screen, stop, patience_ms, say };
  try {
    const run = args.subject === 'calibration' ? exportCalibration : exportFile;
    say(await run(parts));
    return 0;
  } catch (error) {
    if (stop?.aborted === true) say('Interrupted; run the same command again to go on.');
    else say(error instanceof Error ? error.message : String(error));
    return 1;
  }
};
