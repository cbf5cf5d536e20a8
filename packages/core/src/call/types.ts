/** A routed call as its driver sees it: the request, the claim while it is in flight, and its end. */

import type { CancelSignal } from '../cancellation.ts';
import type { Decision } from '../contracts/decision.ts';
import type { ClientProtocol } from '../contracts/model-protocol.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import type { LineWish } from '../routing/call-line.ts';
import type { InstanceSnapshot, Residency, RouteConstraints } from '../routing/types.ts';
import type { Verdict } from './judge.ts';
import type { NoClaim } from './no-claim.ts';
import type { CallOutcome } from './outcome.ts';
import type { RetrySettings } from './retry.ts';
import type { WrongAnswers } from './wrong-answer.ts';

export interface RoutedCall {
  /** The ceiling covers all attempts together; so does the time, unless `resendsWithinMs` extends it. */
  readonly route: RouteConstraints;
  /**
   * Time for all attempts together, within which a lost or timed-out request goes to another instance at once, up to
   * `retry.max`. Default: the owner of the call decides whether to resend it.
   */
  readonly resendsWithinMs?: number;
  readonly retry: RetrySettings;
  /** How often the owner has made this call, from 1; spaces out uncounted retries. */
  readonly round: number;
  readonly signal: CancelSignal;
  /** C10: set by the driver when a wrong answer is asked for again. Default: none was given. */
  readonly wrong?: WrongAnswers;
  /** C8: whether a part of the result has been passed on. Default: none is. */
  readonly hasPassedOn?: () => boolean;
  /** C9: whether the owner holds further attempts now. Default: it never does. */
  readonly isHeld?: (() => Promise<boolean>) | undefined;
  /** The call's position in a batch where calls follow from others (C7). Default: not in a batch. */
  readonly batch?: CallInBatch | undefined;
}

export interface CallInBatch {
  /**
   * Resolves to whether everything that the call follows from was stored; null: it was stored before the call began.
   */
  readonly stored: Promise<boolean> | null;
  /** Called on success, before the result is stored. */
  readonly onAnswered: (end: CallSuccess) => void;
}

/** A slot and the budget for it, reserved on an instance. */
export interface ClaimedCall {
  readonly kind: 'claimed';
  /** The instance at the time of the choice. */
  readonly instance: InstanceSnapshot;
  /** 1 for the first attempt of the key. */
  readonly number: number;
  /** Counted failures of the key before this attempt. */
  readonly counted: number;
  /** Wrong answers of the key before this attempt. Default: those of this call. */
  readonly wrong?: WrongAnswers | undefined;
  readonly timeoutMs: number;
  /** What the call finds loaded; undefined: it has no key. */
  readonly residency?: Residency | undefined;
  /** Its worst case, or its first hold, which grows, nano-USD. */
  readonly reserved: bigint;
  /** What it may cost beyond that, nano-USD (B1). */
  readonly risk: bigint;
  readonly decision: Decision;
}

export type ClaimEnd<Claimed extends ClaimedCall> = WaitedForSlot & ClaimOrNone<Claimed>;

interface WaitedForSlot {
  /** Time in ms for which the claim waited for a slot, which counts against no timeout. Default 0. */
  readonly waitedMs?: number | undefined;
}

type ClaimOrNone<Claimed extends ClaimedCall> =
  | Claimed
  /** An earlier attempt has already succeeded. */
  | { readonly kind: 'answered'; readonly output: Json }
  | { readonly kind: 'closed' }
  /** No instance was available; the decision gives the reason. */
  | ({ readonly kind: 'none'; readonly decision: Decision } & NoClaim);

/** The input of a call by what its instance understands; the call's own input is in the neutral form of models. */
export interface CallForms {
  /** The protocol of the client. */
  readonly protocol: ClientProtocol;
  /** The input for an instance that speaks it. */
  readonly native: () => JsonObject;
  /** Fields of the neutral form that only an instance gets whose schema declares them. */
  readonly optional: readonly string[];
  /** Learns, for each attempt, which form its instance gets, and which of these fields it does not. */
  readonly onChosen: (form: ChosenForm) => void;
}

export interface ChosenForm {
  readonly isNative: boolean;
  readonly left: readonly string[];
}

/** One request to one instance, and its verdict. */
export interface Delivery {
  readonly outcome: CallOutcome;
  readonly verdict: Verdict;
  readonly durationMs: number;
  /** Counted failures of the key, including this one. */
  readonly counted: number;
  /** What it held at its end, nano-USD. */
  readonly reserved: bigint;
  /** It was stopped on its way, because its budgets had no more room. */
  readonly isStopped: boolean;
  /** The cost in nano-USD, and whether it is known or assumed. */
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

/** The decision of the last attempt, or the reason for having none. */
interface Explained {
  readonly decision: Decision | null;
}

export interface CallSuccess {
  readonly kind: 'succeeded';
  readonly output: Json;
  /** Null when an earlier attempt had already succeeded. */
  readonly attempt: SuccessfulAttempt | null;
}

interface CallRetry {
  readonly kind: 'retry';
  readonly error: Failure;
  readonly delayMs: number;
  /** Every instance that could take the call is full: it waits for a slot, not for a time. */
  readonly isFull: boolean;
  /** The slot that it waits for. */
  readonly wish?: LineWish | undefined;
  /** Time in ms for which the call has waited for slots. */
  readonly waitedMs: number;
}

/** C11: the instance has accepted the call and sends its answer later. */
export interface CallLater {
  readonly kind: 'later';
  /** The deadline of the attempt. */
  readonly until: Date;
}

export type CallEnd =
  | CallSuccess
  | (Explained & {
      readonly kind: 'failed' | 'unknown';
      readonly error: Failure;
      /** The end was stored together with its last attempt. */
      readonly isRecorded: boolean;
    })
  /** Not done; a later attempt may succeed. */
  | (Explained & CallRetry)
  | { readonly kind: 'cancelled' }
  /** A later attempt owns the step, or the step has ended. */
  | { readonly kind: 'closed' };
