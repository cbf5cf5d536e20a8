/**
 * One execution of a step: its input, a routed call, what became of it. Whatever it answers is already in the
 * database. A failure that is held leaves the step open, because a ladder goes on with it.
 */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure, Json, JsonObject } from '../../contracts/primitives.ts';
import type { CompiledStep } from '../../core/pipeline/compile-definition.ts';
import { resolveStepSettings, type StepSettings } from '../../core/pipeline/step-settings.ts';
import type { StopSignal } from '../../core/stop.ts';
import type { StepKey } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { endStep, listStepResults } from '../../db/step.ts';
import { holdStep } from '../../db/step-hold.ts';
import type { CallRequest, CallRouter, SuccessfulAttempt } from '../routing/call-capability.ts';
import { longestWaitMs } from '../routing/waiting-line.ts';
import type { RunContext } from './run-context.ts';
import type { StepResults } from './step-results.ts';

export type StepExecution =
  | {
      readonly kind: 'succeeded';
      readonly output: Json;
      readonly attempt: SuccessfulAttempt | null;
    }
  | { readonly kind: 'failed' | 'unknown'; readonly error: Failure }
  | { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number }
  | { readonly kind: 'cancelled' };

export interface StepControl {
  /** 1 for the first time that the owner comes with this step. */
  readonly round: number;
  /** What is left of the step's total timeout. */
  readonly remainingMs: number;
  readonly signal: StopSignal;
}

export interface RunStepDependencies {
  readonly db: Db;
  readonly results: StepResults;
  readonly callCapability: CallRouter['callCapability'];
}

export interface StepWork {
  readonly context: RunContext;
  readonly step: CompiledStep;
  readonly key: StepKey;
  readonly input: JsonObject;
  /** Failures after which the step stays open. */
  readonly holds: (code: ErrorCode) => boolean;
}

export const runStep = async (
  { db, results, callCapability }: RunStepDependencies,
  work: StepWork,
  { round, remainingMs, signal }: StepControl,
): Promise<StepExecution> => {
  const beganAt = performance.now();
  const { key } = work;
  const settings = resolveStepSettings(work.context.definition, work.step.definition);
  const end = await callCapability(toCall(work, settings, { round, remainingMs, signal }));
  switch (end.kind) {
    case 'succeeded':
      // After a failed attempt the step has cost more than this attempt: let the database say how much.
      if (end.attempt?.number === 1 && key.revision === 0) {
        results.remember(key.run_id, key.step_id, end.output, end.attempt.cost_usd);
      }
      return end;
    case 'failed':
    case 'unknown':
      if (!end.isRecorded) await recordFailure(db, work, end.error);
      return { kind: end.kind, error: end.error };
    case 'closed':
      return readEnd(db, key);
    case 'retry': {
      const left = remainingMs - (performance.now() - beganAt);
      if (end.delayMs + shortestRoundMs < left) return end;
      const error = outOfTime(end.error, settings.totalTimeoutMs);
      await recordFailure(db, work, error);
      return { kind: 'failed', error };
    }
    case 'cancelled':
      return end;
  }
};

/** The Idempotency-Key of a step's calls. */
export const callKeyOf = ({ run_id, step_id, item, revision }: StepKey): string =>
  `${run_id}.${step_id}.${item}.${revision}`;

const toCall = (
  { context, step: { definition }, key, input, holds }: StepWork,
  settings: StepSettings,
  { round, remainingMs, signal }: StepControl,
): CallRequest => ({
  projectId: context.project_id,
  key: callKeyOf(key),
  isKeyNew: false,
  step: key,
  isAtMostOnce: settings.retry.max === 0,
  input,
  route: {
    capability: definition.capability,
    versionRange: definition.capability_version ?? null,
    tags: definition.tags ?? [],
    priority: settings.priority ?? context.priority,
    ceilingUsd: lowest(settings.ceilingUsd, context.ceilingUsd),
    timeoutMs: Math.max(1, Math.min(settings.timeoutMs, remainingMs)),
  },
  retry: settings.retry,
  round,
  maxWaitMs: Math.min(longestWaitMs, remainingMs),
  signal,
  holdsStep: holds,
});

/** With less time than this, no call is begun. */
const shortestRoundMs = 100;

/** Of a failure that no attempt has written. */
const recordFailure = async (
  db: Db,
  { key, holds }: Pick<StepWork, 'key' | 'holds'>,
  error: Failure,
): Promise<void> => {
  if (!holds(error.code as ErrorCode)) return endStep(db, key, 'failed', error);
  await holdStep(db, key, 'retrying', { error, data: { error: { ...error } } });
};

const outOfTime = (last: Failure, totalTimeoutMs: number): Failure => ({
  code: 'step_timeout',
  message: `not done within ${totalTimeoutMs} ms; last: ${last.message}`,
  details: { code: last.code, ...(last.details === undefined ? {} : { last: last.details }) },
});

const lowest = (a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : Math.min(a, b);

/** The end that somebody else wrote. While there is none, another attempt is on its way: come again. */
const readEnd = async (db: Db, { run_id, step_id }: StepKey): Promise<StepExecution> => {
  const [row] = await listStepResults(db, run_id, [step_id]);
  const error = row?.error ?? { code: 'contact_lost', message: 'a later attempt has taken over' };
  switch (row?.state) {
    case 'succeeded':
      return { kind: 'succeeded', output: row.output, attempt: null };
    case 'failed':
    case 'unknown':
      return { kind: row.state, error };
    case 'cancelled':
    case 'skipped':
      return { kind: 'cancelled' };
    default:
      return { kind: 'retry', error, delayMs: 1_000 };
  }
};
