/**
 * The only way to an instance: a name is resolved once per connection, every address it has is judged, and one of
 * those is connected to, so that no second answer of the name server is ever believed. Node resolves no IP literal,
 * so literals are judged on their own. Connections that are kept open cost nothing.
 *
 * A host that has just been silent is connected to with less patience: a machine that vanishes takes all its instances
 * with it, and a call that tries one after the other must soon reach another machine.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { connect, isIP, type LookupFunction, Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import { Agent, buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { type AddressPolicy, toPlainAddress } from './address-policy.ts';
import { type PortPair, portPairOf } from './socket-tables.ts';

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
  /** Receives each connection that is made, before it is used. */
  readonly onConnection?: (socket: Socket, origin: URL) => void;
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

/** How a connect, or a read of a connection, fails when the machine at the other end is silent or has no route. */
export const silenceCodes: ReadonlySet<string> = new Set([
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
]);

/** How long a connect to a host may take that has been silent within the last half minute. */
const briskConnectMs = 1_000;
const silenceLastsMs = 30_000;

function isSilence({ code = '' }: NodeJS.ErrnoException): boolean {
  return silenceCodes.has(code) || code === 'UND_ERR_CONNECT_TIMEOUT';
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

interface OriginOptions extends Pick<GuardedAgentOptions, 'onConnection'> {
  readonly timeout: number;
  readonly keepAliveInitialDelay: number | undefined;
}

interface DialParts extends AddressJudge {
  /** Hosts that did not answer lately. */
  readonly silentHosts: LRUCache<string, true>;
}

function createConnector(
  { judge, lookupFor, silentHosts }: DialParts,
  origin: URL,
  { timeout, onConnection, ...options }: OriginOptions,
): buildConnector.connector {
  const port = portOf(origin);
  const lookup = lookupFor(port);
  const patient = buildConnector({ ...options, timeout, lookup });
  const brisk = buildConnector({ ...options, timeout: Math.min(timeout, briskConnectMs), lookup });
  return (target, callback) => {
    const { hostname } = target;
    const isBrisk = silentHosts.has(hostname);
    const noteSilence = (error: NodeJS.ErrnoException): void => {
      if (isSilence(error)) silentHosts.set(hostname, true);
    };
    const done: buildConnector.Callback = (...end) => {
      const [error, socket] = end;
      if (error === null) {
        silentHosts.delete(hostname);
        onConnection?.(socket.once('error', noteSilence), origin);
      } else if (!isBrisk) noteSilence(error); // else the silence would never be over
      callback(...end);
    };
    const dial = () => (isBrisk ? brisk : patient)(target, done);
    const family = isIP(hostname);
    if (family === 0) return dial();
    judge([{ address: hostname, family }], port).then(dial, (error: Error) => callback(error, null));
  };
}

/** A request that names, once it is sent, the connection that carries it. */
export type CarriedRequest = Dispatcher.DispatchOptions & {
  carrier?: { readonly ports: PortPair | undefined };
};

/** One connection, by its ports. */
class NamedClient extends Client {
  ports: PortPair | undefined;

  constructor(origin: URL, { connect, ...options }: Client.Options & { connect: buildConnector.connector }) {
    super(origin, {
      ...options,
      connect: (target, callback) =>
        connect(target, (...end) => {
          if (end[0] === null) this.ports = portPairOf(end[1]);
          callback(...end);
        }),
    });
  }

  override dispatch(request: CarriedRequest, handler: Dispatcher.DispatchHandler): boolean {
    request.carrier = this;
    return super.dispatch(request, handler);
  }
}

/** @param resolve for tests; by default as the system does, its hosts file included */
export function createDialGuard(policy: AddressPolicy, resolve: Resolve = resolveBySystem): DialGuard {
  const addresses = createAddressJudge(policy, resolve);
  const parts = {
    ...addresses,
    silentHosts: new LRUCache<string, true>({ max: 1_000, ttl: silenceLastsMs }),
  };
  return {
    createAgent: ({ connectTimeoutMs, keepaliveDelayMs, onConnection, ...options }) =>
      new Agent({
        ...options,
        factory: (origin, poolOptions) => {
          const timing = { timeout: connectTimeoutMs, keepAliveInitialDelay: keepaliveDelayMs };
          const connect = createConnector(parts, new URL(origin), { ...timing, onConnection });
          const factory = (to: URL, clientOptions: object) =>
            new NamedClient(to, { ...clientOptions, connect });
          return new Pool(origin, { ...poolOptions, connect, factory });
        },
      }),
    openSocket: (url, timeoutMs) => {
      const port = portOf(url);
      const host = url.hostname.replace(/^\[|\]$/g, '');
      const fault = isIP(host) === 0 ? null : policy.findFault(host, port);
      if (fault !== null) return new Socket().destroy(new AddressRefused(fault));
      const socket = connect({ host, port, lookup: addresses.lookupFor(port) });
      const fail = () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' }));
      return socket.once('connectionAttempt', () => socket.setTimeout(timeoutMs, fail));
    },
  };
}
