/**
 * Checks the keys of steps and their values where the contract fixes the form but cannot check the meaning: durations,
 * semver ranges, keys of another kind of step, levels of a ladder.
 */
import semver from 'semver';
import type {
  EscalatePolicy,
  PipelineDefinition,
  RetryPolicy,
  StepDefinition,
} from '../../contracts/pipeline.ts';
import { parseDuration } from '../../duration.ts';
import { delimiters } from '../../expression/language.ts';
import { findAffinityFault } from '../../residency/affinity-key.ts';
import {
  dispatchWish,
  isModel,
  mostRedeliveries,
  resolveEscalation,
  type StepKind,
  stepKindOf,
} from '../step-settings.ts';
import { checkTimes } from './check-retries.ts';
import { type DefinitionFinding, type FindingCode, refuseExpression } from './finding.ts';

interface DurationRule {
  readonly atLeast: string;
  readonly atMost: string;
}

/**
 * The limits for one attempt, a step, the wait for a slot, a run, the pause before a retry, a wait, review or event, the pause
 * between rounds, all rounds, an instance, and a cached result.
 */
const durationRules = {
  timeout: { atLeast: '1ms', atMost: '24h' },
  total_timeout: { atLeast: '1ms', atMost: '7d' },
  queue: { atLeast: '1ms', atMost: '90d' },
  run: { atLeast: '1ms', atMost: '7d' },
  pause: { atLeast: '0ms', atMost: '24h' },
  wait: { atLeast: '1ms', atMost: '90d' },
  round: { atLeast: '0ms', atMost: '7d' },
  repeat: { atLeast: '1ms', atMost: '90d' },
  capability: { atLeast: '0ms', atMost: '7d' },
  cache: { atLeast: '0ms', atMost: '90d' },
} as const satisfies Record<string, DurationRule>;

export function checkSettings(definition: PipelineDefinition): DefinitionFinding[] {
  const findings = [
    ...checkDuration(definition.timeout, durationRules.run, '/timeout'),
    ...checkShared(definition.defaults ?? {}, '/defaults'),
    ...definition.steps.flatMap((step, index) => checkStep(step, `/steps/${index}`)),
  ];
  const isInRange = findings.every(({ code }) => code !== 'duration_out_of_range');
  return isInRange ? [...findings, ...checkTimes(definition)] : findings;
}

function checkStep(step: StepDefinition, pointer: string): DefinitionFinding[] {
  const { total_timeout, wait, review, event, repeat, wait_for_capability } = step;
  const { capability_version, affinity } = step;
  return [
    ...checkShared(step, pointer),
    ...checkDuration(total_timeout, durationRules.total_timeout, `${pointer}/total_timeout`),
    ...checkDuration(wait, durationRules.wait, `${pointer}/wait`),
    ...checkDuration(review?.timeout, durationRules.wait, `${pointer}/review/timeout`),
    ...checkDuration(event?.timeout, durationRules.wait, `${pointer}/event/timeout`),
    ...checkDuration(repeat?.pause, durationRules.round, `${pointer}/repeat/pause`),
    ...checkDuration(repeat?.timeout, durationRules.repeat, `${pointer}/repeat/timeout`),
    ...checkDuration(wait_for_capability, durationRules.capability, `${pointer}/wait_for_capability`),
    ...checkRange(capability_version, `${pointer}/capability_version`),
    ...checkAffinity(affinity, `${pointer}/affinity`),
  ];
}

function checkAffinity(text: string | undefined, pointer: string): DefinitionFinding[] {
  const message = text === undefined ? null : findAffinityFault(text);
  return message === null ? [] : [{ severity: 'error', code: 'affinity_invalid', pointer, message }];
}

function checkShared(
  {
    timeout,
    queue_timeout,
    retry,
    cache,
  }: Pick<StepDefinition, 'timeout' | 'queue_timeout' | 'retry' | 'cache'>,
  pointer: string,
): DefinitionFinding[] {
  return [
    ...checkDuration(timeout, durationRules.timeout, `${pointer}/timeout`),
    ...checkDuration(queue_timeout, durationRules.queue, `${pointer}/queue_timeout`),
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
      message: `${range.includes(delimiters.open) ? `${refuseExpression('capability_version')}; ` : ''}${JSON.stringify(range)} is not a semver range`,
      suggestion: 'write for example "^1.2.0", ">=1.2 <3" or "1.x"',
    },
  ];
}

type StepField = keyof StepDefinition;

const kindKeys = [
  'capability',
  'pipeline',
  'wait',
  'review',
  'event',
  'set',
] as const satisfies readonly StepField[];

const keyOf: Readonly<Record<StepKind, (typeof kindKeys)[number]>> = {
  call: 'capability',
  run: 'pipeline',
  wait: 'wait',
  review: 'review',
  event: 'event',
  set: 'set',
};

/** Keys that apply only to some kinds of steps, with those kinds. */
const kindsOfKey: Partial<Readonly<Record<StepField, readonly StepKind[]>>> = {
  input: ['call', 'run', 'review'],
  priority: ['call', 'run'],
  budget_ceiling_usd: ['call', 'run'],
  optional: ['call', 'review'],
  repeat: ['call', 'run', 'set'],
  retry: ['call'],
  timeout: ['call'],
  queue_timeout: ['call'],
  total_timeout: ['call'],
  escalate: ['call'],
  cache: ['call'],
  capability_version: ['call'],
  tags: ['call'],
  affinity: ['call'],
  dispatch: ['call'],
  wait_for_capability: ['call'],
  allow_output: ['call'],
};

