/**
 * The start of every command that talks to the API: a client and a printer; and addresses of the console for a browser.
 */

import { spawn } from 'node:child_process';
import { LoginLink } from '@capstan/core/contracts/sign-in';
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
  /** Print the API's JSON instead of text. */
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

/** @param next path in the console after the sign-in. @throws ProblemError when the key lacks the scope */
export async function createLoginLink(client: ApiClient, next?: string): Promise<LoginLink> {
  const { value } = await client.post('/v1/login-links', LoginLink, emptyBody);
  if (next === undefined) return value;
  const url = new URL(value.url);
  url.searchParams.set('next', next);
  return { ...value, url: url.href };
}

/** A link that signs in if the key may create one, else the plain address. */
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

/** Opens an address in the system's browser. Failures are ignored: the address has been printed. */
export function openBrowser(url: string): void {
  const [command = 'xdg-open', ...words] = openers[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...words, url], { stdio: 'ignore', detached: true });
  child.once('error', () => undefined);
  child.unref();
}
