/** A routed call as its driver sees it: what is asked for, what is held while it is made, and how it ends. */
import type { Decision } from '../../contracts/decision.ts';
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { CancelSignal } from '../cancellation.ts';
import type { InstanceSnapshot, RouteConstraints } from '../routing/types.ts';
import type { Verdict } from './judge.ts';
import type { NoClaim } from './no-claim.ts';
import type { CallOutcome } from './outcome.ts';
import type { RetrySettings } from './retry.ts';

export interface RoutedCall {
  /** Its ceiling is that of all attempts together, and so is its time, unless `resendsWithinMs` says more. */
  readonly route: RouteConstraints;
  /**
   * What was lost, or not answered in time, is sent to another instance at once, as long as `retry.max` and this time
   * of all attempts together allow. Default: whether it is sent again is its owner's choice.
   */
  readonly resendsWithinMs?: number;
  readonly retry: RetrySettings;
  /** How often the owner has come with this call, from 1; spaces out what is not counted. */
  readonly round: number;
  readonly signal: CancelSignal;
  /** Its place in a batch of calls, of which some follow from others (C7). Default: it is in none. */
  readonly batch?: CallInBatch | undefined;
}

export interface CallInBatch {
  /** Resolves to whether all that the call follows from was stored; null: it was, before the call began. */
  readonly stored: Promise<boolean> | null;
  /** Hears of a success before it is stored. */
  readonly onAnswered: (end: CallSuccess) => void;
}

/** A slot, and the money for it, held on an instance. */
export interface ClaimedCall {
  readonly kind: 'claimed';
  /** As it was when it was chosen. */
  readonly instance: InstanceSnapshot;
  /** 1 for the first attempt of the key. */
  readonly number: number;
  /** Counted failures of the key before this attempt. */
  readonly counted: number;
  readonly timeoutMs: number;
  /** Nano-USD. */
  readonly reserved: bigint;
  readonly decision: Decision;
}

export type ClaimEnd<Claimed extends ClaimedCall> =
  | Claimed
  /** An earlier attempt had answered already. */
  | { readonly kind: 'answered'; readonly output: Json }
  | { readonly kind: 'closed' }
  /** Nothing could take it now; the decision says why. */
  | ({ readonly kind: 'none'; readonly decision: Decision } & NoClaim);

/** One request to one instance, and what it means. */
export interface Delivery {
  readonly outcome: CallOutcome;
  readonly verdict: Verdict;
  readonly durationMs: number;
  /** Counted failures of the key, this one included. */
  readonly counted: number;
  /** What it costs, nano-USD, and whether that is known or assumed. */
  readonly amount: bigint;
  readonly certainty: 'exact' | 'estimated';
}

export interface SuccessfulAttempt {
  /** 1 when the first attempt succeeded. */
  readonly number: number;
  readonly endpoint: string;
  readonly cost_usd: number;
  readonly duration_ms: number;
  readonly decision: Decision;
}

/** The decision of the last attempt, or why there was none. */
interface Explained {
  readonly decision: Decision | null;
}

export interface CallSuccess {
  readonly kind: 'succeeded';
  readonly output: Json;
  /** Null when an earlier attempt had answered already. */
  readonly attempt: SuccessfulAttempt | null;
}

export type CallEnd =
  | CallSuccess
  | (Explained & {
      readonly kind: 'failed' | 'unknown';
      readonly error: Failure;
      /** Its last attempt was settled with it. */
      readonly isRecorded: boolean;
    })
  /** Not done, and time may cure it. */
  | (Explained & { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number })
  | { readonly kind: 'cancelled' }
  /** A later attempt owns the step, or the step has ended. */
  | { readonly kind: 'closed' };
