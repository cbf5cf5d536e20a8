/**
 * Where an instance may be: inside the allowed networks, and at none of the addresses that are never an
 * instance's. Loopback is allowed in development, or where a network of loopback addresses is named; that of
 * another, wider network is not enough. It judges addresses; names are resolved and judged when dialling.
 */
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

// The address that an IP literal stands for: IPv4 inside IPv6 (::ffff:a.b.c.d, 64:ff9b::a.b.c.d) is taken out.

interface PlainAddress {
  /** In the one form that `URL` writes. */
  readonly text: string;
  readonly family: 'ipv4' | 'ipv6';
}

/** @param address with or without brackets or zone @returns null when it is no IP address */
export function toPlainAddress(address: string): PlainAddress | null {
  const bare = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const version = isIP(bare);
  if (version === 0) return null;
  if (version === 4) return { text: bare, family: 'ipv4' };
  const text = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  const embedded = findEmbedded(expand(text));
  return embedded === null ? { text, family: 'ipv6' } : { text: embedded, family: 'ipv4' };
}

/** The eight groups. */
function expand(text: string): readonly number[] {
  const [head = '', tail] = text.split('::');
  const read = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = read(head);
  const after = read(tail ?? '');
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

const prefixes = ['0,0,0,0,0,65535', '100,65435,0,0,0,0'];

function findEmbedded(groups: readonly number[]): string | null {
  if (!prefixes.includes(groups.slice(0, 6).join(','))) return null;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 255])
    .join('.');
}

