/** A real OpenID provider in this process, with accounts that tests change, and a user who clicks through its pages. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

export interface Account {
  readonly name: string;
  readonly email: string;
  groups: string[];
  /** The provider has deleted the account. */
  isGone?: boolean;
}

export const clientSecret = 'a-secret-of-the-client';

export interface TestProvider {
  readonly issuer: string;
  readonly accounts: Map<string, Account>;
  /** Starts it; it redirects to `site`, and reaches the API itself at `api`. */
  readonly serve: (site: string, api: string) => void;
  /** Makes its address unreachable. */
  readonly close: () => Promise<void>;
}

function createProvider(issuer: string, accounts: TestProvider['accounts'], site: string, api: string) {
  return new Provider(issuer, {
    clients: [
      {
        client_id: 'capstan',
        client_secret: clientSecret,
        redirect_uris: [`${site}/v1/sessions/oidc/callback`],
        post_logout_redirect_uris: [`${site}/ui/login`],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        backchannel_logout_uri: `${api}/v1/sessions/oidc/logout`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email', 'email_verified'] },
    features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true } },
    findAccount: (_, sub) => {
      const account = accounts.get(sub);
      if (account === undefined || account.isGone === true) return undefined;
      const { name, email, groups } = account;
      return { accountId: sub, claims: () => ({ sub, name, email, email_verified: true, groups }) };
    },
    cookies: { keys: ['of the test'] },
    // Its HTTP client refuses loopback addresses.
    fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined } as RequestInit),
  });
}

async function listenOn(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

/** At `localhost`, so that for a browser it is another site than 127.0.0.1. */
export async function startProvider(): Promise<TestProvider> {
  const accounts = new Map<string, Account>();
  const server = createServer();
  const issuer = await listenOn(server);
  return {
    issuer,
    accounts,
    serve: (site, api) => {
      server.removeAllListeners('request');
      server.on('request', createProvider(issuer, accounts, site, api).callback());
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A browser without scripts: it keeps cookies by host and follows redirects. */
export function createVisitor(places: Readonly<Record<string, string>> = {}) {
  const cookies = new Map<string, Map<string, string>>();

  const ask = async (url: URL, init: RequestInit = {}): Promise<Response> => {
    const jar = cookies.get(url.hostname) ?? new Map<string, string>();
    cookies.set(url.hostname, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const place = `${places[url.origin] ?? url.origin}${url.pathname}${url.search}`;
    const answer = await fetch(place, {
      ...init,
      redirect: 'manual',
      headers: { ...(init.headers as Record<string, string>), ...(cookie === '' ? {} : { cookie }) },
    });
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  };

  /** Follows redirects until there is none, or to the address that `stop` selects. */
  const follow = async (start: URL, init: RequestInit, stop: (url: URL) => boolean) => {
    let [url, answer] = [start, await ask(start, init)];
    for (let hops = 0; hops < 20; hops++) {
      const next = answer.headers.get('location');
      if (next === null) break;
      await answer.arrayBuffer();
      url = new URL(next, url);
      if (stop(url)) break;
      answer = await ask(url);
    }
    return { url, answer };
  };

  return { ask, follow, cookies };
}

export type Visitor = ReturnType<typeof createVisitor>;

function readForm(html: string): { action: string; fields: Record<string, string> } {
  const action = /<form[^>]*action="([^"]+)"/.exec(html)?.[1] ?? '';
  const inputs = html.matchAll(/<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"/g);
  return {
    action,
    fields: Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, value])),
  };
}

/** Signs in as `sub` on the provider's pages, up to the redirect back. @returns the address of the callback */
export async function passProvider(visitor: Visitor, start: URL, sub: string): Promise<URL> {
  const isBack = (url: URL): boolean => url.pathname === '/v1/sessions/oidc/callback';
  let { url, answer } = await visitor.follow(start, {}, isBack);
  for (let page = 0; page < 4 && !isBack(url); page++) {
    const { action, fields } = readForm(await answer.text());
    const form = new URLSearchParams({ ...fields, login: sub, password: 'x' });
    ({ url, answer } = await visitor.follow(new URL(action, url), { method: 'POST', body: form }, isBack));
  }
  if (!isBack(url)) throw new Error(`the provider leads to ${url.href}: ${await answer.text()}`);
  return url;
}
