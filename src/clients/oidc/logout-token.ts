/** Logout tokens (OpenID Connect Back-Channel Logout 1.0, §2.6): signed by the provider, for us, and used once. */
import { LRUCache } from 'lru-cache';
import { AppError } from '../../errors/app-error.ts';

const event = 'http://schemas.openid.net/event/backchannel-logout';
/** Signatures alone: a secret that both sides know proves nothing about who wrote it. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const maxAgeS = 300;

/** Whom it ends: the sign-in of that name, or all of the subject. At least one is told. */
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

/** What says that the keys could not be read; everything else of the library speaks of the token. */
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

/** Null when it speaks of something else, or of nobody. */
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
     * A token is used up when `end` is through; one whose end fails may come again.
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
