import { readdirSync, readFileSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { replyRaw } from '../http/route.js';
import { common_faults, refuse } from '../kit/fault.js';
import { sha256 } from '../kit/ids.js';
import { fresh_page, route } from './page-route.js';

/**
 * Style and scripts of all pages: files beside this one, served from one folder that is named after
 * what they hold, so that a browser keeps them for a year and modules find each other.
 */

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Sources of a module for people with a debugger are in the repository, not here. */
const read = (folder: string, name: string): string =>
  readFileSync(new URL(`${folder}${name}`, import.meta.url), 'utf8').replace(
    /\n\/\/# sourceMappingURL=.*\n?$/,
    '\n',
  );

const modules = readdirSync(new URL('./browser/', import.meta.url)).filter((name) =>
  name.endsWith('.js'),
);

const files: ReadonlyMap<string, string> = new Map([
  ['style.css', read('./', 'style.css')],
  ['icon.svg', read('./', 'icon.svg')],
  ...modules.map((name) => [name, read('./browser/', name)] as const),
]);

const version = sha256([...files].flat().join('\0'), 'hex').slice(0, 12);

/** The address of a file that every page may name: `style.css`, `site.js`. */
export const assetPath = (name: string): string => {
  if (!files.has(name)) throw new Error(`there is no asset ${name}`);
  return `/assets/${version}/${name}`;
};

export const assets = route({
  ...fresh_page,
  id: 'asset',
  is_unlimited: true,
  path: '/assets/{version}/{name}',
  summary: 'Style and scripts of the pages.',
  params: Type.Object({ version: Type.String(), name: Type.String() }),
  also_produces: Object.values(types).map((type) => type.split(';')[0] as string),
  cacheable: false,
  handle({ params }) {
    const text = params.version === version ? files.get(params.name) : undefined;
    if (text === undefined) return refuse(common_faults.NOT_FOUND);
    const type = types[params.name.split('.').at(-1) ?? ''] ?? 'text/plain';
    return replyRaw(type, text, { 'Cache-Control': 'public, max-age=31536000, immutable' });
  },
});

/** Browsers ask for the second one where no page has said otherwise. */
export const icons = ['/favicon.svg', '/favicon.ico'].map((path) =>
  route({
    ...fresh_page,
    is_unlimited: true,
    id: path === '/favicon.svg' ? 'icon' : 'oldIcon',
    path,
    also_produces: ['image/svg+xml'],
    cacheable: false,
    handle: () =>
      replyRaw('image/svg+xml', files.get('icon.svg') ?? '', {
        'Cache-Control': 'public, max-age=86400',
      }),
  }),
);