/** A network such as 10.0.0.0/8 or fc00::/7. */
interface Cidr {
  readonly network: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** Null when the text is no network. */
export function parseCidr(text: string): Cidr | null {
  const [, network = '', digits] = /^([0-9a-f.:]+)\/(\d{1,3})$/i.exec(text.trim()) ?? [];
  const version = isIP(network);
  const prefix = Number(digits);
  if (version === 0 || prefix > (version === 4 ? 32 : 128)) return null;
  return { network, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
}

/** Something of Capstan's own that accepts connections. */
interface OwnListener {
  readonly host: string;
  readonly port: number;
}

export interface AddressPolicy {
  /** @param address an IP address @returns why no instance may be there, or null */
  findFault(address: string, port: number): string | null;
  /** Judges a name without resolving it. @returns why no instance may be there, or null */
  findNameFault(name: string, port: number): string | null;
  /** Names of Capstan's own hosts on this port; their addresses are refused too. */
  ownNames(port: number): readonly string[];
}

export interface AddressPolicyOptions {
  /** Comma-separated. @throws Error when one is no network */
  readonly allowedCidrs: string;
  readonly allowsLoopback: boolean;
  readonly ownListeners: readonly OwnListener[];
}

type Kind = readonly [what: string, networks: readonly string[]];

const loopback = ['127.0.0.0/8', '::1/128'];

/** Refused whatever is allowed. The last kind would carry an IPv4 address past the rules for IPv4. */
const neverAllowed: readonly Kind[] = [
  ['an unspecified address', ['0.0.0.0/8', '::/128']],
  ['a link-local address', ['169.254.0.0/16', 'fe80::/10']],
  ['a multicast or reserved address', ['224.0.0.0/3', 'ff00::/8']],
  [
    "a cloud provider's metadata address",
    [
      ...['100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32', 'fd00:ec2::254/128'],
      ...['fd20:ce::254/128', 'fd00:c1::a9fe:a9fe/128'],
    ],
  ],
  [
    'an address that stands for another one',
    ['::/96', '::ffff:0:0:0/96', '64:ff9b:1::/48', '2001::/32', '2002::/16'],
  ],
];

interface Networks {
  has(address: PlainAddress): boolean;
}

/** IPv4 and IPv6 apart: one list alone would let ::/0 cover IPv4 as well. */
function createNetworks(cidrs: readonly Cidr[]): Networks {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const { network, prefix, family } of cidrs) lists[family].addSubnet(network, prefix, family);
  return { has: ({ text, family }) => lists[family].check(text, family) };
}

function parseAll(texts: readonly string[]): readonly Cidr[] {
  return texts.map((text) => {
    const cidr = parseCidr(text);
    if (cidr === null) throw new Error(`"${text}" is no network`);
    return cidr;
  });
}

function refuseLoopback(seen: string): string {
  return `${seen} is a loopback address, allowed in development mode or where ALLOWED_CIDRS names it`;
}

const loopbacks = createNetworks(parseAll(loopback));

function isLoopbackNetwork({ network, prefix, family }: Cidr): boolean {
  return prefix >= (family === 'ipv4' ? 8 : 128) && loopbacks.has({ text: network, family });
}

function isWildcard({ host }: OwnListener): boolean {
  return host === '0.0.0.0' || host === '::' || host === '[::]';
}

function isOfThisMachine({ text }: PlainAddress): boolean {
  return Object.values(networkInterfaces())
    .flat()
    .some((at) => at !== undefined && toPlainAddress(at.address)?.text === text);
}

export function createAddressPolicy(options: AddressPolicyOptions): AddressPolicy {
  const { allowedCidrs, allowsLoopback, ownListeners } = options;
  const cidrs = parseAll(allowedCidrs.split(','));
  const allowed = createNetworks(cidrs);
  const namedLoopbacks = cidrs.filter(isLoopbackNetwork);
  const allowedLoopbacks = createNetworks(allowsLoopback ? parseAll(loopback) : namedLoopbacks);
  const denied = neverAllowed.map(([what, texts]) => ({ what, networks: createNetworks(parseAll(texts)) }));

  const isOwn = (address: PlainAddress, port: number): boolean =>
    ownListeners.some((listener) => {
      if (listener.port !== port) return false;
      if (!isWildcard(listener)) return toPlainAddress(listener.host)?.text === address.text;
      return loopbacks.has(address) || isOfThisMachine(address);
    });

  return {
    findFault: (address, port) => {
      const plain = toPlainAddress(address);
      if (plain === null) return `${address} is no IP address`;
      if (isOwn(plain, port)) return `${address}:${port} is Capstan's own`;
      if (loopbacks.has(plain)) return allowedLoopbacks.has(plain) ? null : refuseLoopback(address);
      const kind = denied.find(({ networks }) => networks.has(plain));
      if (kind !== undefined) return `${address} is ${kind.what}, where no instance may be`;
      return allowed.has(plain) ? null : `${address} is outside ALLOWED_CIDRS (${allowedCidrs})`;
    },
    findNameFault: (name, port) => {
      const isSame = (listener: OwnListener): boolean => listener.port === port && listener.host === name;
      if (ownListeners.some(isSame)) return `${name}:${port} is Capstan's own`;
      const isLoopbackName = name === 'localhost' || name.endsWith('.localhost');
      const isAllowed = allowsLoopback || namedLoopbacks.length > 0;
      return isLoopbackName && !isAllowed ? refuseLoopback(name) : null;
    },
    ownNames: (port) =>
      ownListeners
        .filter((listener) => listener.port === port && toPlainAddress(listener.host) === null)
        .map(({ host }) => host),
  };
}

const notPublic = [
  ...neverAllowed,
  ['a loopback address', loopback],
  [
    'a private address',
    [
      ...['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15'],
      ...['fc00::/7', 'fec0::/10'],
    ],
  ],
] as const satisfies readonly Kind[];

const notPublicNetworks = notPublic.map(([what, texts]) => ({
  what,
  networks: createNetworks(parseAll(texts)),
}));

/** Addresses of the internet alone: for what an answer names, which a stranger may have written. */
export const publicAddresses: AddressPolicy = {
  findFault: (address) => {
    const plain = toPlainAddress(address);
    if (plain === null) return `${address} is no IP address`;
    const kind = notPublicNetworks.find(({ networks }) => networks.has(plain));
    return kind === undefined ? null : `${address} is ${kind.what}; only public addresses are allowed`;
  },
  findNameFault: () => null,
  ownNames: () => [],
};

const defaultPorts: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'postgres:': 5_432,
  'postgresql:': 5_432,
  'temporal:': 7_233,
};

/** Where Capstan's own parts listen, from their URLs; what is no network address (a socket file, port 0) is left out. */
export function findOwnListeners(urls: readonly (string | undefined)[]): readonly OwnListener[] {
  return urls.flatMap((text) => {
    if (text === undefined || !URL.canParse(text)) return [];
    const { protocol, hostname, port, searchParams } = new URL(text);
    const host = searchParams.get('host') ?? hostname.replace(/^\[|\]$/g, '');
    const number = Number(searchParams.get('port') ?? (port || defaultPorts[protocol]));
    const isTcp = host !== '' && !host.startsWith('/') && Number.isInteger(number) && number > 0;
    return isTcp ? [{ host, port: number }] : [];
  });
}
