/**
 * An OpenID provider: code flow with PKCE, state and nonce, the signature of every ID token checked. Its library
 * is loaded and its addresses are discovered at the first sign-in, so a provider that is down keeps no
 * server from starting.
 */

import type { SignInRefused } from '@capstan/core/contracts/sign-in';
import { AppError } from '@capstan/core/errors/app-error';
import type { Configuration } from 'openid-client';
import {
  createLogoutTokens,
  type EndByNotice,
  type Identity,
  readGroups,
  readPerson,
} from './openid-claims.ts';

// What went wrong at the provider: it does not answer, or it answered and refuses.

interface ProviderFault {
  readonly code?: unknown;
  readonly error?: unknown;
  readonly error_description?: unknown;
  readonly status?: unknown;
  readonly cause?: { readonly status?: unknown } | null;
}

const silent = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT']);

function isDown(error: object): boolean {
  const { code, status, cause }: ProviderFault = error;
  if (typeof code === 'string' && silent.has(code)) return true;
  const seen = status ?? cause?.status;
  if (typeof seen === 'number') return seen >= 500;
  return error instanceof TypeError; // what fetch throws when there is no connection
}

/** Reads the messages of the causes: the library's own message is often only that something failed. */
function readWords(fault: unknown): readonly string[] {
  if (fault instanceof Response) return [String(fault.status)];
  if (!(fault instanceof Error)) return [];
  const words = fault.message === '' ? (fault as ProviderFault).code : fault.message;
  return [...(typeof words === 'string' ? [words] : []), ...readWords(fault.cause)];
}

function classifyRefusal(error: unknown): SignInRefused {
  const { error: code, error_description: words }: ProviderFault = error as ProviderFault;
  const said = [code, words].filter((part) => typeof part === 'string').join(': ');
  const detail = said === '' ? [...new Set(readWords(error))].join(': ') : said;
  return { refused: isDown(error as object) ? 'provider_down' : 'provider_refused', detail };
}

/**
 * The codes by which a provider does not renew a person: expired (RFC 6749, §5.2), refused, or a new sign-in is needed
 * (OpenID Connect Core 1.0, §3.1.2.6). Other codes, as `invalid_client` and `unauthorized_client`, are about us.
 */
const ofThePerson = new Set([
  'invalid_grant',
  'access_denied',
  'interaction_required',
  'login_required',
  'consent_required',
]);

function isGrantOver(error: unknown): boolean {
  const { error: code } = error as ProviderFault;
  return typeof code === 'string' && ofThePerson.has(code);
}

/** A scope that is missing (RFC 6750, §3.1) is a fault of the settings, and no evidence about the person. */
function lacksScope({ cause }: ProviderFault): boolean {
  const challenges = Array.isArray(cause) ? cause : [];
  return challenges.some(({ parameters }) => parameters?.error === 'insufficient_scope');
}

/** Whether the provider refuses a token that it has just given: the token or the person is withdrawn. */
function isTokenRefused(error: unknown): boolean {
  const fault = error as ProviderFault;
  const status = fault.status ?? fault.cause?.status;
  return status === 401 || (status === 403 && !lacksScope(fault));
}

type Library = typeof import('openid-client');

interface ProviderSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Separated by spaces. */
  readonly scopes: string;
  /** Which claim holds the groups. */
  readonly groupsClaim: string;
}

