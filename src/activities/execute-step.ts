/**
 * `executeStep` as an activity: heartbeats while the call is open, passes a cancellation on, and tells Temporal
 * when to come again. A result of at most 4 KiB travels into the history, so that the Web UI shows it; a larger
 * one stays in the database.
 */
import { CancelledFailure, type Context } from '@temporalio/activity';
import type { Json } from '../contracts/primitives.ts';
import type { Awaiting } from '../contracts/run.ts';
import type { ExecuteStep, StepRequest } from '../services/steps/execute-step.ts';
import type { WaitingStep } from '../services/steps/wait-for-call.ts';
import { escalatedFailure, finalFailure, laterFailure } from './failures.ts';
import { whileBeating } from './while-beating.ts';

export interface StepActivityDone {
  readonly endpoint: string | null;
  readonly cost_usd: number;
  readonly duration_ms: number;
  /** Absent when it is larger than 4 KiB. */
  readonly output?: Json;
}

export type StepActivityResult =
  | StepActivityDone
  /** It takes no room until somebody says that the wait is over, or `until` (RFC 3339) has come. */
  | {
      readonly waiting: {
        readonly awaiting: Awaiting;
        readonly until: string | null;
        /** What the wait is about. */
        readonly ref?: { readonly review_id?: string; readonly run_id?: string };
      };
    }
  /** By a person. */
  | { readonly skipped: true };

const largestInHistory = 4_096;

export const createExecuteStepActivity =
  (executeStep: ExecuteStep, heartbeatIntervalMs: number) =>
  (request: StepRequest): Promise<StepActivityResult> =>
    whileBeating(heartbeatIntervalMs, async (signal, context) => {
      const round = context.info.attempt;
      const end = await executeStep(request, { round, remainingMs: remainingMs(context), signal });
      switch (end.kind) {
        case 'succeeded':
          return {
            endpoint: end.attempt?.endpoint ?? null,
            cost_usd: end.attempt?.cost_usd ?? 0,
            duration_ms: end.attempt?.duration_ms ?? 0,
            ...(JSON.stringify(end.output).length <= largestInHistory ? { output: end.output } : {}),
          };
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
    });

const toWaiting = ({ awaiting, until, ref }: WaitingStep) => ({
  awaiting,
  until: until === null ? null : until.toISOString(),
  ...(ref === null ? {} : { ref }),
});

/**
 * Time until Temporal gives the step up, less a margin in which its end can still be told. It spans processes, so
 * it goes by the wall clock; Temporal's own timer stands behind it. A local activity may have no such limit.
 */
const remainingMs = ({ info }: Context): number => {
  const total = info.scheduleToCloseTimeoutMs || info.startToCloseTimeoutMs || Number.POSITIVE_INFINITY;
  const spent = Math.max(0, Date.now() - info.scheduledTimestampMs);
  return Math.max(0, total - spent - Math.min(500, total / 10));
};
