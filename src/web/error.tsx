import { refuseWidget } from '../features/embed/shell.js';
import type { Request } from '../http/call.js';
import type { Reply } from '../http/route.js';
import type { Fault } from '../kit/fault.js';
import { renderPage } from './page.js';
import { goTo } from './page-route.js';
import { addressText } from './parts/forms.js';

/** Shows a refused request as a page if it came from a browser. */

const titles: Readonly<Record<number, string>> = {
  404: 'Page not found',
  403: 'You cannot open this page',
  429: 'Too many requests',
  500: 'Something went wrong on our side',
  503: 'The forum cannot answer right now',
};

const hints: Readonly<Record<number, string>> = {
  404: 'The address may be misspelt, or the page may not be public. Search for it:',
  500: 'This is not your fault. Try again. If it happens again, send the operator the request id.',
  503: 'It may be restarting, or its database may be down. Try again in a moment.',
};

const Problem = ({ fault, request_id }: { fault: Fault; request_id: string }) => {
  const { status, code, category, retryable } = fault.def;
  const text = addressText({ ...fault, error: fault.message, code, category, status, retryable });
  return (
    <div class="narrow">
      <h1>{titles[status] ?? 'That did not work'}</h1>
      <p>{hints[status] ?? text}</p>
      {status === 404 && (
        <search>
          <form action="/search">
            <div class="field">
              <label for="q">Search</label>
              <input id="q" name="q" type="search" maxLength={200} />
            </div>
            <button type="submit">Search</button>
          </form>
        </search>
      )}
      <p class="soft">
        <small>
          {status} {code} · request <code>{request_id}</code>
        </small>
      </p>
    </div>
  );
};

/** Visitors who are not logged in are sent to the log-in page and then back to this address. */
const needsLogIn = ({ def }: Fault): boolean => def.code === 'MISSING_AUTH';

/** Longest address to return to after logging in. Longer ones lose their query. */
const longest_next = 1_000;

export const makeFaultPage =
  (deps: { readonly public_url: string }) =>
  (fault: Fault, { method, path, query }: Request, request_id: string): Reply => {
    const { status } = fault.def;
    if (path.startsWith('/embed/')) return refuseWidget(fault, deps.public_url);
    if (needsLogIn(fault)) {
      const address = method === 'GET' && query !== '' ? `${path}?${query}` : path;
      const next = address.length > longest_next ? path : address;
      return goTo(`/account/login?next=${encodeURIComponent(next)}`);
    }
    return renderPage(deps, {
      title: titles[status] ?? 'That did not work',
      is_private: true,
      status,
      headers: fault.headers ?? {},
      children: <Problem fault={fault} request_id={request_id} />,
    });
  };
