/**
 * Files of answers, at addresses that the answers name. The service itself is asked with its headers; every other address
 * is asked without headers and is public, unless the file lists its origin.
 */

import { isCallFailure } from '@capstan/capability/call-failure';
import { type Dispatcher, request } from 'undici';
import type { RequestTarget } from '../templates.ts';
import { publicAgent, serviceAgent } from './connections.ts';
import { saveBody } from './exchange.ts';
import { causeOf, providerFailure } from './provider-failure.ts';

export interface Origin {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Where files of an answer may come from. */
export interface FileSources {
  /** Of the service: reached wherever it is, with its headers. */
  readonly origin: Origin | undefined;
  /** Further origins that are reached wherever they are. All others have public addresses. */
  readonly origins: readonly string[];
  readonly maxBytes: number;
}

const mostRedirects = 5;

type FileResponse = Awaited<ReturnType<typeof request>>;

/** How one address on the way to a file is asked. */
interface FileRoute {
  readonly headers: Readonly<Record<string, string>>;
  readonly dispatcher: Dispatcher;
}

function routeTo({ origin }: URL, sources: FileSources): FileRoute | null {
  const own = sources.origin;
  if (own !== undefined && origin === new URL(own.url).origin) {
    return { headers: own.headers, dispatcher: serviceAgent };
  }
  const isListed = sources.origins.some((listed) => new URL(listed).origin === origin);
  return isListed ? { headers: {}, dispatcher: serviceAgent } : null;
}

/**
 * Follows redirects, each of which is judged by itself. An address that an outsider names is public: once a redirect has
 * left the origins that are known, none leads back to them.
 */
async function followFile(first: URL, sources: FileSources, signal: AbortSignal): Promise<FileResponse> {
  let url = first;
  let isOutside = false;
  for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
    if (!/^https?:$/.test(url.protocol)) throw new Error(`${url.protocol} is neither http: nor https:`);
    if (url.username !== '' || url.password !== '') throw refuseCredentials(url);
    const way: FileRoute | null = isOutside ? null : routeTo(url, sources);
    isOutside = way === null;
    const { headers, dispatcher } = way ?? { headers: {}, dispatcher: publicAgent };
    const answer = await request(url, { headers: { ...headers }, signal, dispatcher });
    const location = answer.headers.location?.toString();
    if (answer.statusCode < 300 || answer.statusCode >= 400 || location === undefined) return answer;
    await answer.body.dump();
    url = new URL(location, url);
  }
  throw new Error(`it has more than ${mostRedirects} redirects`);
}

function refuseCredentials({ host }: URL): Error {
  const message = `the file of the answer at ${host} has a user or password in its address, which is not allowed`;
  return providerFailure('provider_refused', message);
}

function isRefusedAddress(error: unknown): boolean {
  return error instanceof Error && error.name === 'AddressRefused';
}

/** Copies a file of an answer. @returns its content type, if stated */
export async function downloadFile(
  address: string,
  path: string,
  { signal, ...sources }: FileSources & { readonly signal: AbortSignal },
): Promise<string | undefined> {
  if (!URL.canParse(address))
    throw providerFailure('provider_refused', 'the answer names a file by an invalid address');
  const url = new URL(address);
  try {
    const { statusCode, headers, body } = await followFile(url, sources, signal);
    if (statusCode < 200 || statusCode >= 300) {
      await body.dump();
      throw new Error(`it was answered ${statusCode}`);
    }
    await saveBody(body, path, { signal, maxBytes: sources.maxBytes });
    return headers['content-type']?.toString().split(';')[0]?.trim();
  } catch (error) {
    signal.throwIfAborted();
    if (isCallFailure(error)) throw error;
    // Another instance would get the same address, and a caller may have named it.
    const fault = isRefusedAddress(error) ? 'provider_refused' : 'provider_unavailable';
    throw providerFailure(fault, `the file of the answer at ${url.host} cannot be read: ${causeOf(error)}`);
  }
}

/** @throws CallFailure when an address out of an answer would send the headers to another host */
export function requireOrigin(target: RequestTarget, own: string): RequestTarget {
  const [seen, allowed] = [new URL(target.url).origin, new URL(own).origin];
  if (seen === allowed) return target;
  throw providerFailure(
    'provider_config',
    `the answer names an address of ${seen}; allowed is ${allowed}, which has the secrets`,
  );
}
