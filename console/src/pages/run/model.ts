/** The head of a run's page: the actions for its condition, its money, and its allowed actions. */
import type { Run } from '../../../../src/contracts/run.ts';
import type { RunStep } from '../../../../src/contracts/run-step.ts';
import { parseDuration } from '../../../../src/core/duration.ts';
import type { ConditionKind, RunCondition } from '../../../../src/core/run/condition.ts';

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

/** Other conditions pass by themselves, or have no action. */
const nextSteps: Partial<Record<ConditionKind, Find>> = {
  failed: (_, steps) => [{ kind: 'retry' }, openFirst(steps)],
  cancelled: () => [{ kind: 'retry' }],
  partly: (_, steps) => [openFirst(steps), { kind: 'retry' }],
  succeeded: ({ output }) => [output === undefined ? null : { kind: 'output' }],
  review: ({ follows }, steps) => {
    const reviewId = steps.find(({ review_id }) => review_id !== undefined)?.review_id ?? follows?.review_id;
    return [reviewId === undefined ? null : { kind: 'review', reviewId }, openFirst(steps)];
  },
  budget: (_, steps) => [{ kind: 'raise' }, openFirst(steps)],
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
  // The wait is in the child run, whose page has the button for it.
  const find = steps[0]?.awaiting === 'run' ? nextSteps.run : nextSteps[kind];
  return (find?.(run, steps) ?? []).filter((step) => step !== null);
}

/** The first end of the given `wait` steps; null when none has begun. */
export function wakeOf(steps: readonly Pick<RunStep, 'wait' | 'started_at'>[]): string | null {
  const ends = steps.flatMap(({ wait, started_at }) =>
    wait === undefined || started_at === null ? [] : [Date.parse(started_at) + parseDuration(wait)],
  );
  return ends.length === 0 ? null : new Date(Math.min(...ends)).toISOString();
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
    ...counted(count('reused'), 'reused'),
    ...counted(cached, 'cached'),
    ...counted(inline, 'inline'),
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
