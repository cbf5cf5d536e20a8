/** The kind of a step and its settings: its own keys, else the pipeline's defaults, else the built-in ones. */

import { backoffMs, defaultRetry, mostAttempts, type RetrySettings, timeOf } from '../call/retry.ts';
import type { DispatchWish, OnBudget } from '../contracts/decision.ts';
import type {
  CachePolicy,
  EscalatePolicy,
  PipelineDefinition,
  RetryPolicy,
  StepDefinition,
} from '../contracts/pipeline.ts';
import type { JsonObject, Priority } from '../contracts/primitives.ts';
import { parseDuration } from '../duration.ts';
import type { RouteConstraints } from '../routing/types.ts';

export interface StepSettings {
  readonly retry: RetrySettings;
  /** Limit of one attempt. */
  readonly timeoutMs: number;
  readonly totalTimeoutMs: number;
  /** Limit of each wait for a free slot; null = none. */
  readonly queueTimeoutMs: number | null;
  /** Null = the run's priority, which is `defaults.priority` unless its caller sets one. */
  readonly priority: Priority | null;
  readonly ceilingUsd: number | null;
  /** Null: that of the project. */
  readonly onBudget: OnBudget | null;
}

const defaultTimeoutMs = 300_000;
const defaultTotalTimeoutMs = 3_600_000;
/** The most that a step may take. */
export const longestTotalMs = 7 * 86_400_000;

/** Whether a step prefers to be queued, or not to be. */
export function dispatchWish(
  { defaults = {} }: Pick<PipelineDefinition, 'defaults'>,
  { dispatch }: Pick<StepDefinition, 'dispatch'>,
): DispatchWish {
  return dispatch ?? defaults.dispatch ?? 'auto';
}

/** Redeliveries of a step's call after the first delivery. */
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
  const resolved = resolveRetry(retry, mostRedeliveries(definition, step));
  const queueTimeout = step.queue_timeout ?? defaults.queue_timeout;
  return {
    retry: resolved,
    timeoutMs,
    totalTimeoutMs:
      step.total_timeout === undefined
        ? defaultTotalMs(resolved, timeoutMs)
        : parseDuration(step.total_timeout),
    queueTimeoutMs: queueTimeout === undefined ? null : parseDuration(queueTimeout),
    priority: step.priority ?? null,
    ceilingUsd: step.budget_ceiling_usd ?? defaults.budget_ceiling_usd ?? null,
    onBudget: step.on_budget ?? defaults.on_budget ?? null,
  };
}

/**
 * The longest pause is at least the first one, unless it is written. A call that is delivered at most once is not asked
 * for again.
 */
function resolveRetry(
  { initial, factor, max_delay, invalid_output = 0 }: RetryPolicy,
  max: number,
): RetrySettings {
  const initialMs = initial === undefined ? defaultRetry.initialMs : parseDuration(initial);
  return {
    max,
    initialMs,
    factor: factor ?? defaultRetry.factor,
    maxDelayMs:
      max_delay === undefined ? Math.max(defaultRetry.maxDelayMs, initialMs) : parseDuration(max_delay),
    invalidOutput: max === 0 ? 0 : invalid_output,
  };
}

/** Time for every attempt, one more, and the longest pauses between them. */
function defaultTotalMs(retry: RetrySettings, timeoutMs: number): number {
  let neededMs = timeoutMs * (mostAttempts(retry) + 1);
  for (let failures = 1; failures <= retry.max; failures++) neededMs += backoffMs(retry, failures, 1);
  return Math.min(Math.max(defaultTotalTimeoutMs, neededMs), longestTotalMs);
}

// The kind of a step: a call of a capability, a run of another pipeline, a wait, a review, an outside event, or values that
// are set.

export type StepKind = 'call' | 'run' | 'wait' | 'review' | 'event' | 'set';

type KindFields = Pick<StepDefinition, 'capability' | 'pipeline' | 'wait' | 'review' | 'event' | 'set'>;

/** How many answers of its items are enough for a step; null = all. */
export function enoughOf({ enough }: Pick<NonNullable<StepDefinition['for_each']>, 'enough'>): {
  readonly count: number;
  readonly if?: string;
} | null {
  if (enough === undefined) return null;
  if (typeof enough === 'number') return { count: enough };
  return { count: enough.count ?? 1, ...(enough.if === undefined ? {} : { if: enough.if }) };
}

/** The kind of a step in a checked definition, which has exactly one of the keys. */
export function stepKindOf({ pipeline, wait, review, event, set }: KindFields): StepKind {
  if (set !== undefined) return 'set';
  if (pipeline !== undefined) return 'run';
  if (wait !== undefined) return 'wait';
  if (event !== undefined) return 'event';
  return review === undefined ? 'call' : 'review';
}

