/**
 * Sign-in with an OpenID provider, as it is configured: by all of its settings or none. Its parts in a browser or the
 * database are sealed.
 */

import { readFile } from 'node:fs/promises';
import { GroupRules } from '@capstan/core/contracts/sign-in';
import { z } from 'zod';
import { deriveCipherKey, seal, unseal } from '../../clients/cipher.ts';
import type { Identity } from '../../clients/openid-claims.ts';
import type { OpenIdProvider, SignInProof } from '../../clients/openid-provider.ts';

/** The provider's tokens that are kept. */
export type KeptTokens = Pick<Identity, 'idToken' | 'refreshToken'>;

export interface Sealed<Value> {
  readonly write: (value: Value) => Buffer;
  /** Null when it was not sealed here. */
  readonly read: (sealed: Uint8Array) => Value | null;
}

/** Values that only a holder of the secret can read or make. */
export function createSealed<Value>(secret: string, purpose: string): Sealed<Value> {
  const key = deriveCipherKey(secret, purpose);
  return {
    write: (value) => seal(key, Buffer.from(JSON.stringify(value))),
    read: (sealed) => {
      const plain = unseal(key, sealed);
      return plain === null ? null : (JSON.parse(plain.toString()) as Value);
    },
  };
}

export interface Begun extends SignInProof {
  readonly until: number;
}

export interface SignInConfig {
  readonly CAPSTAN_MODE: 'development' | 'production';
  readonly OIDC_ISSUER?: string | undefined;
  readonly OIDC_CLIENT_ID?: string | undefined;
  readonly OIDC_CLIENT_SECRET?: string | undefined;
  readonly OIDC_GROUPS?: string | undefined;
  readonly OIDC_NAME?: string | undefined;
}

export interface SignInSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly rules: GroupRules;
  readonly name: string;
}

const needed = ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_GROUPS'] as const;

function refuse(message: string, cause?: unknown): Error {
  return new Error(`configuration: ${message}`, { cause });
}

async function readRules(setting: string): Promise<GroupRules> {
  const isText = setting.trimStart().startsWith('{');
  const from = isText ? 'OIDC_GROUPS' : `OIDC_GROUPS: the file "${setting}"`;
  const text = isText
    ? setting
    : await readFile(setting, 'utf8').catch((cause) => {
        throw refuse(`${from} cannot be read: ${cause.message}`, cause);
      });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw refuse(`${from} is not JSON: ${(cause as Error).message}`, cause);
  }
  const parsed = GroupRules.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refuse(`${from}: ${z.prettifyError(parsed.error)}`);
}

function readIssuer(issuer: string, mode: SignInConfig['CAPSTAN_MODE']): string {
  const { protocol, search, hash } = new URL(issuer);
  if (search !== '' || hash !== '') throw refuse(`OIDC_ISSUER: "${issuer}" has a query or a fragment`);
  if (protocol === 'https:' || (protocol === 'http:' && mode === 'development')) return issuer;
  throw refuse(`OIDC_ISSUER: "${issuer}" is not https, which production mode demands`);
}

/** Null: none is configured. @throws Error that names the missing or wrong setting, and the allowed values */
export async function readSignInSettings(config: SignInConfig): Promise<SignInSettings | null> {
  const given = needed.filter((name) => config[name] !== undefined);
  if (given.length === 0) return null;
  const {
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: clientId,
    OIDC_CLIENT_SECRET: clientSecret,
    OIDC_GROUPS: groups,
  } = config;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined || groups === undefined) {
    const missing = needed.filter((name) => config[name] === undefined);
    throw refuse(`${given.join(', ')} set without ${missing.join(', ')}; signing in needs all of them`);
  }
  return {
    issuer: readIssuer(issuer, config.CAPSTAN_MODE),
    clientId,
    clientSecret,
    rules: await readRules(groups),
    name: config.OIDC_NAME ?? new URL(issuer).host,
  };
}

export type SignIn = ReturnType<typeof createSignIn>;

/** @param settings name: shown on the button; recheckS: how long a session lasts without asking the provider */
export function createSignIn(
  provider: OpenIdProvider,
  {
    clientSecret,
    ...settings
  }: Pick<SignInSettings, 'rules' | 'name' | 'clientSecret'> & { recheckS: number },
) {
  return {
    ...settings,
    provider,
    proofs: createSealed<Begun>(clientSecret, 'capstan sign-in'),
    tokens: createSealed<KeptTokens>(clientSecret, 'capstan tokens'),
  };
}
