/** Times that exclude each other: of retries, attempts and waits, and of what ends them. */

import { backoffMs, type RetrySettings } from '../../call/retry.ts';
import type { PipelineDefinition, RetryPolicy, StepDefinition } from '../../contracts/pipeline.ts';
import { formatDuration, parseDuration } from '../../duration.ts';
import { longestTotalMs, resolveStepSettings, stepKindOf } from '../step-settings.ts';
import type { DefinitionFinding } from './finding.ts';

/** Of a definition whose durations are within their ranges. */
export function checkTimes(definition: PipelineDefinition): DefinitionFinding[] {
  const { defaults, steps, timeout } = definition;
  return [
    ...checkPolicy(defaults?.retry ?? {}, '/defaults/retry'),
    ...steps.flatMap((step, index) => {
      const checked: CheckedStep = { definition, step, pointer: `/steps/${index}` };
      const ofRun = timeout === undefined ? [] : checkRunTimeout(checked, timeout);
      return stepKindOf(step) === 'call' ? [...ofRun, ...checkCall(checked)] : ofRun;
    }),
  ];
}

interface CheckedStep {
  readonly definition: PipelineDefinition;
  readonly step: StepDefinition;
  readonly pointer: string;
}

function exceeds(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && parseDuration(one) > parseDuration(other);
}

/** One policy with both is a mistake. */
function checkPolicy(
  { initial, max_delay, max, invalid_output = 0 }: RetryPolicy,
  pointer: string,
): DefinitionFinding[] {
  return [
    ...(exceeds(initial, max_delay)
      ? [conflict('error', `${pointer}/initial`, `initial ${initial} is longer than max_delay ${max_delay}`)]
      : []),
    ...(max === 0 && invalid_output > 0
      ? [conflict('error', `${pointer}/invalid_output`, onceOnly(invalid_output))]
      : []),
  ];
}

function onceOnly(invalidOutput: number): string {
  return `max is 0, so the call is sent once; invalid_output ${invalidOutput} would send it again`;
}

function conflict(
  severity: DefinitionFinding['severity'],
  pointer: string,
  message: string,
): DefinitionFinding {
  return { severity, code: 'retry_conflict', pointer, message };
}

function checkCall({ definition, step, pointer }: CheckedStep): DefinitionFinding[] {
  const { retry: own = {}, total_timeout: total, timeout = definition.defaults?.timeout } = step;
  const { retry, timeoutMs, totalTimeoutMs } = resolveStepSettings(definition, step);
  const inOne = checkPolicy(own, `${pointer}/retry`);
  if (inOne.length > 0) return inOne;
  const mixed = checkMixed({ definition, step, pointer });
  if (mixed.length > 0) return mixed;
  if (total !== undefined && timeout !== undefined && totalTimeoutMs < timeoutMs) {
    const message = `the total time of the step, ${total}, is shorter than the timeout of one attempt, ${timeout}`;
    return [
      { severity: 'warning', code: 'timeout_unreachable', pointer: `${pointer}/total_timeout`, message },
    ];
  }
  const written = { ...definition.defaults?.retry, ...own };
  const isCapped = total === undefined && totalTimeoutMs === longestTotalMs;
  if (Object.keys(written).length === 0 || (total === undefined && !isCapped)) return [];
  const limit = `total_timeout is ${total ?? formatDuration(totalTimeoutMs)}`;
  if (retry.max > 0 && written.initial !== undefined && firstPause(retry) >= totalTimeoutMs) {
    const at = own.initial === undefined ? 'total_timeout' : 'retry/initial';
    return [
      unreachable(
        `${pointer}/${at}`,
        `no retry follows a pause: initial is ${written.initial}, and ${limit}`,
      ),
    ];
  }
  return checkPauses(retry, totalTimeoutMs, {
    pointer:
      own.max === undefined && own.initial === undefined ? `${pointer}/total_timeout` : `${pointer}/retry`,
    limit,
  });
}

/** A retry at another instance, after a lost connection or a timeout, has no pause: it may still happen. */
function unreachable(pointer: string, message: string): DefinitionFinding {
  return { severity: 'warning', code: 'retry_unreachable', pointer, message };
}

/** A policy of a step, and one of the defaults. */
function checkMixed({ definition: { defaults = {} }, step, pointer }: CheckedStep): DefinitionFinding[] {
  const own = step.retry ?? {};
  const { initial, max_delay, max } = { ...defaults.retry, ...own };
  if (max === 0 && own.invalid_output) {
    return [conflict('warning', `${pointer}/retry/invalid_output`, onceOnly(own.invalid_output))];
  }
  const key = own.initial !== undefined ? 'initial' : own.max_delay !== undefined ? 'max_delay' : undefined;
  if (key === undefined || !exceeds(initial, max_delay)) return [];
  const message = `initial ${initial} is longer than max_delay ${max_delay}`;
  return [conflict('warning', `${pointer}/retry/${key}`, message)];
}

/** A pause without its jitter. */
function pauseBefore(retry: RetrySettings, number: number): number {
  return backoffMs(retry, number, 0.5);
}

function firstPause(retry: RetrySettings): number {
  return pauseBefore(retry, 1);
}

/** Attempts may take no time, so that pauses alone decide what certainly does not happen. */
function checkPauses(
  retry: RetrySettings,
  limitMs: number,
  { pointer, limit }: { readonly pointer: string; readonly limit: string },
): DefinitionFinding[] {
  let sum = 0;
  let fitting = 0;
  for (let number = 1; number <= retry.max; number++) {
    sum += pauseBefore(retry, number);
    if (sum < limitMs) fitting = number;
  }
  if (fitting === retry.max) return [];
  return [
    unreachable(
      pointer,
      `${fitting} of the ${retry.max} pauses before retries fit: all take ${formatDuration(sum)}, and ${limit}`,
    ),
  ];
}

/** @param limit `timeout` of the pipeline */
function checkRunTimeout({ definition, step, pointer }: CheckedStep, limit: string): DefinitionFinding[] {
  const keys = ['timeout', 'total_timeout', 'wait'] as const;
  const late = keys.flatMap((key): DefinitionFinding[] => {
    if (!exceeds(step[key], limit)) return [];
    const message = `the run ends after ${limit}, before ${key} ${step[key]}`;
    return [{ severity: 'warning', code: 'timeout_unreachable', pointer: `${pointer}/${key}`, message }];
  });
  const initial = step.retry?.initial;
  const { retry } = resolveStepSettings(definition, step);
  if (initial === undefined || retry.max === 0 || firstPause(retry) < parseDuration(limit)) return late;
  const message = `no retry follows a pause: initial is ${initial}, and the timeout of the run is ${limit}`;
  return [...late, unreachable(`${pointer}/retry/initial`, message)];
}
