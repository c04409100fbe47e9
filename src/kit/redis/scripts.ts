import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

/**
 * Lua scripts live in `src/lua/<name>-<keys>.lua`, one a file; the number in the name is how many
 * keys the script takes, `n` for any number. ioredis sends EVALSHA and falls back to EVAL when
 * Redis forgot the script.
 */
export type Script = (
  redis: Redis,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
) => Promise<unknown>;

export const loadScript = (file: string): Script => {
  const match = /^([a-z-]+)-(\d+|n)\.lua$/.exec(file);
  if (match === null) throw new Error(`${file}: a script is named <name>-<keys>.lua`);
  const keys = match[2] === 'n' ? null : Number(match[2]);
  const lua = readFileSync(new URL(`../../lua/${file}`, import.meta.url), 'utf8');
  const command = `pf_${match[1]}`;
  const ready = new WeakSet<Redis>();
  return (redis, key_names, args) => {
    if (keys !== null && key_names.length !== keys) throw new Error(`${file} takes ${keys} keys`);
    if (!ready.has(redis)) {
      redis.defineCommand(command, { lua, ...(keys === null ? {} : { numberOfKeys: keys }) });
      ready.add(redis);
    }
    const call = (redis as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>)[
      command
    ] as (...all: unknown[]) => Promise<unknown>;
    return keys === null
      ? call.call(redis, key_names.length, ...key_names, ...args)
      : call.call(redis, ...key_names, ...args);
  };
};
