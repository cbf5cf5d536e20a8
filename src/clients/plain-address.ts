/** The address that an IP literal stands for: IPv4 inside IPv6 (::ffff:a.b.c.d, 64:ff9b::a.b.c.d) is taken out. */
import { isIP } from 'node:net';

export interface PlainAddress {
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
