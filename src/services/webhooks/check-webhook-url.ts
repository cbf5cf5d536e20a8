/** Where somebody may be told: http(s), where instances may be. A name is judged again whenever it is dialled. */
import { isIP } from 'node:net';
import type { AddressPolicy } from '../../clients/address-policy.ts';
import { AppError } from '../../errors/app-error.ts';

function refuse(message: string): AppError {
  return new AppError('request_invalid', `url ${message}`, {
    errors: [{ pointer: '/url', code: 'invalid_address', message }],
  });
}

/** @returns it as it will be dialled. @throws AppError `request_invalid` */
export function checkWebhookUrl(policy: AddressPolicy, text: string): string {
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw refuse(`is ${url.protocol}, only http: and https: are allowed`);
  if (url.username !== '' || url.password !== '')
    throw refuse('has a user or password, which is not allowed');
  if (text.includes('#')) throw refuse('has a fragment, which is not allowed');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const fault = isIP(host) === 0 ? policy.findNameFault(host, port) : policy.findFault(host, port);
  if (fault !== null) throw refuse(`is not allowed: ${fault}`);
  return url.href;
}
