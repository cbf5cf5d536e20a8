/**
 * `executeStep` as an activity: it heartbeats while the call is open, passes a cancellation on, and tells Temporal
 * when to come again. A result of at most 4 KiB travels into the history, so that the Web UI shows it; a larger
 * one stays in the database.
 */
import { CancelledFailure, type Context } from '@temporalio/activity';
import { callTimeOf } from '../core/call/step-time.ts';
import type { ExecuteStep, StepEnd, StepRequest } from '../services/steps/execute-step.ts';
import type { WaitingStep } from '../services/steps/step-end.ts';
import { escalatedFailure, finalFailure, laterFailure } from './failures.ts';
import type { StepActivityDone, StepActivityResult, StepActivityWaiting } from './step-messages.ts';
import { whileBeating } from './while-beating.ts';

const largestInHistoryBytes = 4_096;

export function createStepActivity(executeStep: ExecuteStep, heartbeatIntervalMs: number) {
  return (request: StepRequest): Promise<StepActivityResult> =>
    whileBeating(heartbeatIntervalMs, async (signal, context, onProgress) => {
      const round = context.info.attempt;
      const end = await executeStep(request, {
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

export function toDone({ attempt, output }: Succeeded): StepActivityDone {
  return {
    endpoint: attempt?.endpoint ?? null,
    cost_usd: attempt?.cost_usd ?? 0,
    duration_ms: attempt?.duration_ms ?? 0,
    ...(Buffer.byteLength(JSON.stringify(output)) <= largestInHistoryBytes ? { output } : {}),
  };
}

/** @throws what makes Temporal end the step, cancel it, or ask for it again */
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

function toWaiting({ awaiting, until, ref }: WaitingStep): StepActivityWaiting {
  return {
    awaiting,
    until: until === null ? null : until.toISOString(),
    ...(ref === null ? {} : { ref }),
  };
}

/**
 * Time until Temporal gives the step up, less a margin in which its end can still be told. It spans processes, so
 * it goes by the wall clock; Temporal's own timer stands behind it.
 */
function remainingMs({ info }: Context): number {
  const spent = Math.max(0, Date.now() - info.scheduledTimestampMs);
  return Math.max(0, callTimeOf(info.scheduleToCloseTimeoutMs) - spent);
}
