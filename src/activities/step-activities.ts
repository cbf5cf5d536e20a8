/**
 * Steps as activities, one by one and in batches, and the messages between them and the workflow.
 *
 * `executeStep` heartbeats while the call is open, passes a cancellation on, and makes Temporal retry in time. A result
 * of at most 4 KiB is written to the history, so that the Web UI shows it; a larger one stays in the database.
 */

import type { Json } from '@capstan/core/contracts/primitives';
import type { Awaiting } from '@capstan/core/contracts/run-step';
import { holdsExact } from '@capstan/core/json/numbers';
import { nameUnit } from '@capstan/core/workflow-names';
import type { StepEnd, WaitingStep } from '@capstan/core/workflow-payloads';
import { reportMs } from '@capstan/core/workflow-payloads';
import { CancelledFailure, type Context } from '@temporalio/activity';
import type { ClosedRun } from '../use-cases/runs/closing.ts';
import type { StepControl, StepRequest } from '../use-cases/steps/call.ts';
import type {
  InlineBatchResult,
  InlineRequest,
  InlineResult,
  InlineUnit,
} from '../use-cases/steps/inline.ts';
import { escalatedFailure, finalFailure, laterFailure, whileBeating } from './failures.ts';

const largestInHistoryBytes = 4_096;

export function asStepActivity(
  heartbeatIntervalMs: number,
  { rounds = 0 }: Pick<StepRequest, 'rounds'>,
  execute: (control: StepControl) => Promise<StepEnd>,
): Promise<StepActivityResult> {
  return whileBeating(heartbeatIntervalMs, async (signal, context, onProgress) => {
    const round = rounds + context.info.attempt;
    const end = await execute({
      round,
      remainingMs: remainingMs(context),
      signal,
      onProgress,
      askedAtMs: context.info.scheduledTimestampMs,
    });
    return end.kind === 'succeeded' ? toDone(end) : toOther(end);
  });
}

type Succeeded = Extract<StepEnd, { kind: 'succeeded' }>;

function toDone({ attempt, output }: Succeeded): StepActivityDone {
  return {
    endpoint: attempt?.endpoint ?? null,
    cost_usd: attempt?.cost_usd ?? 0,
    duration_ms: attempt?.duration_ms ?? 0,
    ...(isForHistory(output) ? { output } : {}),
  };
}

/** Temporal's converter would change a number that a double does not keep. */
function isForHistory(output: Json): boolean {
  return Buffer.byteLength(JSON.stringify(output)) <= largestInHistoryBytes && !holdsExact(output);
}

/** @throws a failure by which Temporal ends, cancels or retries the step */
function toOther(end: Exclude<StepEnd, Succeeded>): StepActivityResult {
  switch (end.kind) {
    case 'waiting':
      return { waiting: toWaiting(end) };
    case 'skipped':
      return { skipped: true };
    case 'failed':
    case 'unknown':
      throw finalFailure(end.error);
    case 'escalated':
      throw escalatedFailure(end.error, end.place);
    case 'retry':
      throw laterFailure(end.error, end.delayMs);
    case 'cancelled':
      throw new CancelledFailure('the step was cancelled');
  }
}

function toWaiting({ awaiting, until, ref, leftMs, rounds }: WaitingStep): StepActivityWaiting {
  return {
    awaiting,
    until: until === null ? null : until.toISOString(),
    ...(ref === null ? {} : { ref }),
    ...(leftMs === undefined ? {} : { left_ms: Math.round(leftMs) }),
    ...(rounds === undefined ? {} : { rounds }),
  };
}

/**
 * Returns what is left of the step's time. It spans processes, so it uses the wall clock. Temporal's own timeout comes
 * later, for a step whose end no worker reports.
 */
function remainingMs({ info }: Context): number {
  const spent = Math.max(0, Date.now() - info.scheduledTimestampMs);
  return Math.max(0, info.scheduleToCloseTimeoutMs - reportMs - spent);
}

// `executeInline` as a local activity. Its result is one event of the history, so outputs are included only while they
// are few. B10: it ignores a cancellation. A batch is over before its run can learn of a cancel, so only a stalled
// machine cancels it (the local activity is late, or the run moved to another worker), and calls that were sent then
// are still wanted.

const mostInHistoryBytes = 65_536;

export async function asInlineActivity(
  { units }: InlineRequest,
  execute: () => Promise<InlineBatchResult>,
): Promise<InlineBatchEnd> {
  const startedAt = performance.now();
  const { results, closed } = await execute();
  const took_ms = Math.round(performance.now() - startedAt);
  const ends = nameEnds(units, withFewOutputs(results));
  return { ends, took_ms, ...(closed === null ? {} : { closed }) };
}

/** @param ends of the units, in their order */
export function nameEnds(
  units: readonly Pick<InlineBatchUnit, 'step_id' | 'item'>[],
  ends: readonly InlineEnd[],
): InlineBatchEnd['ends'] {
  return Object.fromEntries(
    units.map(({ step_id, item }, at) => [nameUnit(step_id, item), ends[at] ?? 'again']),
  );
}

function withFewOutputs(results: readonly InlineResult[]): InlineEnd[] {
  let left = mostInHistoryBytes;
  return results.map((result) => {
    if (typeof result === 'string') return result;
    if (result.kind === 'waiting') return { waiting: toWaiting(result) };
    const { output, ...done } = toDone(result);
    left -= output === undefined ? 0 : Buffer.byteLength(JSON.stringify(output));
    return output === undefined || left < 0 ? done : { output, ...done };
  });
}

// The messages between a workflow and the activities that execute steps. They are written to histories.

export type StepActivityRequest = StepRequest;
export type InlineBatchUnit = InlineUnit;

export interface StepActivityDone {
  readonly endpoint: string | null;
  readonly cost_usd: number;
  readonly duration_ms: number;
  /** Absent when it is larger than 4 KiB. */
  readonly output?: Json;
}

/** A waiting step does not count against parallelism until a signal ends its wait, or `until` (RFC 3339) has come. */
interface StepActivityWaiting {
  readonly awaiting: Awaiting;
  readonly until: string | null;
  /** What is left of the step's total timeout, which does not run during the wait. Absent: all of it. */
  readonly left_ms?: number;
  /** How often its call was made. */
  readonly rounds?: number;
  /** The review or the run that the step waits for. */
  readonly ref?: { readonly review_id?: string; readonly run_id?: string };
}

export interface StepActivityWaits {
  readonly waiting: StepActivityWaiting;
}

export type StepActivityResult =
  | StepActivityDone
  | StepActivityWaits
  /** A person skipped it. */
  | { readonly skipped: true };

/**
 * The result of a unit of a batch. waiting: it waits, and the queue continues with it. left: the unit has not begun.
 * again: it has begun and has not succeeded yet; executed once more from the queue, it returns its end from the rows,
 * or waits for its open call.
 */
export type InlineEnd = StepActivityDone | StepActivityWaits | 'left' | 'again';

export interface InlineBatchEnd {
  /**
   * By the names of the units (`nameUnit`), which identify them to readers of the history. In the order of the request:
   * JSON keeps it, as no name is a number.
   */
  readonly ends: Readonly<Record<string, InlineEnd>>;
  readonly took_ms: number;
  /** The run was closed with them. */
  readonly closed?: ClosedRun;
}