const childTimeout = 'set timeout at the top of the child pipeline: it limits each of its runs';

/** What does for these kinds what the key does for others. */
const hints: Partial<Readonly<Record<StepKind, Readonly<Record<string, string>>>>> = {
  run: {
    timeout: childTimeout,
    total_timeout: childTimeout,
    retry: 'give the steps of the child pipeline their own retry; a child run is not repeated',
  },
  review: {
    timeout: 'the limit of a review is review.timeout',
    total_timeout: 'the limit of a review is review.timeout',
  },
  event: {
    timeout: 'the limit of an event is event.timeout',
    total_timeout: 'the limit of an event is event.timeout',
    optional: 'event.on_timeout: continue lets the run continue without the event',
  },
};

/** Checks that a step has exactly one kind, and that its other keys apply to that kind. */
export function checkKinds(definition: PipelineDefinition): DefinitionFinding[] {
  return definition.steps.flatMap((step, index) => {
    const pointer = `/steps/${index}`;
    const seen = kindKeys.filter((key) => step[key] !== undefined);
    if (seen.length !== 1) return [wrongKind(seen, pointer)];
    return [...checkKeys(step, pointer), ...checkDispatch(definition, step, pointer)];
  });
}

function wrongKind(seen: readonly string[], pointer: string): DefinitionFinding {
  return seen.length === 0
    ? {
        severity: 'error',
        code: 'kind_missing',
        pointer,
        message: `a step has one of ${kindKeys.join(', ')}; this has none`,
      }
    : {
        severity: 'error',
        code: 'kind_several',
        pointer: `${pointer}/${seen[1]}`,
        message: `a step has one of ${kindKeys.join(', ')}; this has ${seen.join(' and ')}`,
      };
}

function checkKeys(step: StepDefinition, pointer: string): DefinitionFinding[] {
  const kind = stepKindOf(step);
  return Object.keys(step).flatMap((key): DefinitionFinding[] => {
    const allowed = kindsOfKey[key as StepField];
    if (allowed === undefined || step[key as StepField] === undefined || allowed.includes(kind)) return [];
    const owners = allowed.map((owner) => keyOf[owner]).join(', ');
    const message = `${key} has no meaning for a step with ${keyOf[kind]}; it belongs to a step with ${owners}`;
    const suggestion = hints[kind]?.[key];
    return [
      { severity: 'error', code: 'key_not_applicable', pointer: `${pointer}/${key}`, message, suggestion },
    ];
  });
}

/** An unqueued step is executed again when its worker is lost. */
function checkDispatch(
  definition: PipelineDefinition,
  step: StepDefinition,
  pointer: string,
): DefinitionFinding[] {
  if (dispatchWish(definition, step) !== 'inline' || stepKindOf(step) !== 'call') return [];
  if (mostRedeliveries(definition, step) > 0) return [];
  const message = 'an inline step may be delivered again, but retry.max is 0; use dispatch: queued';
  const place = step.dispatch === undefined ? pointer : `${pointer}/dispatch`;
  return [{ severity: 'error', code: 'dispatch_conflict', pointer: place, message }];
}

/** Contradictory escalation settings, and settings without effect. */
export function checkEscalation(definition: PipelineDefinition): DefinitionFinding[] {
  return [
    ...checkDefaults(definition.defaults?.escalate ?? {}),
    ...definition.steps.flatMap((step, index) => checkStepLevels(definition, step, `/steps/${index}`)),
  ];
}

function checkDefaults({ start_level = 0, max_level = 4 }: EscalatePolicy): DefinitionFinding[] {
  return start_level > max_level
    ? [levelsSwapped(start_level, max_level, '/defaults/escalate/start_level')]
    : [];
}

function checkStepLevels(
  definition: PipelineDefinition,
  step: StepDefinition,
  pointer: string,
): DefinitionFinding[] {
  if (stepKindOf(step) !== 'call') return [];
  const { escalate = {} } = step;
  const resolved = resolveEscalation(definition, step);
  const findings: DefinitionFinding[] = [];
  if (isModel(step)) {
    if (escalate.enabled === true) {
      const message = `${step.capability} is never escalated: a model does not correct the input of a model`;
      findings.push(warning('escalation_unused', `${pointer}/escalate/enabled`, message));
    }
  } else if (resolved.start_level > resolved.max_level) {
    const key = escalate.start_level === undefined ? 'max_level' : 'start_level';
    if (escalate[key] !== undefined) {
      findings.push(levelsSwapped(resolved.start_level, resolved.max_level, `${pointer}/escalate/${key}`));
    }
  }
  if (resolved.needs_person && escalate.repair === 'apply') {
    const message = 'retry.max is 0, so Capstan does not repeat the call before a reviewer decides';
    findings.push(warning('escalation_unused', `${pointer}/escalate/repair`, message));
  }
  if (resolved.enabled && resolved.on_exhausted === 'wait') return findings;
  for (const key of ['allow_output', 'optional'] as const) {
    if (step[key] !== true) continue;
    const message = `${key} has no effect: this step never waits for a review`;
    findings.push(warning('review_unused', `${pointer}/${key}`, message));
  }
  return findings;
}

function levelsSwapped(start: number, max: number, pointer: string): DefinitionFinding {
  return {
    severity: 'error',
    code: 'escalation_levels_swapped',
    pointer,
    message: `start_level ${start} is above max_level ${max}`,
  };
}

function warning(code: FindingCode, pointer: string, message: string): DefinitionFinding {
  return { severity: 'warning', code, pointer, message };
}
