/** What a failed connection says about an instance. */
import { AddressRefused } from './guarded-dial.ts';

export type ProbeFault =
  /** Nothing listens there, or it hung up. */
  | { readonly kind: 'refused'; readonly detail: string }
  /** `connected` false: not even the TCP connect was answered, or the way there is broken. */
  | { readonly kind: 'timeout'; readonly connected: boolean; readonly detail: string }
  /** It answers that it cannot work now: 5xx or 429. */
  | { readonly kind: 'unhealthy'; readonly detail: string }
  /** It answers something else than what was asked for. */
  | { readonly kind: 'unusable'; readonly detail: string };

const refused = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EPIPE', 'UND_ERR_SOCKET']);
const unconnected = new Set([
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EMFILE',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const unanswered = new Set(['UND_ERR_BODY_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT']);

export function explainProbeError(error: unknown): ProbeFault {
  if (error instanceof AddressRefused) return { kind: 'unusable', detail: error.message };
  const { code = 'unknown fault' } = error as { code?: string };
  if (refused.has(code)) return { kind: 'refused', detail: `connection refused or broken (${code})` };
  if (unconnected.has(code)) return { kind: 'timeout', connected: false, detail: `no connection (${code})` };
  if (unanswered.has(code))
    return { kind: 'timeout', connected: true, detail: `no complete answer (${code})` };
  return { kind: 'unusable', detail: `not HTTP as expected (${code})` };
}
