/** Finds the declared route of a request; `{name}` stands for a segment, `{+name}` for the rest of the path. */
import createRouter from 'find-my-way';
import type { Route } from '../route.ts';

export interface Found {
  readonly route: Route;
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly query: Readonly<Record<string, string | string[]>>;
}

export interface RouteTable {
  /** Null: no route has this path and method. */
  find(method: string, url: string): Found | null;
  /** Methods that the path of the address answers, in order. */
  methodsOf(url: string): readonly string[];
}

const methods = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'] as const;
type Method = (typeof methods)[number];

const restName = /\{\+(\w+)\}$/;

/** `/v1/media/{job_id}/{+file}` → `/v1/media/:job_id/*` */
function toPattern(path: string): string {
  return path.replace(restName, '*').replace(/\{(\w+)\}/g, ':$1');
}

function neverCalled(): void {
  undefined;
}

export function createRouteTable(routes: readonly Route[]): RouteTable {
  const router = createRouter({ ignoreTrailingSlash: true, maxParamLength: 16_384 });
  const add = (method: Method, route: Route): void => {
    router.on(method, toPattern(route.path), neverCalled, { route, rest: restName.exec(route.path)?.[1] });
  };
  for (const route of routes) add(route.method, route);
  for (const route of routes) {
    if (route.method === 'GET' && !router.hasRoute('HEAD', toPattern(route.path))) add('HEAD', route);
  }
  const look = (method: string, url: string) => router.find(method as Method, url);
  return {
    find: (method, url) => {
      const found = look(method, url);
      if (found === null) return null;
      const { route, rest } = found.store as { route: Route; rest: string | undefined };
      const params = rest === undefined ? found.params : { ...found.params, [rest]: found.params['*'] };
      return { route, params, query: found.searchParams as Found['query'] };
    },
    methodsOf: (url) => methods.filter((method) => look(method, url) !== null),
  };
}
