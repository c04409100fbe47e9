import { readFileSync } from 'node:fs';

/**
 * `bench/floors.json`: bench → figure → what it must reach. A bare number is a least value;
 * `{"min": n}` and `{"max": n}` say which. A figure that could not be measured is not met.
 */
export type FloorShape = number | { readonly min?: number; readonly max?: number };

export interface Floor {
  readonly min?: number;
  readonly max?: number;
  readonly value: number | null;
  readonly met: boolean;
}

export const checkFloor = (shape: FloorShape, value: number | undefined): Floor => {
  const bounds = typeof shape === 'number' ? { min: shape } : shape;
  const known = value !== undefined && Number.isFinite(value);
  const met =
    known &&
    (bounds.min === undefined || value >= bounds.min) &&
    (bounds.max === undefined || value <= bounds.max);
  return { ...bounds, value: known ? value : null, met };
};

export const checkFloors = (
  shapes: Readonly<Record<string, FloorShape>>,
  values: Readonly<Record<string, number | undefined>>,
): Readonly<Record<string, Floor>> =>
  Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [name, checkFloor(shape, values[name])]),
  );

type FloorFile = Readonly<Record<string, Readonly<Record<string, FloorShape>>>>;

/** The floors of one bench; a bench without an entry has none. */
export const readFloors = (file: string, bench: string): Readonly<Record<string, FloorShape>> =>
  (JSON.parse(readFileSync(file, 'utf8')) as FloorFile)[bench] ?? {};
