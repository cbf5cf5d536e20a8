/** The provider as it is configured: all of its settings or none. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { GroupRules } from '../../contracts/sign-in.ts';

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

/** Null: none is configured. @throws Error that says what is missing or wrong, and what is allowed */
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
