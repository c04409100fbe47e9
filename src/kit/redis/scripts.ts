import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

/**
 * Lua scripts live in `src/lua/<name>-<keys>.lua`, one a file; the number in the name is how many
 * keys the script takes, `n` for any number. EVALSHA is sent, and EVAL when Redis does not know the
 * script yet, or no more.
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
  const sha = createHash('sha1').update(lua).digest('hex');
  return (redis, key_names, args) => {
    if (keys !== null && key_names.length !== keys) throw new Error(`${file} takes ${keys} keys`);
    return redis.evalsha(sha, key_names.length, ...key_names, ...args).catch((error: unknown) => {
      if (!String((error as Error).message).startsWith('NOSCRIPT')) throw error;
      return redis.eval(lua, key_names.length, ...key_names, ...args);
    });
  };
};