/** Proves that a sign-in is ended by the browser that began it. */
export interface SignInProof {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface OpenIdProvider {
  readonly begin: (
    redirectUri: string,
  ) => Promise<{ readonly url: string; readonly proof: SignInProof } | SignInRefused>;
  /** @param answer the address at which the browser came back */
  readonly finish: (answer: URL, proof: SignInProof) => Promise<Identity | SignInRefused>;
  /** Null: the provider reports that the sign-in is over. @throws when it cannot be asked now */
  readonly renew: (known: Pick<Identity, 'subject' | 'idToken'> & Renewable) => Promise<Renewal | null>;
  /** Null: it has no address to sign out at, or does not answer. */
  readonly logoutUrl: (idToken: string | null, backTo: string) => Promise<string | null>;
  /** By a logout token that it sends. False: it is none of its, not for us, or used. @throws AppError `unavailable` */
  readonly takeLogout: (token: string, end: EndByNotice) => Promise<boolean>;
}

interface Renewable {
  readonly refreshToken: string;
}

/** The new tokens of a renewal. They are stored first: the old ones may no longer be valid. */
interface Renewal {
  readonly tokens: Pick<Identity, 'idToken' | 'refreshToken'>;
  /** Reads the identity again; null: the provider does not let the person stay. @throws while it cannot be reached */
  readonly identify: () => Promise<Identity | null>;
}

interface Connected {
  readonly library: Library;
  readonly config: Configuration;
}

const timeoutS = 5;

async function connect({ issuer, clientId, clientSecret }: ProviderSettings): Promise<Connected> {
  const library = await import('openid-client');
  const basic = library.ClientSecretBasic(clientSecret);
  const post = library.ClientSecretPost(clientSecret);
  const config = await library.discovery(
    new URL(issuer),
    clientId,
    clientSecret,
    (server, ...request) => {
      const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
      return (methods.includes('client_secret_basic') ? basic : post)(server, ...request);
    },
    {
      timeout: timeoutS,
      execute: [
        library.enableNonRepudiationChecks,
        ...(issuer.startsWith('http:') ? [library.allowInsecureRequests] : []),
      ],
    },
  );
  return { library, config };
}

type Tokens = Awaited<ReturnType<Library['authorizationCodeGrant']>>;

/** Claims of the ID token, and the further claims of the provider's answer. */
async function readIdentity(
  { library, config }: Connected,
  tokens: Tokens,
  known: { readonly subject?: string; readonly groupsClaim: string },
): Promise<Omit<Identity, 'idToken' | 'refreshToken'>> {
  const told = tokens.claims() ?? {};
  const subject = known.subject ?? tokens.claims()?.sub ?? '';
  const { userinfo_endpoint, issuer } = config.serverMetadata();
  const more =
    userinfo_endpoint === undefined ? {} : await library.fetchUserInfo(config, tokens.access_token, subject);
  const claims = { ...told, ...more };
  return { issuer, subject, ...readPerson(claims), groups: readGroups(claims, known.groupsClaim) };
}

type Way = () => Promise<Connected>;

/** A try that fails is forgotten, so the next request tries again. */
function createWay(settings: ProviderSettings): Way {
  let connecting: Promise<Connected> | null = null;
  return () => {
    connecting ??= connect(settings).catch((error: unknown) => {
      connecting = null;
      throw error;
    });
    return connecting;
  };
}

async function writeRequest({ library, config }: Connected, redirectUri: string, scopes: string) {
  const proof: SignInProof = {
    state: library.randomState(),
    nonce: library.randomNonce(),
    verifier: library.randomPKCECodeVerifier(),
  };
  const isOffline = scopes.split(' ').includes('offline_access');
  const url = library.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: scopes,
    state: proof.state,
    nonce: proof.nonce,
    code_challenge: await library.calculatePKCECodeChallenge(proof.verifier),
    code_challenge_method: 'S256',
    ...(isOffline ? { prompt: 'consent' } : {}), // without it no provider may give one
  });
  return { url: url.href, proof };
}

/** Signing in: there and back. */
function createPassage(way: Way, { scopes, groupsClaim }: ProviderSettings) {
  return {
    begin: async (redirectUri: string) => {
      try {
        return await writeRequest(await way(), redirectUri, scopes);
      } catch (error) {
        return classifyRefusal(error);
      }
    },
    finish: async (answer: URL, { state, nonce, verifier }: SignInProof) => {
      try {
        const connected = await way();
        const tokens = await connected.library.authorizationCodeGrant(connected.config, answer, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const identity = await readIdentity(connected, tokens, { groupsClaim });
        const { id_token: idToken = null, refresh_token: refreshToken = null } = tokens;
        return { ...identity, idToken, refreshToken };
      } catch (error) {
        return classifyRefusal(error);
      }
    },
  };
}

function nullIf(isRefusal: (error: unknown) => boolean) {
  return (error: unknown): null => {
    if (isRefusal(error)) return null;
    throw error;
  };
}

function createRenewal(way: Way, { groupsClaim }: ProviderSettings): OpenIdProvider['renew'] {
  return async ({ subject, idToken, refreshToken }) => {
    const connected = await way();
    const given = await connected.library
      .refreshTokenGrant(connected.config, refreshToken)
      .catch(nullIf(isGrantOver));
    if (given === null) return null;
    const tokens = { idToken: given.id_token ?? idToken, refreshToken: given.refresh_token ?? refreshToken };
    const identify = async (): Promise<Identity | null> => {
      const known = { subject, groupsClaim };
      const identity = await readIdentity(connected, given, known).catch(nullIf(isTokenRefused));
      return identity === null ? null : { ...identity, ...tokens };
    };
    return { tokens, identify };
  };
}

export function createOpenIdProvider(settings: ProviderSettings): OpenIdProvider {
  const way = createWay(settings);
  const logoutTokens = createLogoutTokens(settings.clientId);
  return {
    ...createPassage(way, settings),
    renew: createRenewal(way, settings),

    logoutUrl: async (idToken, backTo) => {
      const connected = await way().catch(() => null);
      if (connected?.config.serverMetadata().end_session_endpoint === undefined) return null;
      const url = connected.library.buildEndSessionUrl(connected.config, {
        post_logout_redirect_uri: backTo,
        ...(idToken === null ? {} : { id_token_hint: idToken }),
      });
      return url.href;
    },

    takeLogout: async (token, end) => {
      const connected = await way().catch((cause) => {
        throw new AppError('unavailable', 'the OpenID provider does not answer', { cause });
      });
      const { issuer, jwks_uri } = connected.config.serverMetadata();
      return jwks_uri !== undefined && logoutTokens.take(token, { issuer, keysAt: jwks_uri }, end);
    },
  };
}
