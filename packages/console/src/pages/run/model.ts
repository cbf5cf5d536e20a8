/** The head of a run's page: the actions for its condition, its money, and its allowed actions. */

import { countedErrors } from '@capstan/core/call/judge';
import { backoffMs, type RetrySettings } from '@capstan/core/call/retry';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep, RunStepItem, StepDetail } from '@capstan/core/contracts/run-step';
import { parseDuration } from '@capstan/core/duration';
import type { ConditionKind, RunCondition } from '@capstan/core/run/run-status';
import { formatClock, formatDuration } from '../../shared/format.ts';

/** The action for a condition: the button beside it. */
export type NextStep =
  | { readonly kind: 'review'; readonly reviewId: string }
  | { readonly kind: 'raise' | 'resume' | 'retry' | 'output' }
  | { readonly kind: 'capability'; readonly name: string }
  | { readonly kind: 'run'; readonly runId: string }
  | { readonly kind: 'step'; readonly stepId: string };

type Find = (run: Run, steps: readonly RunStep[]) => readonly (NextStep | null)[];

function openFirst(steps: readonly RunStep[]): NextStep | null {
  const [step] = steps;
  return step === undefined ? null : { kind: 'step', stepId: step.id };
}

/** Other conditions pass automatically, or have no action. */
const nextSteps: Partial<Record<ConditionKind, Find>> = {
  failed: (_, steps) => [{ kind: 'retry' }, openFirst(steps)],
  cancelled: () => [{ kind: 'retry' }],
  partly: (_, steps) => [openFirst(steps), { kind: 'retry' }],
  succeeded: ({ output }) => [output === undefined ? null : { kind: 'output' }],
  review: ({ follows }, steps) => {
    const reviewId = steps.find(({ review_id }) => review_id !== undefined)?.review_id ?? follows?.review_id;
    return [reviewId === undefined ? null : { kind: 'review', reviewId }, openFirst(steps)];
  },
  budget: (run, steps) => {
    // Only a review sees which budget of a ladder is used up.
    if (steps[0]?.state === 'in_review') return nextSteps.review?.(run, steps) ?? [];
    const child = steps[0]?.sub_run_id;
    return [{ kind: 'raise' }, child === undefined ? openFirst(steps) : { kind: 'run', runId: child }];
  },
  capability: (_, steps) => {
    const name = steps[0]?.capability;
    return [name === undefined ? null : { kind: 'capability', name }, openFirst(steps)];
  },
  paused: () => [{ kind: 'resume' }],
  retrying: (_, steps) => [openFirst(steps)],
  run: ({ follows }, steps) => {
    const runId = steps[0]?.sub_run_id ?? follows?.run_id;
    return [runId === undefined ? null : { kind: 'run', runId }];
  },
};

export function nextStepsOf(run: Run, { kind, steps: ids }: RunCondition): readonly NextStep[] {
  const steps = run.steps.filter(({ id }) => ids.includes(id));
  // The wait is in the child run, whose page has the button for it; a budget may be that of the parent.
  const find = steps[0]?.awaiting === 'run' && kind !== 'budget' ? nextSteps.run : nextSteps[kind];
  return (find?.(run, steps) ?? []).filter((step) => step !== null);
}

/** The first end of the given `wait` steps; null when none has begun. */
export function wakeOf(steps: readonly Pick<RunStep, 'wait' | 'started_at'>[]): string | null {
  const ends = steps.flatMap(({ wait, started_at }) =>
    wait === undefined || started_at === null ? [] : [Date.parse(started_at) + parseDuration(wait)],
  );
  return ends.length === 0 ? null : new Date(Math.min(...ends)).toISOString();
}

/** When the next round of a step begins; null: none has ended, or there is no pause. */
export function nextRoundAt(
  rows: readonly Pick<RunStepItem, 'finished_at'>[],
  pause: string | undefined,
): string | null {
  const ends = rows.flatMap(({ finished_at }) => (finished_at === null ? [] : [Date.parse(finished_at)]));
  if (pause === undefined || ends.length === 0) return null;
  return new Date(Math.max(...ends) + parseDuration(pause)).toISOString();
}

/** Who answers an accepted call later, and until when. */
export function describeLater(
  { attempts }: Pick<StepDetail, 'attempts'>,
  timeoutMs: number,
  now: number,
): string {
  const open = attempts.findLast(({ state }) => state === 'dispatched');
  if (open === undefined) return 'The instance has accepted the call and sends its answer later.';
  const until = new Date(Date.parse(open.started_at) + timeoutMs).toISOString();
  return `${open.endpoint} has accepted the call and sends its answer later. Without an answer until ${formatClock(until, now)}, the attempt has timed out.`;
}

