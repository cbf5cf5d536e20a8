/** Values whose form the contract allows but whose meaning it cannot check: durations, semver ranges. */
import semver from 'semver';
import type { PipelineDefinition, RetryPolicy, StepDefinition } from '../../contracts/pipeline.ts';
import { parseDuration } from '../duration.ts';
import type { DefinitionFinding } from './finding.ts';

interface DurationRule {
  readonly atLeast: string;
  readonly atMost: string;
}

/** One attempt; a whole step with its waits; a whole run; the pause before a retry. */
const durationRules = {
  timeout: { atLeast: '1ms', atMost: '24h' },
  total_timeout: { atLeast: '1ms', atMost: '7d' },
  run: { atLeast: '1ms', atMost: '7d' },
  pause: { atLeast: '0ms', atMost: '24h' },
} as const satisfies Record<string, DurationRule>;

export const checkSettings = ({ timeout, defaults, steps }: PipelineDefinition): DefinitionFinding[] => [
  ...checkDuration(timeout, durationRules.run, '/timeout'),
  ...checkShared(defaults ?? {}, '/defaults'),
  ...steps.flatMap((step, index) => [
    ...checkShared(step, `/steps/${index}`),
    ...checkDuration(step.total_timeout, durationRules.total_timeout, `/steps/${index}/total_timeout`),
    ...checkRange(step.capability_version, `/steps/${index}/capability_version`),
  ]),
];

const checkShared = (
  { timeout, retry }: Pick<StepDefinition, 'timeout' | 'retry'>,
  pointer: string,
): DefinitionFinding[] => [
  ...checkDuration(timeout, durationRules.timeout, `${pointer}/timeout`),
  ...checkRetry(retry ?? {}, `${pointer}/retry`),
];

const checkRetry = ({ initial, max_delay }: RetryPolicy, pointer: string): DefinitionFinding[] => [
  ...checkDuration(initial, durationRules.pause, `${pointer}/initial`),
  ...checkDuration(max_delay, durationRules.pause, `${pointer}/max_delay`),
];

const checkDuration = (
  text: string | undefined,
  { atLeast, atMost }: DurationRule,
  pointer: string,
): DefinitionFinding[] => {
  if (text === undefined) return [];
  const duration = parseDuration(text);
  if (duration >= parseDuration(atLeast) && duration <= parseDuration(atMost)) return [];
  const message = `${text.slice(0, 40)} is outside ${atLeast} to ${atMost}`;
  return [{ severity: 'error', code: 'duration_out_of_range', pointer, message }];
};

const checkRange = (range: string | undefined, pointer: string): DefinitionFinding[] => {
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
};
