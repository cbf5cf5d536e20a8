/**
 * The only way to an instance: a name is resolved once per connection, every address it has is judged, and one of
 * those is connected to, so that no second answer of the name server is ever believed. Node resolves no IP literal,
 * so literals are judged on their own. Connections that are kept open cost nothing.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { connect, isIP, type LookupFunction, Socket } from 'node:net';
import { Agent, buildConnector, Pool } from 'undici';
import { type AddressPolicy, toPlainAddress } from './address-policy.ts';

/** What `dns.lookup` with `all` answers. */
export type Resolve = (name: string) => Promise<readonly LookupAddress[]>;

export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
  readonly code = 'ADDRESS_REFUSED';
}

export interface GuardedAgentOptions extends Agent.Options {
  readonly connectTimeoutMs: number;
  /** Silence after which TCP keepalive begins; whole seconds. Default: 60 s. */
  readonly keepaliveDelayMs?: number;
}

export interface DialGuard {
  /** An agent whose connections are all guarded. Requests fail with `AddressRefused` before anything is sent. */
  createAgent(options: GuardedAgentOptions): Agent;
  /**
   * Fails with `AddressRefused` instead of connecting where no instance may be, and with `ETIMEDOUT` when the connect is
   * not answered in this time, which begins when the name is resolved.
   */
  openSocket(url: URL, timeoutMs: number): Socket;
}

const resolveBySystem: Resolve = (name) =>
  new Promise((resolve, reject) => {
    lookup(name, { all: true }, (error, found) => (error === null ? resolve(found) : reject(error)));
  });

/** An own name that does not resolve here leads nowhere. */
function unresolved(): readonly LookupAddress[] {
  return [];
}

function toText({ address }: LookupAddress): string {
  return toPlainAddress(address)?.text ?? address;
}

function portOf({ port, protocol }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

interface AddressJudge {
  /** @throws AddressRefused when one of the addresses is where no instance may be */
  judge(found: readonly LookupAddress[], port: number, prefix?: string): Promise<void>;
  /** Looks names up for connections to a port. An address where no instance may be fails with AddressRefused. */
  lookupFor(port: number): LookupFunction;
}

function createAddressJudge(policy: AddressPolicy, resolve: Resolve): AddressJudge {
  const resolveOwn = (name: string): Promise<readonly LookupAddress[]> => resolve(name).catch(unresolved);

  const judge: AddressJudge['judge'] = async (found, port, prefix = '') => {
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

  const lookupFor: AddressJudge['lookupFor'] =
    (port) =>
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
  return { judge, lookupFor };
}

/** @param resolve for tests; by default as the system does, its hosts file included */
export function createDialGuard(policy: AddressPolicy, resolve: Resolve = resolveBySystem): DialGuard {
  const { judge, lookupFor } = createAddressJudge(policy, resolve);

  const createConnector = (origin: URL, options: buildConnector.BuildOptions): buildConnector.connector => {
    const port = portOf(origin);
    const dial = buildConnector({ ...options, lookup: lookupFor(port) });
    return (target, callback) => {
      const { hostname } = target;
      const family = isIP(hostname);
      if (family === 0) return dial(target, callback);
      judge([{ address: hostname, family }], port).then(
        () => dial(target, callback),
        (error: Error) => callback(error, null),
      );
    };
  };

  return {
    createAgent: ({ connectTimeoutMs: timeout, keepaliveDelayMs: keepAliveInitialDelay, ...options }) =>
      new Agent({
        ...options,
        factory: (origin, poolOptions) => {
          const connect = createConnector(new URL(origin), { timeout, keepAliveInitialDelay });
          return new Pool(origin, { ...poolOptions, connect });
        },
      }),
    openSocket: (url, timeoutMs) => {
      const port = portOf(url);
      const host = url.hostname.replace(/^\[|\]$/g, '');
      const fault = isIP(host) === 0 ? null : policy.findFault(host, port);
      if (fault !== null) return new Socket().destroy(new AddressRefused(fault));
      const socket = connect({ host, port, lookup: lookupFor(port) });
      const fail = () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' }));
      return socket.once('connectionAttempt', () => socket.setTimeout(timeoutMs, fail));
    },
  };
}
