import { type Column, describeColumn } from './columns.js';
import type { Format } from './formats.js';

/** What an export is: from it alone the same file can be asked for again, and checked. */

/** Bytes before any compression. */
export interface Digest {
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

export interface ManifestParts {
  readonly schema: string;
  readonly format: Format;
  readonly columns: readonly Column[];
  readonly filters: Readonly<Record<string, string | boolean>>;
  readonly as_of: string;
  readonly snapshot: string;
  readonly log_offset: number;
}

export interface Manifest {
  readonly schema: string;
  readonly format: Format;
  readonly as_of: string;
  readonly snapshot: string;
  /** Follow the log behind this offset to miss nothing that came after the export. */
  readonly log_offset: number;
  readonly filters: Readonly<Record<string, string | boolean>>;
  readonly rows: number;
  /** Of the file up to its manifest: the whole of it, where it holds none. */
  readonly content: Digest | null;
  readonly columns: readonly ReturnType<typeof describeColumn>[];
}

export const makeManifest = (
  parts: ManifestParts,
  { rows, content }: { readonly rows: number; readonly content: Digest | null },
): Manifest => ({
  schema: parts.schema,
  format: parts.format,
  as_of: parts.as_of,
  snapshot: parts.snapshot,
  log_offset: parts.log_offset,
  filters: parts.filters,
  rows,
  content,
  columns: parts.columns.map(describeColumn),
});
