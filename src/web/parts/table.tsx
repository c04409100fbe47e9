import type { ComponentChildren } from 'preact';

/** The head of a table. From index `numbers` on, columns hold numbers. */
export const Heads = ({
  names,
  numbers = 1,
}: {
  names: readonly ComponentChildren[];
  numbers?: number;
}) => (
  <thead>
    <tr>
      {names.map((name, n) => (
        <th key={n} scope="col" class={n >= numbers ? 'n' : undefined}>
          {name}
        </th>
      ))}
    </tr>
  </thead>
);