type RetriedStep = Pick<StepDetail, 'attempts' | 'revision'>;

/** How many attempts the step has left, and when the next one starts. The worker varies the pause by 20 %. */
export function describeRetry(
  { attempts, revision }: RetriedStep,
  retry: RetrySettings,
  now: number,
): string {
  const last = attempts.at(-1);
  const counted = attempts.filter(({ error }) => error !== undefined && countedErrors.has(error.code)).length;
  if (last === undefined || counted === 0) return 'The next attempt starts automatically within a minute.';
  const all = retry.max + 1;
  // Attempts with an earlier input are listed too, and do not count.
  const left = revision > 0 ? '' : `; ${Math.max(1, all - counted)} of ${all} attempts are left`;
  const said = `Attempt ${attempts.length} failed${left}. The next one starts automatically`;
  if (last.error === undefined || !countedErrors.has(last.error.code)) return `${said} within a minute.`;
  const at = Date.parse(last.started_at) + (last.duration_ms ?? 0) + backoffMs(retry, counted, 0.5);
  if (at <= now) return `${said} at any moment.`;
  return `${said} at about ${formatClock(new Date(at).toISOString(), now)}, in ${formatDuration(at - now)}.`;
}

type FailedItem = Pick<RunStepItem, 'item' | 'error'>;

/** `Items 3, 7: HTTP 422: …`: the most frequent error, and the number of items with other ones. */
export function describeItemFailures(items: readonly FailedItem[]): string | null {
  const byError = new Map<string, number[]>();
  for (const { item = 0, error } of items) {
    const text = error?.message.split('\n', 1)[0] ?? 'no error was reported';
    byError.set(text, [...(byError.get(text) ?? []), item]);
  }
  const [most] = [...byError].toSorted(([, one], [, other]) => other.length - one.length);
  if (most === undefined) return null;
  const [text, numbers] = most;
  const more = numbers.length > 3 ? ` and ${numbers.length - 3} more` : '';
  const others = items.length - numbers.length;
  return `${numbers.length === 1 ? 'Item' : 'Items'} ${numbers.slice(0, 3).join(', ')}${more}: ${text}${
    others === 0 ? '' : ` (${others} failed with other errors)`
  }`;
}

/** The name of a key or a person, where it is known. */
export function nameOfActor({ id, name }: NonNullable<Run['started_by']>): string {
  return name === undefined || name === id ? id : `${name} (${id})`;
}

function counted(count: number, what: string): string[] {
  return count === 0 ? [] : [`${count} ${what}`];
}

/** The steps of a successful run, in words. */
export function describeSuccess({ steps }: Pick<Run, 'steps'>): string {
  const count = (state: RunStep['state']): number => steps.filter((step) => step.state === state).length;
  const cached = steps.filter((step) => step.cached !== undefined).length;
  const inline = steps.filter((step) => step.inline).length;
  return [
    `${steps.length} ${steps.length === 1 ? 'step' : 'steps'}`,
    ...counted(count('reused'), 'reused from the original run'),
    ...counted(cached, 'answered from the cache'),
    ...counted(inline, 'executed without a queue (inline)'),
    ...counted(count('skipped'), 'skipped'),
    ...counted(count('failed'), 'failed'),
  ].join(', ');
}

export interface CeilingShares {
  /** As a share of the ceiling, 0 to 1. */
  readonly spent: number;
  readonly reserved: number;
}

/** Null without a ceiling. */
export function shareOfCeiling({ cost_usd, reserved_usd, budget_ceiling_usd }: Run): CeilingShares | null {
  if (budget_ceiling_usd === null || budget_ceiling_usd === 0) return null;
  const spent = Math.min(1, cost_usd / budget_ceiling_usd);
  return { spent, reserved: Math.min(1 - spent, reserved_usd / budget_ceiling_usd) };
}

/** The actions that a run's state allows. */
export function controlsOf({ state, finished_at }: Pick<Run, 'state' | 'finished_at'>) {
  const isOver = finished_at !== null;
  return {
    canPause: state === 'running' || state === 'queued',
    canResume: state === 'paused',
    canCancel: !isOver && state !== 'cancelling',
    canRaise: !isOver,
    canRerun: isOver,
  };
}

/** The error of the step's own call, unless a shown text has it already; empty for none. */
export function causeOf({ escalation }: Pick<StepDetail, 'escalation'>, shown: string): string {
  const cause = escalation?.escalation_history[0]?.error ?? '';
  return shown.includes(cause) ? '' : cause;
}
