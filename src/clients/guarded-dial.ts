/**
 * The only way to an instance: a name is resolved once per connection, every address it has is judged, and one of
 * those is connected to, so that no second answer of the name server is ever believed. Node resolves no IP literal,
 * so literals are judged on their own. Connections that are kept open cost nothing.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { connect, isIP, type LookupFunction, Socket } from 'node:net';
import { Agent, buildConnector, Pool } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { toPlainAddress } from './plain-address.ts';

/** What `dns.lookup` with `all` answers. */
export type Resolve = (name: string) => Promise<readonly LookupAddress[]>;

export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
  readonly code = 'ADDRESS_REFUSED';
}

export interface DialGuard {
  /** An agent whose connections are all guarded. Requests fail with `AddressRefused` before anything is sent. */
  createAgent(options: Agent.Options & { readonly connectTimeoutMs: number }): Agent;
  /** Emits `error` with `AddressRefused` instead of connecting where no instance may be. */
  openSocket(url: URL, timeoutMs: number): Socket;
}

const resolveBySystem: Resolve = (name) =>
  new Promise((resolve, reject) => {
    lookup(name, { all: true }, (error, found) => (error === null ? resolve(found) : reject(error)));
  });

/** An own name that nobody can resolve here leads nowhere. */
function unresolved(): readonly LookupAddress[] {
  return [];
}

function toText({ address }: LookupAddress): string {
  return toPlainAddress(address)?.text ?? address;
}

function portOf({ port, protocol }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

/** @param resolve for tests; by default as the system does, its hosts file included */
export function createDialGuard(policy: AddressPolicy, resolve: Resolve = resolveBySystem): DialGuard {
  const resolveOwn = (name: string): Promise<readonly LookupAddress[]> => resolve(name).catch(unresolved);

  /** @throws AddressRefused when one of the addresses is where no instance may be */
  const judge = async (found: readonly LookupAddress[], port: number, prefix = ''): Promise<void> => {
    const own = (await Promise.all(policy.ownNames(port).map(resolveOwn))).flat().map(toText);
    for (const at of found) {
      const isOwn = own.includes(toText(at));
      const fault = isOwn ? `${at.address}:${port} is Capstan's own` : policy.findFault(at.address, port);
      if (fault !== null) throw new AddressRefused(prefix + fault);
    }
  };

  /** All addresses of the name. @throws AddressRefused */
  const resolveAllowed = async (name: string, port: number): Promise<readonly LookupAddress[]> => {
    const found = await resolve(name);
    await judge(found, port, `${name} is not allowed: `);
    return found;
  };

  const lookupFor =
    (port: number): LookupFunction =>
    (name, { all }, callback) => {
      resolveAllowed(name, port).then(
        (found) => {
          const [first] = found;
          if (all) callback(null, [...found]);
          else callback(null, first?.address ?? '', first?.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, []),
      );
    };

  const createConnector = (origin: URL, timeoutMs: number): buildConnector.connector => {
    const port = portOf(origin);
    const dial = buildConnector({ timeout: timeoutMs, lookup: lookupFor(port) });
    return (options, callback) => {
      const { hostname } = options;
      const family = isIP(hostname);
      if (family === 0) return dial(options, callback);
      judge([{ address: hostname, family }], port).then(
        () => dial(options, callback),
        (error: Error) => callback(error, null),
      );
    };
  };

  return {
    createAgent: ({ connectTimeoutMs, ...options }) =>
      new Agent({
        ...options,
        factory: (origin, poolOptions) =>
          new Pool(origin, { ...poolOptions, connect: createConnector(new URL(origin), connectTimeoutMs) }),
      }),
    openSocket: (url, timeoutMs) => {
      const port = portOf(url);
      const host = url.hostname.replace(/^\[|\]$/g, '');
      const fault = isIP(host) === 0 ? null : policy.findFault(host, port);
      if (fault !== null) return new Socket().destroy(new AddressRefused(fault));
      return connect({ host, port, timeout: timeoutMs, lookup: lookupFor(port) });
    },
  };
}
