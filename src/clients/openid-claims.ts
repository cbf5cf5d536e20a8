/**
 * Reads the claims of a provider: the identity of a person, and logout tokens (OpenID Connect Back-Channel Logout
 * 1.0, §2.6), which the provider signs for us and which count once.
 */

import { AppError } from '@capstan/core/errors/app-error';
import { LRUCache } from 'lru-cache';

export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string | null;
  readonly email: string | null;
  readonly groups: readonly string[];
  /** The provider's name of this sign-in; null: it has none. */
  readonly sid: string | null;
  readonly idToken: string | null;
  /** Null: it gave none, so it cannot be asked again. */
  readonly refreshToken: string | null;
}

type Claims = Readonly<Record<string, unknown>>;

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim().slice(0, 256) : null;
}

/** By the whole name, which may hold dots, else step by step: `realm_access.roles`. */
function readClaim(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Claims)[part];
  }
  return value;
}

/** A list of texts, or one text. Anything else is no group. */
export function readGroups(claims: Claims, name: string): readonly string[] {
  const value = readClaim(claims, name);
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  return list.filter((group): group is string => typeof group === 'string' && group !== '');
}

/** Some providers write it as text. */
function isUnverified({ email_verified }: Claims): boolean {
  return String(email_verified).toLowerCase() === 'false';
}

/** An address that the provider calls unverified is none. */
export function readPerson(claims: Claims): Pick<Identity, 'name' | 'email' | 'sid'> {
  return {
    name: textOf(claims.name) ?? textOf(claims.preferred_username),
    email: isUnverified(claims) ? null : textOf(claims.email),
    sid: textOf(claims.sid),
  };
}

const event = 'http://schemas.openid.net/event/backchannel-logout';
/** Signatures alone: a secret that both sides know proves nothing about who wrote it. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const maxAgeS = 300;

/** A logout ends the sign-in `sid`, or all sign-ins of the subject; at least one of the two is given. */
export interface LogoutNotice {
  readonly issuer: string;
  readonly subject: string | null;
  readonly sid: string | null;
}

/** Ends the sessions that it speaks of. */
export type EndByNotice = (notice: LogoutNotice) => Promise<void>;

interface Sender {
  readonly issuer: string;
  readonly keysAt: string;
}

/** Finds the key of a token. */
type Keys = import('jose').JWTVerifyGetKey;
type Payload = import('jose').JWTPayload;

/** Codes of the library when the keys could not be read; all others are about the token. */
const withoutKeys = new Set(['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID']);

async function readKeys(keysAt: string): Promise<Keys> {
  const { createRemoteJWKSet, errors } = await import('jose');
  const keys = createRemoteJWKSet(new URL(keysAt), { timeoutDuration: 5_000 });
  return async (...asked) => {
    try {
      return await keys(...asked);
    } catch (cause) {
      if (cause instanceof errors.JOSEError && !withoutKeys.has(cause.code)) throw cause;
      throw new AppError('unavailable', `the keys of the OpenID provider at ${keysAt} cannot be read`, {
        cause,
      });
    }
  };
}

/** @returns null for a token that is no logout, or names no sign-in and no subject */
function toNotice(payload: Payload, issuer: string) {
  const { events, jti, sub, sid } = payload;
  const told = events as Readonly<Record<string, unknown>> | undefined;
  if (told?.[event] === undefined || 'nonce' in payload || jti === undefined) return null;
  const notice: LogoutNotice = { issuer, subject: sub ?? null, sid: typeof sid === 'string' ? sid : null };
  return notice.subject === null && notice.sid === null ? null : { jti, notice };
}

export function createLogoutTokens(clientId: string) {
  const used = new LRUCache<string, true>({ max: 10_000, ttl: 2 * maxAgeS * 1_000 });
  let keys: Promise<Keys> | null = null;

  const read = async (token: string, { issuer, keysAt }: Sender) => {
    const { jwtVerify } = await import('jose');
    keys ??= readKeys(keysAt);
    try {
      const limits = { algorithms, maxTokenAge: maxAgeS, clockTolerance: 30 };
      const { payload } = await jwtVerify(token, await keys, { issuer, audience: clientId, ...limits });
      return toNotice(payload, issuer);
    } catch (error) {
      if (error instanceof AppError) throw error;
      return null;
    }
  };

  return {
    /**
     * A token is used up when `end` is through; a token with a failed end may come again.
     *
     * @returns false when it is not what it should be. @throws AppError `unavailable` without the provider's keys
     */
    take: async (token: string, sender: Sender, end: EndByNotice): Promise<boolean> => {
      const known = await read(token, sender);
      if (known === null || used.has(known.jti)) return false;
      await end(known.notice);
      used.set(known.jti, true);
      return true;
    },
  };
}
