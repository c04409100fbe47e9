import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Type } from '@sinclair/typebox';
import { replyRaw } from '../http/route.js';
import { common_faults, refuse } from '../kit/fault.js';
import { sha256 } from '../kit/ids.js';
import { pageRules } from '../kit/svg.js';
import { fresh_page, route } from './page-route.js';

/**
 * Serves the stylesheet, typeface and scripts of all pages. The folder in their address contains a
 * hash of their content, so browsers can cache them for a year. One common folder lets modules
 * import each other by relative path.
 */

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
};

/** Reads a file without its source map comment, because the source maps are not served. */
const read = (folder: string, name: string): string =>
  readFileSync(new URL(`${folder}${name}`, import.meta.url), 'utf8').replace(
    /\n\/\/# sourceMappingURL=.*\n?$/,
    '\n',
  );

const modules = readdirSync(new URL('./browser/', import.meta.url)).filter((name) =>
  name.endsWith('.js'),
);

const typeface = createRequire(import.meta.url).resolve(
  '@fontsource-variable/inter/files/inter-latin-wght-normal.woff2',
);

const files: ReadonlyMap<string, string | Uint8Array> = new Map<string, string | Uint8Array>([
  ['style.css', read('./', 'style.css') + pageRules()],
  ['icon.svg', read('./', 'icon.svg')],
  ['inter.woff2', readFileSync(typeface)],
  ...modules.map((name) => [name, read('./browser/', name)] as const),
]);

const version = sha256([...files].flat().join('\0'), 'hex').slice(0, 12);

/** Returns the address of an asset, such as `style.css` or `site.js`. Throws if it is unknown. */
export const assetPath = (name: string): string => {
  if (!files.has(name)) throw new Error(`unknown asset: ${name}`);
  return `/assets/${version}/${name}`;
};

export const assets = route({
  ...fresh_page,
  id: 'asset',
  is_unlimited: true,
  path: '/assets/{version}/{name}',
  summary: 'Stylesheet, typeface and scripts of the pages.',
  params: Type.Object({ version: Type.String(), name: Type.String() }),
  also_produces: Object.values(types).map((type) => type.split(';')[0] as string),
  cacheable: false,
  handle({ params }) {
    const file = params.version === version ? files.get(params.name) : undefined;
    if (file === undefined) return refuse(common_faults.NOT_FOUND);
    const type = types[params.name.split('.').at(-1) ?? ''] ?? 'text/plain';
    return replyRaw(type, file, { 'Cache-Control': 'public, max-age=31536000, immutable' });
  },
});

/** Browsers request `/favicon.ico` if a page does not name an icon. */
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
