/**
 * `executeStep` as an activity: heartbeats while the call is open, passes a cancellation on, and tells Temporal
 * when to come again. A result of at most 4 KiB travels into the history, so that the Web UI shows it; a larger
 * one stays in the database.
 */
import { CancelledFailure, type Context } from '@temporalio/activity';
import type { Json } from '../contracts/primitives.ts';
import type { Awaiting } from '../contracts/run.ts';
import { callTimeOf } from '../core/call/step-time.ts';
import type { ExecuteStep, StepEnd, StepRequest } from '../services/steps/execute-step.ts';
import type { WaitingStep } from '../services/steps/wait-for-call.ts';
import { escalatedFailure, finalFailure, laterFailure } from './failures.ts';
import { type FollowedStep, type Follower, followSteps } from './follow-steps.ts';
import { whileBeating } from './while-beating.ts';

/** An inline step may bring along those that follow it. */
export interface StepActivityRequest extends StepRequest {
  /** Executed in this order, as long as each succeeds and little time has passed. */
  readonly followers?: readonly Follower[];
}

export interface StepActivityDone {
  readonly endpoint: string | null;
  readonly cost_usd: number;
  readonly duration_ms: number;
  /** Absent when it is larger than 4 KiB. */
  readonly output?: Json;
  /** Those that were brought along and executed. */
  readonly followed?: readonly FollowedStep[];
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
/** Steps that are brought along begin within this time. */
const longestLineMs = 250;

export function createExecuteStepActivity(executeStep: ExecuteStep, heartbeatIntervalMs: number) {
  return ({ followers = [], ...request }: StepActivityRequest): Promise<StepActivityResult> =>
    whileBeating(heartbeatIntervalMs, async (signal, context) => {
      const round = context.info.attempt;
      const execute = (own: StepRequest, mostMs = Number.POSITIVE_INFINITY): Promise<StepEnd> =>
        executeStep(own, { round, remainingMs: Math.min(mostMs, remainingMs(context)), signal });
      const startedAt = performance.now();
      const end = await execute(request);
      switch (end.kind) {
        case 'succeeded': {
          const hasTime = (): boolean => !signal.aborted && performance.now() - startedAt < longestLineMs;
          const executeNext = async ({ total_timeout_ms, ...follower }: Follower) => {
            const next = await execute({ ...request, ...follower }, total_timeout_ms);
            return next.kind === 'succeeded' ? toDone(next) : null;
          };
          const followed = await followSteps(followers, hasTime, executeNext);
          return { ...toDone(end), ...(followed.length === 0 ? {} : { followed }) };
        }
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
}

type Succeeded = Extract<StepEnd, { kind: 'succeeded' }>;

function toDone({ attempt, output }: Succeeded): StepActivityDone {
  return {
    endpoint: attempt?.endpoint ?? null,
    cost_usd: attempt?.cost_usd ?? 0,
    duration_ms: attempt?.duration_ms ?? 0,
    ...(JSON.stringify(output).length <= largestInHistory ? { output } : {}),
  };
}

function toWaiting({ awaiting, until, ref }: WaitingStep) {
  return {
    awaiting,
    until: until === null ? null : until.toISOString(),
    ...(ref === null ? {} : { ref }),
  };
}

/**
 * Time until Temporal gives the step up, less a margin in which its end can still be told. It spans processes, so
 * it goes by the wall clock; Temporal's own timer stands behind it. A local activity may have no such limit.
 */
function remainingMs({ info }: Context): number {
  const total = info.scheduleToCloseTimeoutMs || info.startToCloseTimeoutMs || Number.POSITIVE_INFINITY;
  const spent = Math.max(0, Date.now() - info.scheduledTimestampMs);
  return Math.max(0, callTimeOf(total) - spent);
}
