/**
 * Whether a request comes from a page of this server. Browsers say so in `Sec-Fetch-Site`, which no script can set;
 * older ones in `Origin` alone.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { AppError } from '../errors/app-error.ts';
import { isHttps } from './session-cookie.ts';

function isOwnOrigin(origin: string, host: string | undefined, publicUrl: string | undefined): boolean {
  if (publicUrl !== undefined && origin === new URL(publicUrl).origin) return true;
  return !isHttps(publicUrl) && host !== undefined && origin === `http://${host}`;
}

/** Null: the request does not say where it comes from, as those of no browser. */
function isFromOwnPage(headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean | null {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin } = headers;
  return origin === undefined ? null : isOwnOrigin(origin, headers.host, publicUrl);
}

/** Of what a cookie alone speaks for and is no reading. @throws AppError `csrf_refused` */
export function requireOwnPage(headers: IncomingHttpHeaders, publicUrl: string | undefined): void {
  if (headers['x-capstan-console'] !== '1')
    throw new AppError('csrf_refused', 'with a cookie send X-Capstan-Console: 1, or a key instead of it');
  if (isFromOwnPage(headers, publicUrl) !== true)
    throw new AppError('csrf_refused', 'the request does not come from a page of this server');
}

/** Of what signs a browser in: pages of others may not do it, what is no browser may. @throws AppError `csrf_refused` */
export function refuseForeignPage(headers: IncomingHttpHeaders, publicUrl: string | undefined): void {
  if (isFromOwnPage(headers, publicUrl) === false)
    throw new AppError('csrf_refused', 'the request comes from a page of another server');
}
