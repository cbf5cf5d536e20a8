import { isIP } from 'node:net';

/** A network such as 10.0.0.0/8 or fc00::/7. */
export interface Cidr {
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
