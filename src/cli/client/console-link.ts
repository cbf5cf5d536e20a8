/** Addresses of the console that a browser may open. */
import { LoginLink } from '../../contracts/session.ts';
import { ProblemError } from '../errors.ts';
import type { ApiClient } from './api-client.ts';

/** @param next where to go in the console once signed in. @throws ProblemError when the key is not allowed to */
export async function createLoginLink(client: ApiClient, next?: string): Promise<LoginLink> {
  const { value } = await client.post('/v1/login-links', LoginLink, { text: '', type: 'application/json' });
  if (next === undefined) return value;
  const url = new URL(value.url);
  url.searchParams.set('next', next);
  return { ...value, url: url.href };
}

/** One that is signed in where the key may make it, else the plain address. */
export async function linkToConsole(client: ApiClient, next = '/'): Promise<string> {
  try {
    return (await createLoginLink(client, next === '/' ? undefined : next)).url;
  } catch (thrown) {
    if (!(thrown instanceof ProblemError)) throw thrown;
    return `${client.connection.url}/ui${next}`;
  }
}
