/**
 * The cookie of a signed-in browser. Scripts cannot read it and other sites cannot send it. Where clients come by https,
 * which is what `PUBLIC_URL` says, its name has the prefix that keeps browsers from taking it from anywhere else.
 */
import { sessionHours, signInMinutes } from '../contracts/bounds.ts';

export interface SessionCookie {
  /** Null when a request carries none. @param header `Cookie` */
  readonly read: (header: string | undefined) => string | null;
  /** `Set-Cookie` of an opened session. */
  readonly write: (secret: string) => string;
  /** `Set-Cookie` that takes it away. */
  readonly clear: string;
}

export function isHttps(publicUrl: string | undefined): boolean {
  return publicUrl?.startsWith('https:') === true;
}

interface CookieRules {
  readonly plainName: string;
  readonly sameSite: 'Strict' | 'Lax';
  readonly seconds: number;
}

function createCookie(
  publicUrl: string | undefined,
  { plainName, sameSite, seconds }: CookieRules,
): SessionCookie {
  const isSecure = isHttps(publicUrl);
  const name = isSecure ? `__Host-${plainName}` : plainName;
  const rules = `Path=/; HttpOnly; SameSite=${sameSite}${isSecure ? '; Secure' : ''}`;
  return {
    read: (header = '') => {
      const found = header.split(';').find((part) => part.trimStart().startsWith(`${name}=`));
      return found?.slice(found.indexOf('=') + 1).trim() || null;
    },
    write: (secret) => `${name}=${secret}; ${rules}; Max-Age=${seconds}`,
    clear: `${name}=; ${rules}; Max-Age=0`,
  };
}

export function createSessionCookie(publicUrl: string | undefined): SessionCookie {
  return createCookie(publicUrl, {
    plainName: 'capstan_session',
    sameSite: 'Strict',
    seconds: sessionHours * 3_600,
  });
}

/** What a sign-in at a provider ends with. Lax: the browser comes back from another site, and must bring it. */
export function createSignInCookie(publicUrl: string | undefined): SessionCookie {
  return createCookie(publicUrl, {
    plainName: 'capstan_sign_in',
    sameSite: 'Lax',
    seconds: signInMinutes * 60,
  });
}
