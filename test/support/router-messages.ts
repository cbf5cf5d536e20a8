/** Messages between a test and a router process. */
import type { DeregisterAnswer } from '@capstan/core/contracts/capability';
import type { Json, JsonObject, Priority } from '@capstan/core/contracts/primitives';

/** A call that a router process has to make. */
export interface CallOrder {
  readonly key: string;
  /** Its key is the caller's Idempotency-Key, as in the API, and the call is retried under it while it is in flight. */
  readonly isKeyed: boolean;
  /** The key is new. */
  readonly isKeyNew: boolean;
  readonly projectId: string;
  readonly capability: string;
  readonly priority: Priority;
  readonly ceilingUsd: number | null;
  readonly timeoutMs: number;
  readonly retryMax: number;
  readonly maxWaitMs: number;
  /** How long a call with a retryable end is retried, as steps are; 0 = never. */
  readonly patienceMs: number;
  /** Time after which the caller cancels; null = never. */
  readonly cancelAfterMs: number | null;
  readonly input: JsonObject;
}

/** How a call ended. */
export interface CallReport {
  readonly key: string;
  readonly kind: 'succeeded' | 'failed' | 'unknown' | 'retry' | 'cancelled' | 'closed' | 'thrown';
  /** Null for a success. */
  readonly code: string | null;
  readonly message: string | null;
  /** Of the attempt that succeeded. */
  readonly endpoint: string | null;
  readonly costUsd: number;
  readonly durationMs: number;
  /** The answer to a keyed call; null for every other. */
  readonly answer: Json | null;
}

/** A DELETE of an instance, as a server receives it. */
export interface Goodbye {
  readonly projectId: string;
  readonly name: string;
  readonly endpoint: string;
  readonly generation?: number;
}

export type ToRouter =
  | { readonly kind: 'refresh'; readonly id: number }
  | {
      readonly kind: 'run';
      readonly id: number;
      readonly orders: readonly CallOrder[];
      readonly concurrency: number;
    }
  | { readonly kind: 'deregister'; readonly id: number; readonly goodbye: Goodbye }
  | { readonly kind: 'stop' };

export type FromRouter =
  | { readonly kind: 'ready' }
  | { readonly kind: 'ended'; readonly id: number; readonly report: CallReport }
  | { readonly kind: 'done'; readonly id: number; readonly deregistered?: DeregisterAnswer };
