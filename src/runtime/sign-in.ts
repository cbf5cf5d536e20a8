import type { Logger } from 'pino';
import { createOpenIdProvider } from '../clients/oidc/openid-provider.ts';
import type { Config } from '../config.ts';
import type { Db } from '../db/connect.ts';
import { createSignInService, type SignInService } from '../services/access/sign-in.ts';
import { readSignInSettings } from '../services/access/sign-in-settings.ts';

interface SignInTools {
  readonly db: Db;
  readonly logger: Logger;
  readonly publicUrl: () => string;
}

/** Null: no provider is configured. @throws Error for a configuration that is wrong */
export async function createSignIn(config: Config, tools: SignInTools): Promise<SignInService | null> {
  const settings = await readSignInSettings(config);
  if (settings === null) return null;
  const { issuer, clientId, clientSecret, rules, name } = settings;
  const { OIDC_SCOPES: scopes, OIDC_GROUPS_CLAIM: groupsClaim, OIDC_RECHECK_S: recheckS } = config;
  const provider = createOpenIdProvider({ issuer, clientId, clientSecret, scopes, groupsClaim });
  return createSignInService({ ...tools, provider, rules, name, clientSecret, recheckS });
}
