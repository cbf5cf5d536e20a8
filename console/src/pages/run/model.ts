/** What the head of a run shows: what can be done about its condition, its money, what may be asked of it. */
import type { Run, RunStep } from '../../../../src/contracts/run.ts';
import type { ConditionKind, RunCondition } from '../../../../src/core/run/condition.ts';

/** What a person can do about it, by the condition: the button beside it. */
export type NextStep =
  | { readonly kind: 'review'; readonly reviewId: string }
  | { readonly kind: 'raise' | 'resume' | 'retry' }
  | { readonly kind: 'capability'; readonly name: string }
  | { readonly kind: 'run'; readonly runId: string }
  | { readonly kind: 'step'; readonly stepId: string };

type Find = (run: Run, steps: readonly RunStep[]) => readonly (NextStep | null)[];

function openFirst(steps: readonly RunStep[]): NextStep | null {
  const [step] = steps;
  return step === undefined ? null : { kind: 'step', stepId: step.id };
}

/** A condition that is not here passes by itself, or has nothing that could be done. */
const nextSteps: Partial<Record<ConditionKind, Find>> = {
  failed: (_, steps) => [{ kind: 'retry' }, openFirst(steps)],
  cancelled: () => [{ kind: 'retry' }],
  partly: (_, steps) => [openFirst(steps), { kind: 'retry' }],
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
  return (nextSteps[kind]?.(run, steps) ?? []).filter((step) => step !== null);
}

/** A key or a person, by name where it is known. */
export function nameOfActor({ id, name }: NonNullable<Run['started_by']>): string {
  return name === undefined || name === id ? id : `${name} (${id})`;
}

function counted(count: number, what: string): string[] {
  return count === 0 ? [] : [`${count} ${what}`];
}

/** What became of the steps of a run that succeeded. */
export function describeSuccess({ steps }: Pick<Run, 'steps'>): string {
  const count = (state: RunStep['state']): number => steps.filter((step) => step.state === state).length;
  const cached = steps.filter((step) => step.cached !== undefined).length;
  return [
    `${steps.length} ${steps.length === 1 ? 'step' : 'steps'}`,
    ...counted(count('reused'), 'reused'),
    ...counted(cached, 'cached'),
    ...counted(count('skipped'), 'skipped'),
    ...counted(count('failed'), 'failed'),
  ].join(', ');
}

export interface CeilingShares {
  /** Of the ceiling, 0 to 1. */
  readonly spent: number;
  readonly reserved: number;
}

/** Null without a ceiling. */
export function shareOfCeiling({ cost_usd, reserved_usd, budget_ceiling_usd }: Run): CeilingShares | null {
  if (budget_ceiling_usd === null || budget_ceiling_usd === 0) return null;
  const spent = Math.min(1, cost_usd / budget_ceiling_usd);
  return { spent, reserved: Math.min(1 - spent, reserved_usd / budget_ceiling_usd) };
}

/** What can be asked of a run in its state. */
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
