import type { Method, Route } from './route.js';

/**
 * Finds the route of a path. The same router serves HTTP and calls over the websocket, so that a
 * path means the same at both doors. Static segments win over parameters; a trailing slash is
 * ignored; parameters are percent-decoded.
 */

export interface Match<T> {
  readonly entry: T;
  readonly params: Record<string, string>;
}

export type Found<T> =
  | { readonly kind: 'route'; readonly match: Match<T> }
  | { readonly kind: 'wrong_method'; readonly allow: readonly string[] }
  | { readonly kind: 'bad_path' }
  | { readonly kind: 'nothing' };

interface Node<T> {
  readonly statics: Map<string, Node<T>>;
  param: Node<T> | undefined;
  readonly entries: Map<Method, { readonly names: readonly string[]; readonly entry: T }>;
}

const makeNode = <T>(): Node<T> => ({ statics: new Map(), param: undefined, entries: new Map() });

export interface Router<T> {
  find(method: string, path: string): Found<T>;
}

const walk = <T>(
  node: Node<T>,
  segments: readonly string[],
  at: number,
  values: string[],
): Node<T> | undefined => {
  if (at === segments.length) return node.entries.size > 0 ? node : undefined;
  const segment = segments[at] as string;
  const direct = node.statics.get(segment);
  if (direct !== undefined) {
    const found = walk(direct, segments, at + 1, values);
    if (found !== undefined) return found;
  }
  if (node.param === undefined || segment === '') return undefined;
  values.push(segment);
  const found = walk(node.param, segments, at + 1, values);
  if (found === undefined) values.pop();
  return found;
};

const decode = (text: string): string | null => {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
};

export const makeRouter = <T>(
  entries: readonly { readonly route: Pick<Route, 'method' | 'path'>; readonly entry: T }[],
): Router<T> => {
  const root = makeNode<T>();
  for (const { route, entry } of entries) {
    let node = root;
    const names: string[] = [];
    for (const segment of route.path.split('/').slice(1)) {
      if (segment.startsWith('{')) {
        names.push(segment.slice(1, -1));
        node.param ??= makeNode();
        node = node.param;
      } else {
        let next = node.statics.get(segment);
        if (next === undefined) {
          next = makeNode();
          node.statics.set(segment, next);
        }
        node = next;
      }
    }
    if (node.entries.has(route.method))
      throw new Error(`two routes for ${route.method} ${route.path}`);
    node.entries.set(route.method, { names, entry });
  }
  return {
    find(method, path) {
      const segments = path.split('/');
      segments.shift();
      if (segments.length > 1 && segments[segments.length - 1] === '') segments.pop();
      const values: string[] = [];
      const node = walk(root, segments, 0, values);
      if (node === undefined) return { kind: 'nothing' };
      const hit = node.entries.get((method === 'HEAD' ? 'GET' : method) as Method);
      if (hit === undefined) {
        const allow: string[] = [...node.entries.keys()];
        if (allow.includes('GET')) allow.push('HEAD');
        return { kind: 'wrong_method', allow: [...allow, 'OPTIONS'] };
      }
      const params: Record<string, string> = {};
      for (let index = 0; index < values.length; index += 1) {
        const value = decode(values[index] as string);
        if (value === null || value.includes('\0')) return { kind: 'bad_path' };
        params[hit.names[index] as string] = value;
      }
      return { kind: 'route', match: { entry: hit.entry, params } };
    },
  };
};
