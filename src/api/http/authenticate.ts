/** Who sends a request, and whether the route is theirs to call. */
import type { IncomingMessage } from 'node:http';
import type { Scope } from '../../contracts/access.ts';
import { AppError } from '../../errors/app-error.ts';
import type { AccessService } from '../../services/access/access-service.ts';
import { type Caller, requireScope, selectProject } from '../../services/access/caller.ts';
import type { Exchange } from './exchange.ts';

const bearer = /^Bearer +([!-~]+) *$/i;

/** Every value of a header: one that is sent twice counts twice. */
export function valuesOf({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length === name.length && sent.toLowerCase() === name) values.push(rawHeaders[at + 1] as string);
  }
  return values;
}

/** All keys of a request. */
function readKeys(request: IncomingMessage): ReadonlySet<string> {
  return new Set([
    ...valuesOf(request, 'authorization').map((value) => bearer.exec(value)?.[1] ?? ''),
    ...valuesOf(request, 'x-api-key').map((value) => value.trim()),
  ]);
}

const missing = 'Bearer realm="capstan"';
const invalid = 'Bearer realm="capstan", error="invalid_token"';

/**
 * @param scope what the key must be allowed
 * @throws AppError `unauthenticated`, `forbidden`
 */
export async function authenticate(
  access: AccessService,
  { request, headers }: Exchange,
  scope: Scope,
): Promise<Caller> {
  const refuse = (message: string, challenge: string): AppError => {
    headers['WWW-Authenticate'] = challenge;
    return new AppError('unauthenticated', message);
  };
  const [key, ...others] = readKeys(request);
  if (key === undefined)
    throw refuse('send a key as Authorization: Bearer <key> or as X-API-Key: <key>', missing);
  if (others.length > 0) throw refuse('the request carries two different keys', invalid);
  const holder = await access.identify(key);
  if (holder === null) throw refuse('the key is unknown, expired or revoked', invalid);
  const [project, ...projects] = valuesOf(request, 'x-project-id');
  const caller = selectProject(holder, projects.length > 0 ? [project, ...projects].join(', ') : project);
  requireScope(holder, scope);
  return caller;
}
