import type { ComponentChildren } from 'preact';

/** Pagination and filters of lists. They are links and forms, so the address holds all state. */

export type Query = Readonly<Record<string, string | number | undefined>>;

/**
 * Returns the address of the page with parts of its query changed. Undefined or empty values are
 * removed.
 */
export const linkTo = (path: string, query: Query, changed: Query = {}): string => {
  const all = Object.entries({ ...query, ...changed });
  const kept = all.filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? path : `${path}?${text}`;
};

/** Links to the first page, and to the next page if there is one. */
export const Pager = ({
  path,
  query,
  next,
}: {
  path: string;
  query: Query;
  next: string | null | undefined;
}) =>
  query['cursor'] === undefined && next == null ? null : (
    <nav class="pager" aria-label="Pages">
      {query['cursor'] !== undefined && (
        <a href={linkTo(path, query, { cursor: undefined })} rel="first">
          First page
        </a>
      )}
      {next != null && (
        <a class="button" href={linkTo(path, query, { cursor: next })} rel="next">
          More
        </a>
      )}
    </nav>
  );

/** Shown instead of a list if the cursor is invalid. */
export const Lost = ({ to }: { to: string }) => (
  <p>
    This page of the list does not exist. <a href={to}>Go to the first page.</a>
  </p>
);

/** A group of links, one of which is marked as chosen: filters, or tabs. */
export const Choices = ({
  look = 'filter',
  label,
  path,
  query,
  name,
  choices,
  usual = '',
}: {
  look?: 'filter' | 'tabs';
  label: string;
  path: string;
  query: Query;
  /** The query parameter that the links change. */
  name: string;
  choices: readonly (readonly [value: string, label: ComponentChildren])[];
  /** The default value, which is left out of the address. */
  usual?: string;
}) => (
  <nav class={look === 'tabs' ? 'tabs' : 'choices'} aria-label={label}>
    {choices.map(([value, shown]) => (
      <a
        key={value}
        href={linkTo(path, query, {
          [name]: value === usual ? undefined : value,
          cursor: undefined,
        })}
        aria-current={value === (query[name] ?? usual) ? 'true' : undefined}
      >
        {shown}
      </a>
    ))}
  </nav>
);

/** A scrolling area for wide content such as tables. It can also be scrolled with the keyboard. */
export const Scroll = ({ label, children }: { label: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be focusable.
  <section class="scroll" tabIndex={0} aria-label={label}>
    {children}
  </section>
);
