import vm from 'node:vm';

/**
 * Runs the script of an account page without a browser: just the parts of the DOM that those
 * scripts use, made from the ids and names in the page's HTML. What it cannot show is the look.
 */

type Listener = (event: {
  readonly target: StubElement;
  preventDefault(): void;
}) => void | Promise<void>;

class StubElement {
  [name: string]: unknown;
  hidden = false;
  value = '';
  textContent = '';
  className = '';
  disabled = false;
  readonly dataset: Record<string, string> = {};
  children: StubElement[] = [];
  readonly listeners = new Map<string, Listener>();
  fields: StubElement[] = [];

  addEventListener(name: string, listener: Listener): void {
    this.listeners.set(name, listener);
  }
  querySelectorAll(): StubElement[] {
    return [];
  }
  querySelector(): StubElement | null {
    return null;
  }
  setAttribute(): void {}
  focus(): void {}
  append(...children: StubElement[]): void {
    this.children.push(...children);
  }
  replaceChildren(...children: StubElement[]): void {
    this.children = children;
  }
  reset(): void {
    for (const field of this.fields) field.value = '';
  }
}

const readElements = (html: string): Map<string, StubElement> => {
  const elements = new Map<string, StubElement>();
  for (const [, attributes] of html.matchAll(/<[a-z]+ ([^>]*)>/g)) {
    const id = /\bid="([^"]+)"/.exec(attributes ?? '')?.[1];
    if (id === undefined) continue;
    const element = new StubElement();
    element.hidden = /\bhidden\b/.test(attributes ?? '');
    elements.set(id, element);
  }
  for (const [, form, inner] of html.matchAll(/<form id="([^"]+)"[^>]*>([\s\S]*?)<\/form>/g)) {
    const element = elements.get(form ?? '') as StubElement;
    for (const [, name] of (inner ?? '').matchAll(/<input [^>]*\bname="([^"]+)"/g)) {
      const field = new StubElement();
      element.fields.push(field);
      element[name ?? ''] = field;
    }
  }
  return elements;
};

/** Opens the page at `url`; `storage` is what the tab kept from another page of it. */
export const openPage = async (url: string, storage = new Map<string, string>()) => {
  const html = await (await fetch(url)).text();
  const script = /<script>([\s\S]*)<\/script>/.exec(html)?.[1] ?? '';
  const elements = readElements(html.replace(script, ''));
  const at = (id: string): StubElement => {
    const element = elements.get(id);
    if (element === undefined) throw new Error(`the page has no #${id}`);
    return element;
  };
  let address = url;
  const { pathname, search, origin } = new URL(url);
  vm.runInNewContext(script, {
    document: {
      getElementById: at,
      querySelectorAll: () => [],
      createElement: () => new StubElement(),
    },
    location: { pathname, search },
    history: {
      replaceState: (_state: null, _title: string, path: string) => {
        address = origin + path;
      },
    },
    sessionStorage: {
      getItem: (key: string) => storage.get(key) ?? null,
      setItem: (key: string, value: string) => storage.set(key, value),
      removeItem: (key: string) => storage.delete(key),
    },
    URLSearchParams,
    fetch: (path: string, options: RequestInit) => fetch(origin + path, options),
  });
  return {
    /** The address bar. */
    get address() {
      return address;
    },
    storage: storage as ReadonlyMap<string, string>,
    at,
    fill(form: string, values: Readonly<Record<string, string>>) {
      for (const [name, value] of Object.entries(values)) {
        (at(form)[name] as StubElement).value = value;
      }
    },
    /** Fulfilled when the page has dealt with it. */
    async fire(id: string, event: 'submit' | 'click') {
      const element = at(id);
      await element.listeners.get(event)?.({ target: element, preventDefault: () => undefined });
    },
  };
};
