/** A routed call of this process: who asks for it, and what it holds in the database while it is made. */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import type { CallLog } from '../../core/call/log-lines.ts';
import type { CallProgress } from '../../core/call/outcome.ts';
import type { CallEnd, ClaimedCall, RoutedCall } from '../../core/call/types.ts';
import type { Claim, StepKey } from '../../db/attempt/attempt.ts';
import type { KeptAnswer } from '../../db/idempotency.ts';
import type { Ctx } from '../context.ts';

export interface CallRequest extends RoutedCall {
  readonly projectId: string;
  /** The same for every attempt; sent as Idempotency-Key. */
  readonly key: string;
  /** Made for this call alone, so that no earlier attempt of it exists. */
  readonly isKeyNew: boolean;
  readonly step: StepKey | null;
  /** B3: no execution of the step came before, as far as its owner knows; where one has, the claim is refused. */
  readonly beginsStep?: boolean;
  /** The run that pays for a call that no step of it makes. */
  readonly runId?: string | null;
  readonly input: JsonObject;
  /** The job whose files it works on, known to be the project's. */
  readonly jobId?: string;
  /** Sent at most once, so that the claim must survive a crash of the database. */
  readonly isAtMostOnce: boolean;
  /** For a call that may come. */
  readonly isPrefetch?: boolean;
  /** How long it may wait for a slot, or for an instance to appear. */
  readonly maxWaitMs: number;
  /** Failures, and the cancel, after which its step stays open. Default: none. */
  readonly holdsStep?: (code: ErrorCode) => boolean;
  /** Hears how far it has come, where its instance says so. */
  readonly onProgress?: ((progress: CallProgress) => void) | undefined;
  /** Opens the log of each attempt. Default: no log is kept. */
  readonly openLog?: (origin: LogOrigin) => CallLog;
  /** Gives the answer to store under the caller's Idempotency-Key when the last attempt is settled. Default: none. */
  readonly keeps?: (end: CallEnd) => KeptAnswer | null;
}

/** Whose lines a log takes. */
export interface LogOrigin {
  readonly attempt: number;
  readonly endpoint: string;
}

export interface Claimed extends ClaimedCall {
  readonly claim: Claim;
  /** The one call that a half-open breaker lets through. */
  readonly isTrial: boolean;
}

/** The parts of a process that a routed call works with. */
export type RoutingCtx = Omit<Ctx, 'callCapability'>;

/** Makes one routed call. */
export type CallCapability = (request: CallRequest) => Promise<CallEnd>;

/** The routed calls of one process. */
export interface CallRouter {
  readonly callCapability: CallCapability;
  /** Claims nothing ahead any more. Resolves when no such claim is under way. */
  close(): Promise<void>;
}
