import { readFileSync } from 'node:fs';

/** Whose requests a round has. */
export interface KeyOptions {
  /** JSON file: the agents' keys. */
  readonly keys_file: string;
  /** Number of the first agent; 0 when absent. */
  readonly first_agent?: number;
  /** How many agents; absent: all that follow. */
  readonly agents?: number;
}

export const readKeys = ({ keys_file, first_agent = 0, agents }: KeyOptions): readonly string[] => {
  const keys = JSON.parse(readFileSync(keys_file, 'utf8')) as string[];
  return keys.slice(first_agent, agents === undefined ? undefined : first_agent + agents);
};
