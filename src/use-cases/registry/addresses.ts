/**
 * Addresses of instances as they are registered: http(s), no userinfo, query or fragment, all three on one origin. IP
 * literals are checked at once, names when they are dialled, so a registration waits for no name server. The text is
 * stored as `URL` writes it, so that the checked address is the dialled one.
 */

import { isIP } from 'node:net';
import { findAddressFault, type Registration } from '@capstan/core/contracts/capability';
import { AppError } from '@capstan/core/errors/app-error';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import type { AddressPolicy } from '@capstan/guarded-dial/address-policy';
import type { Ctx } from '../../context.ts';
import type { InstanceKey } from '../../db/instance/instance.ts';

type AddressField = 'endpoint' | 'spec_url' | 'health_url';

function refuseAddress(field: AddressField, message: string): AppError {
  return new AppError('request_invalid', `${field} ${message}`, {
    errors: [{ pointer: `/${field}`, code: 'invalid_address', message }],
  });
}

function findHostFault(policy: AddressPolicy, { hostname, port, protocol }: URL): string | null {
  const host = hostname.replace(/^\[|\]$/g, '');
  const number = Number(port) || (protocol === 'https:' ? 443 : 80);
  return isIP(host) === 0 ? policy.findNameFault(host, number) : policy.findFault(host, number);
}

function parseAddress(policy: AddressPolicy, text: string, field: AddressField): URL {
  const written = findAddressFault(text);
  if (written !== null) throw refuseAddress(field, written);
  const url = new URL(text);
  const fault = findHostFault(policy, url);
  if (fault !== null) throw refuseAddress(field, `is not allowed: ${fault}`);
  return url;
}

/** Without a trailing slash. */
function trimmed(url: URL): string {
  return withoutEndSlashes(url.href);
}

/** @throws AppError `request_invalid` that names the field */
export function normaliseEndpoint({ policy }: Pick<Ctx, 'policy'>, endpoint: string): string {
  return trimmed(parseAddress(policy, endpoint, 'endpoint'));
}

/** @returns the registration with its addresses normalised @throws AppError `request_invalid` that names the field */
export function normaliseAddresses(
  { policy }: Pick<Ctx, 'policy'>,
  registration: Registration,
): Registration {
  const endpoint = parseAddress(policy, registration.endpoint, 'endpoint');
  const onOrigin = (field: 'spec_url' | 'health_url'): string => {
    const url = parseAddress(policy, registration[field], field);
    if (url.origin === endpoint.origin) return url.href;
    throw refuseAddress(
      field,
      `is on ${url.origin}, the endpoint is on ${endpoint.origin}; one origin is allowed`,
    );
  };
  const [spec_url, health_url] = [onOrigin('spec_url'), onOrigin('health_url')];
  return { ...registration, endpoint: trimmed(endpoint), spec_url, health_url };
}

/** A request about one instance: the name in its path, and its body. */
export interface InstanceRequest<Body> {
  readonly name: string;
  readonly body: Body;
}

/** @throws AppError `request_invalid` for a bad address, and when the body names another capability than the path */
export function keyOf(
  ctx: Pick<Ctx, 'policy'>,
  { name, body }: InstanceRequest<{ readonly endpoint: string; readonly name?: string | undefined }>,
): InstanceKey {
  if (body.name === undefined || body.name === name) {
    return { name, endpoint: normaliseEndpoint(ctx, body.endpoint) };
  }
  const message = `is ${body.name}, the path names ${name}`;
  throw new AppError('request_invalid', `name ${message}`, {
    errors: [{ pointer: '/name', code: 'other_name', message }],
  });
}
