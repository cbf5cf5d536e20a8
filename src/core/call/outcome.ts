/** How one `POST /exec` ended, as seen from the wire. */
import type { JsonObject } from '../../contracts/primitives.ts';

/** What an instance says with a status that is no success. */
export interface AnsweredError {
  readonly status: number;
  readonly message: string;
  /** Its header `x-error-code`; undefined when it has none. */
  readonly errorCode?: string;
}

export type CallOutcome =
  /** 2xx with a JSON object. */
  | { readonly kind: 'answered'; readonly body: JsonObject }
  /** 4xx other than 429, as JSON: the capability refused or failed on this input. */
  | ({ readonly kind: 'rejected' } & AnsweredError)
  /** 5xx other than 503. */
  | ({ readonly kind: 'failed' } & AnsweredError)
  /** 429 or 503: it refuses work for now. */
  | { readonly kind: 'overloaded'; readonly status: number; readonly retryAfterMs: number | null }
  /** No connection: nothing was sent. */
  | { readonly kind: 'not_sent'; readonly message: string }
  /** The connection broke after the request was sent. */
  | { readonly kind: 'lost'; readonly message: string }
  | { readonly kind: 'timeout'; readonly timeoutMs: number }
  /** HTML, a redirect, an empty or broken body: what stands in front of an instance, or one that dies, answers so. */
  | { readonly kind: 'invalid'; readonly message: string }
  /** A whole answer of a wrong form, which the same request would be given again. */
  | { readonly kind: 'malformed'; readonly message: string }
  | { readonly kind: 'too_large'; readonly limitBytes: number }
  /** The output does not match the capability's own schema. */
  | { readonly kind: 'output_invalid'; readonly message: string }
  /** The run no longer wants it. */
  | { readonly kind: 'cancelled' }
  /** Not sent, because earlier attempts that nobody answered have used up the retries. */
  | { readonly kind: 'withheld' }
  /** Stopped before it was sent. */
  | { readonly kind: 'unsent' }
  /** This process stops; another one will ask again. */
  | { readonly kind: 'abandoned' };

/** What the status of a whole error answer says; who is asked too often, or is not ready, refuses work for now. */
export function kindOfStatus(status: number): 'overloaded' | 'failed' | 'rejected' {
  if (status === 429 || status === 503) return 'overloaded';
  return status >= 500 ? 'failed' : 'rejected';
}

/** @param faults what the instance's own schema says against its output */
export function outputInvalid(
  faults: readonly { readonly pointer: string; readonly message: string }[],
): CallOutcome {
  const findings = faults.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return { kind: 'output_invalid', message: `the answer does not match the output schema: ${findings}` };
}
