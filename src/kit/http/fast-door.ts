import type { Leases } from '../limit-leases.js';
import type { Window } from '../limits.js';
import type { LineWriter } from '../log.js';
import type { Address, AddressReader } from './address.js';
import { matchesEtag } from './etag.js';
import { exchange_counters } from './exchange.js';
import type { HotAnswers } from './hot.js';
import type { HotAnswer } from './hot-shelf.js';
import { requestId } from './talk.js';
import { type HttpRequest, type HttpResponse, remoteAddress } from './uws.js';

/**
 * The short way of a hot read: an address whose answer is kept (`hot.ts`), an anonymous caller, and
 * a limit that was lent (`limit-leases.ts`). Everything that an answer has is there all the same:
 * the limit is counted, the request has an id and a line in the log, a client that has the bytes
 * gets 304 and is not counted. It is all done within the callback of the request, so nothing of it
 * has to be copied, and headers go out as few blocks. Whatever is not so goes the usual way.
 */
export interface FastDoorOptions {
  readonly hot: HotAnswers;
  readonly leases: Leases;
  /** The windows that count an anonymous read. */
  readonly windowsOf: (address: Address) => readonly Window[];
  readonly readAddress: AddressReader;
  readonly has_proxies: boolean;
  /** Null where requests are not logged. */
  readonly writeLine: LineWriter | null;
}

export interface FastDoor {
  /** False: nothing was done, and the request goes the usual way. */
  answer(res: HttpResponse, req: HttpRequest): boolean;
}

/** Hundredths of a millisecond in milliseconds, as texts. */
const short_times = Array.from({ length: 100 }, (_, n) => String(n / 100));

export const makeFastDoor = (options: FastDoorOptions): FastDoor => {
  const { hot, leases, windowsOf, readAddress, has_proxies, writeLine } = options;

  const leaseOf = (res: HttpResponse, req: HttpRequest) => {
    const remote = remoteAddress(res);
    const forwarded_for = has_proxies ? req.getHeader('x-forwarded-for') : '';
    const key = forwarded_for === '' ? remote : `${remote} ${forwarded_for}`;
    const known = leases.get(key);
    if (known !== undefined) return known;
    const [window, ...others] = windowsOf(readAddress(remote, forwarded_for));
    return window === undefined || others.length > 0 ? undefined : leases.open(key, window);
  };

  const log = (found: HotAnswer, request_id: string, status: number, began_ms: number): void => {
    if (writeLine === null) return;
    const hundredths = Math.round((performance.now() - began_ms) * 100);
    const ms = short_times[hundredths] ?? String(hundredths / 100);
    writeLine(`,"request_id":"${request_id}${found.line}${status},"ms":${ms}}\n`);
  };

  return {
    answer(res, req) {
      const query = req.getQuery();
      const url = req.getUrl();
      const began_ms = performance.now();
      const target = query === undefined || query === '' ? url : `${url}?${query}`;
      const found = hot.find(target, began_ms);
      if (found === undefined) return false;
      if (req.getHeader('x-api-key') !== '' || req.getHeader('authorization') !== '') return false;
      if (req.getHeader('x-admin-key') !== '') return false;
      const lease = leaseOf(res, req);
      if (lease === undefined) return false;
      const is_known = matchesEtag(req.getHeader('if-none-match'), found.etag);
      const may = is_known ? leases.isLent(lease, began_ms) : leases.take(lease, began_ms);
      if (!may) return false;
      const request_id = requestId(req.getHeader('x-request-id'));
      if (is_known) res.writeStatus('304 Not Modified');
      res.writeHeader('X-Request-Id', request_id + lease.shown(began_ms));
      res.writeHeader('ETag', found.head as unknown as string);
      if (is_known) res.endWithoutBody();
      else res.end(found.body);
      exchange_counters.fast += 1;
      log(found, request_id, is_known ? 304 : 200, began_ms);
      return true;
    },
  };
};
