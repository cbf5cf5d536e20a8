/**
 * The cookie of a signed-in browser. Scripts cannot read it and other sites cannot send it. Where clients come by https,
 * which is what `PUBLIC_URL` says, its name has the prefix that keeps browsers from taking it from anywhere else.
 */
import { sessionHours } from '../contracts/bounds.ts';

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

export function createSessionCookie(publicUrl: string | undefined): SessionCookie {
  const isSecure = isHttps(publicUrl);
  const name = isSecure ? '__Host-capstan_session' : 'capstan_session';
  const rules = `Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
  return {
    read: (header = '') => {
      const found = header.split(';').find((part) => part.trimStart().startsWith(`${name}=`));
      return found?.slice(found.indexOf('=') + 1).trim() || null;
    },
    write: (secret) => `${name}=${secret}; ${rules}; Max-Age=${sessionHours * 3_600}`,
    clear: `${name}=; ${rules}; Max-Age=0`,
  };
}
