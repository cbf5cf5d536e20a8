/** Values whose form the contract allows but whose meaning it cannot check: durations, semver ranges. */
import semver from 'semver';
import type { PipelineDefinition, RetryPolicy, StepDefinition } from '../../../contracts/pipeline.ts';
import { parseDuration } from '../../duration.ts';
import { resolveStepSettings } from '../compile/step-settings.ts';
import { stepKindOf } from '../step-kind.ts';
import type { DefinitionFinding } from './finding.ts';

interface DurationRule {
  readonly atLeast: string;
  readonly atMost: string;
}

/** One attempt; a whole step; a whole run; the pause before a retry; for time or a person; for an instance; of a result. */
const durationRules = {
  timeout: { atLeast: '1ms', atMost: '24h' },
  total_timeout: { atLeast: '1ms', atMost: '7d' },
  run: { atLeast: '1ms', atMost: '7d' },
  pause: { atLeast: '0ms', atMost: '24h' },
  wait: { atLeast: '1ms', atMost: '90d' },
  capability: { atLeast: '0ms', atMost: '7d' },
  cache: { atLeast: '0ms', atMost: '90d' },
} as const satisfies Record<string, DurationRule>;

export function checkSettings(definition: PipelineDefinition): DefinitionFinding[] {
  return [
    ...checkDuration(definition.timeout, durationRules.run, '/timeout'),
    ...checkShared(definition.defaults ?? {}, '/defaults'),
    ...definition.steps.flatMap((step, index) => checkStep(definition, step, `/steps/${index}`)),
  ];
}

function checkStep(
  definition: PipelineDefinition,
  step: StepDefinition,
  pointer: string,
): DefinitionFinding[] {
  const { total_timeout, wait, review, wait_for_capability, capability_version } = step;
  const findings = [
    ...checkShared(step, pointer),
    ...checkDuration(total_timeout, durationRules.total_timeout, `${pointer}/total_timeout`),
    ...checkDuration(wait, durationRules.wait, `${pointer}/wait`),
    ...checkDuration(review?.timeout, durationRules.wait, `${pointer}/review/timeout`),
    ...checkDuration(wait_for_capability, durationRules.capability, `${pointer}/wait_for_capability`),
    ...checkRange(capability_version, `${pointer}/capability_version`),
  ];
  const isComparable = total_timeout !== undefined && stepKindOf(step) === 'call' && findings.length === 0;
  return isComparable ? checkTotal(definition, step, total_timeout, pointer) : findings;
}

function checkTotal(
  definition: PipelineDefinition,
  step: StepDefinition,
  total: string,
  pointer: string,
): DefinitionFinding[] {
  const timeout = step.timeout ?? definition.defaults?.timeout;
  const { timeoutMs, totalTimeoutMs } = resolveStepSettings(definition, step);
  if (timeout === undefined || totalTimeoutMs >= timeoutMs) return [];
  const message = `the step ends after ${total}, before one attempt has had its ${timeout}`;
  return [{ severity: 'warning', code: 'timeout_unreachable', pointer: `${pointer}/total_timeout`, message }];
}

function checkShared(
  { timeout, retry, cache }: Pick<StepDefinition, 'timeout' | 'retry' | 'cache'>,
  pointer: string,
): DefinitionFinding[] {
  return [
    ...checkDuration(timeout, durationRules.timeout, `${pointer}/timeout`),
    ...checkRetry(retry ?? {}, `${pointer}/retry`),
    ...checkDuration(cache?.ttl, durationRules.cache, `${pointer}/cache/ttl`),
  ];
}

function checkRetry({ initial, max_delay }: RetryPolicy, pointer: string): DefinitionFinding[] {
  return [
    ...checkDuration(initial, durationRules.pause, `${pointer}/initial`),
    ...checkDuration(max_delay, durationRules.pause, `${pointer}/max_delay`),
  ];
}

function checkDuration(
  text: string | undefined,
  { atLeast, atMost }: DurationRule,
  pointer: string,
): DefinitionFinding[] {
  if (text === undefined) return [];
  const duration = parseDuration(text);
  if (duration >= parseDuration(atLeast) && duration <= parseDuration(atMost)) return [];
  const message = `${text.slice(0, 40)} is outside ${atLeast} to ${atMost}`;
  return [{ severity: 'error', code: 'duration_out_of_range', pointer, message }];
}

function checkRange(range: string | undefined, pointer: string): DefinitionFinding[] {
  if (range === undefined || semver.validRange(range) !== null) return [];
  return [
    {
      severity: 'error',
      code: 'semver_range_invalid',
      pointer,
      message: `${JSON.stringify(range)} is no semver range`,
      suggestion: 'write for example "^1.2.0", ">=1.2 <3" or "1.x"',
    },
  ];
}
