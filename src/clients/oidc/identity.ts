/** What a provider says of a person, out of its claims. */

export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string | null;
  readonly email: string | null;
  readonly groups: readonly string[];
  /** What the provider calls this sign-in; null: nothing. */
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