/** A short description for people: `concat`, `reel@1.0`, `wait 30s`, `review`, `event paid`, `set`. */
export function describeStep(step: KindFields): string {
  switch (stepKindOf(step)) {
    case 'call':
      return step.capability ?? '';
    case 'run':
      return step.pipeline ?? '';
    case 'wait':
      return `wait ${step.wait}`;
    case 'event':
      return `event ${step.event?.name}`;
    case 'review':
    case 'set':
      return stepKindOf(step);
  }
}

const longestNames = 200;

/** The names of the fields that a step sets. */
function nameFields(set: JsonObject): string {
  const names = Object.keys(set).join(', ');
  return names.length <= longestNames ? names : `${names.slice(0, longestNames - 1)}…`;
}

/** The capability of a call step. */
export function capabilityOf({ capability }: Pick<StepDefinition, 'capability'>): string {
  return capability ?? '';
}

/** The kind on the wire: exactly one of the fields is present. */
export function kindFieldsOf({ capability, pipeline, wait, review, event, set }: KindFields) {
  return {
    ...(capability === undefined ? {} : { capability }),
    ...(pipeline === undefined ? {} : { pipeline }),
    ...(wait === undefined ? {} : { wait }),
    ...(review === undefined ? {} : { review: review.title }),
    ...(event === undefined ? {} : { event: event.name }),
    ...(set === undefined ? {} : { set: nameFields(set) }),
  };
}

// Whether and how long a step reuses results of equal calls: its own key, else the pipeline's default.

export interface ResolvedCache extends Pick<CachePolicy, 'scope'> {
  readonly ttlMs: number;
  /** Also reuse results of capabilities that do not call themselves deterministic. */
  readonly insists: boolean;
}

/** Null = every call is executed. */
export function resolveCache(
  { defaults = {} }: Pick<PipelineDefinition, 'defaults'>,
  step: StepDefinition,
): ResolvedCache | null {
  const shared = step.repeat === undefined ? defaults.cache : undefined; // a poll asks for news
  const { ttl, scope, insist = false } = step.cache ?? shared ?? { ttl: '0s' };
  const ttlMs = parseDuration(ttl);
  return ttlMs === 0 || stepKindOf(step) !== 'call' ? null : { ttlMs, scope, insists: insist };
}

// Whether and how a step with a real failure escalates: its own keys, else the pipeline's defaults, else the built-in
// ones. Models never correct a call of a model. A step that is delivered at most once goes to a review and is never
// corrected automatically.

export interface ResolvedEscalation {
  readonly enabled: boolean;
  /** The lowest level for advisors and for executions after the first. */
  readonly start_level: number;
  /** The highest level before a person. */
  readonly max_level: number;
  /** Null = no limit other than the budgets. */
  readonly max_usd: number | null;
  readonly repair: 'off' | 'propose' | 'apply';
  readonly on_exhausted: 'wait' | 'fail';
  /** Nothing is executed before a person decides: the ladder starts at its end (`retry.max` is 0). */
  readonly needs_person: boolean;
}

type Defaults = Pick<PipelineDefinition, 'defaults'>;

export function resolveEscalation({ defaults = {} }: Defaults, step: StepDefinition): ResolvedEscalation {
  const policy: EscalatePolicy = { ...defaults.escalate, ...step.escalate };
  return {
    enabled: (policy.enabled ?? true) && stepKindOf(step) === 'call' && !isModel(step),
    start_level: policy.start_level ?? 0,
    max_level: policy.max_level ?? 4,
    max_usd: policy.max_usd ?? null,
    repair: policy.repair ?? 'propose',
    on_exhausted: policy.on_exhausted ?? 'wait',
    needs_person: (step.retry?.max ?? defaults.retry?.max ?? defaultRetry.max) === 0,
  };
}

export function isModel(step: Pick<StepDefinition, 'capability'>): boolean {
  return capabilityOf(step).startsWith('model.');
}

interface RouteOfRun {
  readonly priority: Priority;
  /** The budget of the run, USD; null = no ceiling. */
  readonly ceilingUsd: number | null;
  /** Of its project, for steps that name none; null or absent: pause. */
  readonly onBudget?: OnBudget | null;
  /** Time left for the step. */
  readonly remainingMs: number;
}

/** The routing constraints of a step's call. */
export function routeOfStep(
  { capability, capability_version, tags, affinity }: StepDefinition,
  settings: StepSettings,
  run: RouteOfRun,
): RouteConstraints {
  return {
    capability: capabilityOf({ capability }),
    versionRange: capability_version ?? null,
    tags: tags ?? [],
    affinity,
    priority: settings.priority ?? run.priority,
    ceilingUsd: settings.ceilingUsd,
    runCeilingUsd: run.ceilingUsd,
    onBudget: settings.onBudget ?? run.onBudget ?? 'pause',
    ...timeOf(settings.timeoutMs, run.remainingMs),
  };
}
