/** A routed call of this process: its caller, its secrets, and its claim in the database. */

import type { CallCaller } from '@capstan/core/call/caller';
import type { CallLog } from '@capstan/core/call/log-lines';
import type { CallProgress } from '@capstan/core/call/outcome';
import type { CallEnd, CallForms, ClaimedCall, RoutedCall } from '@capstan/core/call/types';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { GrowingCall } from '@capstan/core/money/holds';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import type { Redactor } from '@capstan/core/secrets/redaction';
import type { OpenSpan } from '@capstan/core/telemetry/telemetry';
import type { Claim, StepKey } from '../../db/attempt/attempt.ts';
import type { LaterAttempt } from '../../db/attempt/callback.ts';
import type { KeptAnswer } from '../../db/idempotency.ts';
import type { SlotUse } from './slot-leases.ts';

/** The attempt that sends the values, and the instance that gets them. */
export interface SecretUse {
  readonly number: number;
  readonly instance: Pick<InstanceSnapshot, 'instance_id' | 'endpoint'>;
}

export interface Revealed {
  /** With the values. */
  readonly input: JsonObject;
  readonly redactor: Redactor;
}

export interface CallSecrets {
  readonly mayReceive: (instance: InstanceSnapshot) => boolean;
  /** Part of the key of a cached result. */
  readonly cacheKey: readonly string[];
  /** Records the use, then decrypts. */
  readonly reveal: (use: SecretUse) => Promise<Revealed>;
  /** For the answer to a call that was sent with them. */
  readonly redactor: () => Promise<Redactor>;
}

/** Receives a part of the result, and the attempt that makes it. */
export type OnDelta = (delta: Json, attemptId: string) => void;

export interface CallRequest extends RoutedCall {
  readonly projectId: string;
  /** The run or the key whose call it is: that of the step, if it is of one. */
  readonly caller: CallCaller;
  /** The same for every attempt; sent as Idempotency-Key. */
  readonly key: string;
  /** Made for this call alone, so no earlier attempt has it. */
  readonly isKeyNew: boolean;
  readonly step: StepKey | null;
  /** B3: the owner knows of no earlier execution of the step; if there was one, the claim is refused. */
  readonly beginsStep?: boolean;
  /** With references in place of secrets. */
  readonly input: JsonObject;
  /** The secrets of the input. Default: it has none. */
  readonly secrets?: CallSecrets | null;
  /** Fields of the input that the instance's schema must declare: one that only lets them pass would ignore them. */
  readonly declaredFields?: readonly string[];
  /** Other forms of the input. Default: there are none. */
  readonly forms?: CallForms | undefined;
  /** The job whose files the call may name; it belongs to the project. */
  readonly jobId?: string;
  /** Sent at most once, so the claim must survive a crash of the database. */
  readonly isAtMostOnce: boolean;
  /** How long it may wait for a slot, or for an instance to appear. */
  readonly maxWaitMs: number;
  /** N4: it may wait in line, and whether it was called. Default: it never waits in line. */
  readonly inLine?: { readonly isCalled: boolean } | undefined;
  /** Its owner continues it when its answer comes later. Default: its process waits for the answer. */
  readonly parks?: boolean;
  /** Failures, and the cancel, that leave the step open. Default: none. */
  readonly holdsStep?: (code: ErrorCode) => boolean;
  /** Receives the call's progress, where the instance reports it. */
  readonly onProgress?: ((progress: CallProgress) => void) | undefined;
  /** Receives parts of the result as they are made. Default: the instance is not asked for them. */
  readonly onDelta?: OnDelta | undefined;
  /** Opens the log of each attempt. Default: no log is kept. */
  readonly openLog?: (origin: LogOrigin) => CallLog;
  /** Returns the answer to store under the caller's Idempotency-Key when the last attempt is settled. Default: none. */
  readonly keeps?: ((end: CallEnd) => KeptAnswer | null) | undefined;
}

/** The instance and attempt whose lines a log takes. */
export interface LogOrigin {
  readonly attempt: number;
  readonly endpoint: string;
}

export interface Claimed extends ClaimedCall {
  readonly claim: Claim;
  /** The one call that a half-open breaker lets through. */
  readonly isTrial: boolean;
  /** How its hold grows; null: it holds its worst case. */
  readonly growing: GrowingCall | null;
  /** What the parts of its answer, or its time, show of its cost; null: nothing. */
  readonly metered: GrowingCall | null;
  /** The units that it has used at its end; null: its cost does not grow. */
  readonly units: (ended: { readonly costUsd: number; readonly durationMs: number }) => number | null;
  /** Null: the claim is a row of its own. */
  readonly slot: SlotUse | null;
  /** What became of an attempt that was left to its instance. Default: it is to be sent. */
  readonly answered?: Pick<LaterAttempt, 'body' | 'duration_ms'>;
}

/** The open spans of attempts. */
export type AttemptSpans = WeakMap<Claimed, OpenSpan>;
