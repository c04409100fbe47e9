import type { DocumentInfo } from '../../kit/http/openapi.js';
import { makeOpenApi } from '../../kit/http/openapi.js';
import { Prepared } from '../../kit/http/prepared.js';
import type { Route } from '../../kit/http/route.js';
import { makeAsyncApi } from './asyncapi.js';
import { renderEvents } from './event-page.js';
import { readEvents } from './event-reference.js';
import { withGlossary } from './glossary.js';
import { makeLlms, makeLlmsFull } from './llms.js';
import { readReference } from './reference.js';
import { renderReference } from './reference-page.js';
import { samplesOf } from './samples.js';
import { tag_texts } from './tags.js';
import type { LimitLine } from './words.js';

/** All documents of a service about itself, made once from its route values and events. */

export interface SiteOptions {
  readonly routes: readonly Route[];
  readonly info: DocumentInfo;
  readonly limits: readonly LimitLine[];
  /** First part of the names of our own headers of a webhook. */
  readonly prefix: string;
  /** Known only once the server listens. */
  readonly public_url: () => string;
}

export interface Site {
  readonly openapi: Prepared;
  readonly asyncapi: Prepared;
  readonly reference: Prepared;
  readonly events: Prepared;
  readonly llms: Prepared;
  readonly llms_full: Prepared;
}

export const makeSite = ({ routes, info, limits, prefix, public_url }: SiteOptions): Site => {
  const server_url = public_url();
  const parts = { info, server_url, tags: tag_texts, samplesOf };
  const openapi = JSON.stringify(withGlossary(makeOpenApi(routes, parts)));
  const asyncapi = JSON.stringify(makeAsyncApi(info, server_url));
  const reference = readReference(JSON.parse(openapi));
  const events = readEvents(JSON.parse(asyncapi), prefix);
  return {
    openapi: new Prepared(openapi),
    asyncapi: new Prepared(asyncapi),
    reference: new Prepared(renderReference(reference, limits)),
    events: new Prepared(renderEvents(events)),
    llms: new Prepared(makeLlms({ reference, limits })),
    llms_full: new Prepared(makeLlmsFull({ reference, limits }, events)),
  };
};

/** The site, made when it is first asked for. */
export const createSite = (options: SiteOptions): (() => Site) => {
  let site: Site | undefined;
  return () => {
    site ??= makeSite(options);
    return site;
  };
};
