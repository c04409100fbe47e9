import { Type } from '@sinclair/typebox';
import { replyRaw, routeFor } from '../../kit/http/route.js';

/** Documents about the service that the service itself serves. */

export interface DocsParts {
  /** The OpenAPI document as JSON text; made once, from the same route values that are served. */
  readonly openapi: () => string;
  /** The AsyncAPI document likewise, from the events and the frames. */
  readonly asyncapi: () => string;
}

const route = routeFor<DocsParts>();

const openapi = route({
  id: 'openapi',
  method: 'GET',
  path: '/openapi.json',
  summary: 'This document: OpenAPI 3.1',
  tag: 'docs',
  auth: 'public',
  returns: { 200: Type.Object({}) },
  cacheable: true,
  handle: (_ctx, { openapi: text }) => replyRaw('application/json', text()),
});

const asyncapi = route({
  id: 'asyncapi',
  method: 'GET',
  path: '/asyncapi.json',
  summary: 'Events, frames, topics and close codes: AsyncAPI 3.0',
  tag: 'docs',
  auth: 'public',
  returns: { 200: Type.Object({}) },
  cacheable: true,
  handle: (_ctx, { asyncapi: text }) => replyRaw('application/json', text()),
});

export { makeAsyncApi } from './asyncapi.js';
export const routes = [openapi, asyncapi];
