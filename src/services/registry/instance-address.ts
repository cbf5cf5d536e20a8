/**
 * Addresses of instances as they are registered: http(s), no userinfo, query or fragment, all three on one origin.
 * IP literals are judged at once, names when they are dialled: a registration waits for no name server. What is
 * stored is what `URL` makes of it, so that the checked address is the dialled one.
 */
import { isIP } from 'node:net';
import type { AddressPolicy } from '../../clients/address-policy.ts';
import type { Registration } from '../../contracts/capability.ts';
import { AppError } from '../../errors/app-error.ts';

type AddressField = 'endpoint' | 'spec_url' | 'health_url';

function refuse(field: AddressField, message: string): AppError {
  return new AppError('request_invalid', `${field} ${message}`, {
    errors: [{ pointer: `/${field}`, code: 'invalid_address', message }],
  });
}

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

function findHostFault(policy: AddressPolicy, { hostname, port, protocol }: URL): string | null {
  const host = hostname.replace(/^\[|\]$/g, '');
  const number = Number(port) || (protocol === 'https:' ? 443 : 80);
  return isIP(host) === 0 ? policy.findNameFault(host, number) : policy.findFault(host, number);
}

export function createAddressRules(policy: AddressPolicy): AddressRules {
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
    const fault = findHostFault(policy, url);
    if (fault !== null) throw refuse(field, `is not allowed: ${fault}`);
    return url;
  };

  const trimmed = (url: URL): string => url.href.replace(/(?<!\/)\/+$/, '');

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
}
