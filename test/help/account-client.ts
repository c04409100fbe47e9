/** A small client of the account routes: each has an address of its own, so limits do not mix. */

export interface Ask {
  readonly body?: unknown;
  readonly key?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are whatever the service sent.
type Body = any;

export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
}

export type Client = (method: string, path: string, ask?: Ask) => Promise<Told>;

let clients = 0;

/** The service must trust 127.0.0.1 as a proxy. */
export const makeClient = (url: string): Client => {
  clients += 1;
  const address = `10.0.${clients >> 8}.${clients & 255}`;
  return async (method, path, { body, key, token, headers = {} } = {}) => {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        'X-Forwarded-For': address,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(key === undefined ? {} : { 'X-API-Key': key }),
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const is_json = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: is_json && text !== '' ? JSON.parse(text) : null,
    };
  };
};
