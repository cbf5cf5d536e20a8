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

export function classifyRefusal(error: unknown): SignInRefused {
  const { error: code, error_description: words }: ProviderFault = error as ProviderFault;
  const said = [code, words].filter((part) => typeof part === 'string').join(': ');
  const detail = said === '' ? String((error as Error).message) : said;
  return { refused: isDown(error as object) ? 'provider_down' : 'provider_refused', detail };
}

/** The provider does not renew it any more: revoked, expired, or the person is gone. */
export function isGrantOver(error: unknown): boolean {
  return (error as ProviderFault).error === 'invalid_grant';
}
