/**
 * Addresses of instances: http(s), no userinfo, query or fragment, all three on one origin, and none that an
 * instance can never have. What is stored is what `URL` makes of it, so that the checked address is the dialled one.
 */
import { BlockList, isIP } from 'node:net';
import type { Registration } from '../../contracts/capability.ts';
import { AppError } from '../../errors.ts';

type AddressField = 'endpoint' | 'spec_url' | 'health_url';

const refuse = (field: AddressField, message: string): AppError =>
  new AppError('request_invalid', `${field} ${message}`, {
    errors: [{ pointer: `/${field}`, code: 'invalid_address', message }],
  });

/** Networks where no instance lives: this host's wildcard, link-local and cloud metadata, multicast. */
const createDenied = (allowsLoopback: boolean): BlockList => {
  const denied = new BlockList();
  denied.addSubnet('0.0.0.0', 8, 'ipv4');
  denied.addSubnet('169.254.0.0', 16, 'ipv4');
  denied.addSubnet('224.0.0.0', 3, 'ipv4');
  denied.addAddress('100.100.100.200', 'ipv4');
  denied.addAddress('::', 'ipv6');
  denied.addSubnet('fe80::', 10, 'ipv6');
  denied.addSubnet('ff00::', 8, 'ipv6');
  denied.addSubnet('64:ff9b::', 96, 'ipv6');
  denied.addAddress('fd00:ec2::254', 'ipv6');
  if (!allowsLoopback) {
    denied.addSubnet('127.0.0.0', 8, 'ipv4');
    denied.addAddress('::1', 'ipv6');
  }
  return denied;
};

interface InstanceAddresses {
  /** Without a trailing slash. */
  readonly endpoint: string;
  readonly spec_url: string;
  readonly health_url: string;
}

export interface AddressRules {
  /** @throws AppError `request_invalid` that names the field */
  normaliseEndpoint(endpoint: string): string;
  /** @throws AppError `request_invalid` that names the field */
  normalise(registration: Pick<Registration, AddressField>): InstanceAddresses;
}

export const createAddressRules = ({
  allowsLoopback,
}: {
  readonly allowsLoopback: boolean;
}): AddressRules => {
  const denied = createDenied(allowsLoopback);

  const parse = (text: string, field: AddressField): URL => {
    if (!URL.canParse(text)) throw refuse(field, 'is no URL');
    const url = new URL(text);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw refuse(field, `is ${url.protocol}, only http: and https: are allowed`);
    }
    if (url.username !== '' || url.password !== '' || /^\w+:\/*[^/\\]*@/.test(text)) {
      throw refuse(field, 'has a user or password, which is not allowed');
    }
    if (/[?#]/.test(text)) throw refuse(field, 'has a query or fragment, which is not allowed');
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const family = isIP(host);
    const isDenied = family !== 0 && denied.check(host, family === 6 ? 'ipv6' : 'ipv4');
    const isLoopbackName = host === 'localhost' || host.endsWith('.localhost');
    if (isDenied || (isLoopbackName && !allowsLoopback)) {
      throw refuse(field, `is at ${host}, where no instance may be`);
    }
    return url;
  };

  const trimmed = (url: URL): string => url.href.replace(/\/+$/, '');

  return {
    normaliseEndpoint: (endpoint) => trimmed(parse(endpoint, 'endpoint')),
    normalise: (registration) => {
      const endpoint = parse(registration.endpoint, 'endpoint');
      const [spec_url, health_url] = (['spec_url', 'health_url'] as const).map((field) => {
        const url = parse(registration[field], field);
        if (url.origin === endpoint.origin) return url.href;
        throw refuse(
          field,
          `is on ${url.origin}, the endpoint is on ${endpoint.origin}; one origin is allowed`,
        );
      }) as [string, string];
      return { endpoint: trimmed(endpoint), spec_url, health_url };
    },
  };
};
