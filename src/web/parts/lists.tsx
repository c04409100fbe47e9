import type { ComponentChildren } from 'preact';

/** Lists that go on, and what narrows them: links and forms, so that the address is the state. */

export type Query = Readonly<Record<string, string | number | undefined>>;

/** The address of the same page with some of its query changed; undefined takes a part away. */
export const linkTo = (path: string, query: Query, changed: Query = {}): string => {
  const all = Object.entries({ ...query, ...changed });
  const kept = all.filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? path : `${path}?${text}`;
};

/** The first page, and the next where there is one. */
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

/** In the place of a page of a list whose cursor leads nowhere. */
export const Lost = ({ to }: { to: string }) => (
  <p>
    This part of the list is not there any more. <a href={to}>Go to the first page.</a>
  </p>
);

/** Links of which one is chosen. */
export const Choices = ({
  label,
  path,
  query,
  name,
  choices,
  usual = '',
}: {
  label: string;
  path: string;
  query: Query;
  /** The part of the query that they change. */
  name: string;
  choices: readonly (readonly [value: string, label: ComponentChildren])[];
  /** Its value where the address does not say it. */
  usual?: string;
}) => (
  <nav class="choices" aria-label={label}>
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

/** What may be wider than the page, such as a table: it scrolls by itself, with keys too. */
export const Scroll = ({ label, children }: { label: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to take the focus.
  <section class="scroll" tabIndex={0} aria-label={label}>
    {children}
  </section>
);
