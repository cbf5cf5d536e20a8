/**
 * What every command that talks to the API begins with: a client and a printer; and the
 * addresses of the console that a browser may open.
 */

import { spawn } from 'node:child_process';
import { LoginLink } from '../../contracts/sign-in.ts';
import { ProblemError } from '../errors.ts';
import { createPrinter, type Printer } from '../render/print.ts';
import type { Shell } from '../shell.ts';
import { type ApiClient, createApiClient, emptyBody } from './api-client.ts';
import { type ConnectionFlags, resolveConnection } from './connection.ts';

export interface CommonOptions extends ConnectionFlags {
  readonly json?: boolean;
}

export interface Session {
  readonly client: ApiClient;
  readonly print: Printer;
  /** The API's JSON is wanted instead of words. */
  readonly json: boolean;
  readonly shell: Shell;
}

export async function openSession(options: CommonOptions, shell: Shell): Promise<Session> {
  return {
    client: createApiClient(await resolveConnection(options, shell.environment)),
    print: createPrinter(shell),
    json: options.json === true,
    shell,
  };
}

/** @param next where to go in the console once signed in. @throws ProblemError when the key is not allowed to */
export async function createLoginLink(client: ApiClient, next?: string): Promise<LoginLink> {
  const { value } = await client.post('/v1/login-links', LoginLink, emptyBody);
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

const openers: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Hands an address to the system's browser. Where there is none, nothing happens: the address was printed. */
export function openBrowser(url: string): void {
  const [command = 'xdg-open', ...words] = openers[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...words, url], { stdio: 'ignore', detached: true });
  child.once('error', () => undefined);
  child.unref();
}
