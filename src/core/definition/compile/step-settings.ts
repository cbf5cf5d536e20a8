/** What a step runs with: its own keys, else the pipeline's defaults, else ours. */
import type { DispatchWish } from '../../../contracts/dispatch.ts';
import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import type { Priority } from '../../../contracts/primitives.ts';
import { defaultRetry, type RetrySettings } from '../../call/retry-policy.ts';
import { parseDuration } from '../../duration.ts';

export interface StepSettings {
  readonly retry: RetrySettings;
  /** Limit of one attempt. */
  readonly timeoutMs: number;
  readonly totalTimeoutMs: number;
  /** Null = the run's, which takes `defaults.priority` unless its caller asks otherwise. */
  readonly priority: Priority | null;
  readonly ceilingUsd: number | null;
}

const defaultTimeoutMs = 300_000;
const defaultTotalTimeoutMs = 3_600_000;

/** Whether a step asks to be queued, or not to be. */
export function dispatchWish(
  { defaults = {} }: Pick<PipelineDefinition, 'defaults'>,
  { dispatch }: Pick<StepDefinition, 'dispatch'>,
): DispatchWish {
  return dispatch ?? defaults.dispatch ?? 'auto';
}

/** Deliveries of a step's call after the first one. */
export function mostRedeliveries(
  { defaults = {} }: Pick<PipelineDefinition, 'defaults'>,
  { retry = {} }: Pick<StepDefinition, 'retry'>,
): number {
  return retry.max ?? defaults.retry?.max ?? defaultRetry.max;
}

export function resolveStepSettings(definition: PipelineDefinition, step: StepDefinition): StepSettings {
  const { defaults = {} } = definition;
  const retry = { ...defaults.retry, ...step.retry };
  const timeout = step.timeout ?? defaults.timeout;
  const timeoutMs = timeout === undefined ? defaultTimeoutMs : parseDuration(timeout);
  const max = mostRedeliveries(definition, step);
  return {
    retry: {
      max,
      initialMs: retry.initial === undefined ? defaultRetry.initialMs : parseDuration(retry.initial),
      factor: retry.factor ?? defaultRetry.factor,
      maxDelayMs: retry.max_delay === undefined ? defaultRetry.maxDelayMs : parseDuration(retry.max_delay),
    },
    timeoutMs,
    totalTimeoutMs:
      step.total_timeout === undefined
        ? Math.max(defaultTotalTimeoutMs, timeoutMs * (max + 2))
        : parseDuration(step.total_timeout),
    priority: step.priority ?? null,
    ceilingUsd: step.budget_ceiling_usd ?? defaults.budget_ceiling_usd ?? null,
  };
}
