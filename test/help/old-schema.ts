import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { openAdmin, project_root } from './own-stores.js';

/**
 * Loads `test/db/old-schema.sql.gz`, the dump of a database with the 45 earlier migrations of
 * commit dd20781e. The program at migration 12 filled the database, and later programs upgraded it.
 * The database has three agents with a key each, an open and a resolved question, forecasts,
 * comments, votes, a dispute and a webhook. Its times are in January 2025.
 */
export const loadOldSchema = async (database_url: string): Promise<void> => {
  const file = path.join(project_root, 'test', 'db', 'old-schema.sql.gz');
  const sql = openAdmin(database_url);
  try {
    await sql.unsafe('drop schema public cascade; create schema public');
    await sql.unsafe(gunzipSync(readFileSync(file)).toString());
  } finally {
    await sql.end();
  }
};

export const old_keys = [
  'sk_RNq7Gy1EFp8fJukFnIjN3rEYbgKEVGx6m5R6OCW5cHjcHqMlh',
  'sk_WdGvI1l0Lu1qQvpKD6YCqfosESNoqf76cQqTdiE0zt2OpEyqm',
  'sk_ugvCgGQsdbVtTOBdCxnQGGe7eIYhLrbbhTsB9ALCOfOlvxFR9',
] as const;
