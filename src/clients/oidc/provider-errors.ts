/** What went wrong at the provider: it does not answer, or it answered and refuses. */
import type { SignInRefused } from '../../contracts/sign-in.ts';

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

/** What went wrong beneath, as far as it has words: the library's own are often only that something did. */
function readWords(fault: unknown): readonly string[] {
  if (fault instanceof Response) return [String(fault.status)];
  if (!(fault instanceof Error)) return [];
  const words = fault.message === '' ? (fault as ProviderFault).code : fault.message;
  return [...(typeof words === 'string' ? [words] : []), ...readWords(fault.cause)];
}

export function classifyRefusal(error: unknown): SignInRefused {
  const { error: code, error_description: words }: ProviderFault = error as ProviderFault;
  const said = [code, words].filter((part) => typeof part === 'string').join(': ');
  const detail = said === '' ? [...new Set(readWords(error))].join(': ') : said;
  return { refused: isDown(error as object) ? 'provider_down' : 'provider_refused', detail };
}

/**
 * What a provider says of a person whom it does not renew: over (RFC 6749, §5.2), refused, or to be signed in anew (OpenID
 * Connect Core 1.0, §3.1.2.6). Other codes, as `invalid_client` and `unauthorized_client`, speak of us.
 */
const ofThePerson = new Set([
  'invalid_grant',
  'access_denied',
  'interaction_required',
  'login_required',
  'consent_required',
]);

export function isGrantOver(error: unknown): boolean {
  const { error: code } = error as ProviderFault;
  return typeof code === 'string' && ofThePerson.has(code);
}

/** A scope that is missing (RFC 6750, §3.1) is a fault of the settings, and says nothing of the person. */
function lacksScope({ cause }: ProviderFault): boolean {
  const challenges = Array.isArray(cause) ? cause : [];
  return challenges.some(({ parameters }) => parameters?.error === 'insufficient_scope');
}

/** Of a token that the provider has given just now: it is withdrawn, or the person is. */
export function isTokenRefused(error: unknown): boolean {
  const fault = error as ProviderFault;
  const status = fault.status ?? fault.cause?.status;
  return status === 401 || (status === 403 && !lacksScope(fault));
}
