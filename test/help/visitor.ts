/** A person whose browser has no scripts. Keeps the cookie, sends forms and follows redirects. */

export interface Shown {
  readonly status: number;
  /** Path and query of the last page, after redirects. */
  readonly path: string;
  readonly html: string;
  /** The text of the page without its markup. */
  readonly text: string;
  readonly headers: Headers;
}

type Values = Readonly<Record<string, string | readonly string[]>>;

const textOf = (html: string): string =>
  html
    .replace(/<(?:head|script|style)\b[\s\S]*?<\/(?:head|script|style)>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ');

const encode = (values: Values): string =>
  new URLSearchParams(
    Object.entries(values).flatMap(([name, value]) => [value].flat().map((one) => [name, one])),
  ).toString();

export const makeVisitor = (url: string, token = '') => {
  const state = { cookie: token === '' ? '' : `session=${token}` };
  const ask = async (method: string, path: string, form?: Values): Promise<Shown> => {
    const answer = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        accept: 'text/html,*/*;q=0.8',
        'sec-fetch-site': 'same-origin',
        ...(state.cookie !== '' && { cookie: state.cookie }),
        ...(form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      ...(form !== undefined && { body: encode(form) }),
    });
    const set = answer.headers.get('set-cookie');
    if (set !== null) state.cookie = /Max-Age=0/.test(set) ? '' : (set.split(';')[0] ?? '');
    const to = answer.headers.get('location');
    if (answer.status === 303 && to !== null) return ask('GET', to);
    const html = await answer.text();
    return { status: answer.status, path, html, text: textOf(html), headers: answer.headers };
  };
  return {
    state,
    open: (path: string) => ask('GET', path),
    send: (path: string, form: Values) => ask('POST', path, form),
  };
};

/** The message at a field, and whether the field is tied to it, marked invalid and focused. */
export const problemAt = ({ html }: Shown, name: string) => {
  const field = new RegExp(`<(?:input|textarea|select|fieldset)[^>]*\\bid="${name}"[^>]*>`).exec(
    html,
  )?.[0];
  const text = new RegExp(`id="${name}-problem"[^>]*>([^<]*)<`).exec(html)?.[1];
  return {
    text,
    tied: field?.includes(`${name}-problem`) === true,
    invalid: field?.includes('aria-invalid="true"') === true,
    focus: /\bautofocus\b/.test(field ?? ''),
  };
};
