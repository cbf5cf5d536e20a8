/** What the head of a run says: its state, the reason of it, and what would change it. */
import type { Run, RunStep } from '../../../../src/contracts/run.ts';
import { awaitingWords, describeAwaiting } from '../../shared/state.ts';

export interface RunStanding {
  readonly reason: string;
  /** What somebody can do about it. */
  readonly change: string | null;
}

function namesOf(steps: readonly RunStep[]): string {
  const names = steps.slice(0, 3).map(({ id }) => id);
  return steps.length > 3 ? `${names.join(', ')} and ${steps.length - 3} more` : names.join(', ');
}

const remedies = {
  review: 'a decision in Reviews lets it go on',
  budget: 'a higher ceiling or daily limit lets it go on',
  capability: 'it goes on as soon as an instance registers',
  time: 'it goes on by itself',
  run: 'it goes on when that run has ended',
} as const;

function describeActive(run: Run): RunStanding {
  const waiting = run.steps.filter(({ awaiting, state }) => awaiting !== undefined || state === 'in_review');
  const active = run.steps.filter(({ state }) => state === 'running' || state === 'retrying');
  if (active.length > 0) {
    const also =
      waiting.length === 0 ? '' : `; ${namesOf(waiting)} ${waiting.length === 1 ? 'waits' : 'wait'}`;
    return { reason: `works on ${namesOf(active)}${also}`, change: null };
  }
  const kinds = [
    ...new Set(waiting.map(({ awaiting, state }) => (state === 'in_review' ? 'review' : awaiting))),
  ].filter((kind) => kind !== undefined);
  if (kinds.length === 0) return { reason: 'its next steps are about to start', change: null };
  const first = kinds[0];
  return {
    reason: `${describeAwaiting(kinds)}: ${namesOf(waiting)}`,
    change: first === undefined ? null : remedies[first],
  };
}

export function describeRun(run: Run): RunStanding {
  switch (run.state) {
    case 'queued':
      return { reason: 'waits to be admitted, or for the engine to take it', change: null };
    case 'running':
      return describeActive(run);
    case 'paused':
      return {
        reason: 'somebody paused it: what was running may end, nothing new starts',
        change: 'resume lets it go on',
      };
    case 'cancelling':
      return { reason: 'was asked to stop; what is running may end first', change: null };
    case 'succeeded':
      return { reason: describeSuccess(run), change: null };
    case 'failed':
      return {
        reason: run.error === undefined ? 'a step failed' : `${run.error.code}: ${run.error.message}`,
        change: 'run again keeps what succeeded',
      };
    case 'cancelled':
      return { reason: run.error?.message ?? 'was stopped', change: 'run again keeps what succeeded' };
  }
}

function describeSuccess({ steps }: Run): string {
  const count = (state: RunStep['state']): number => steps.filter((step) => step.state === state).length;
  const parts = [
    [count('succeeded'), 'done'],
    [count('reused'), 'reused'],
    [count('skipped'), 'skipped'],
    [count('failed'), 'failed and tolerated'],
  ] as const;
  const said = parts.filter(([number]) => number > 0).map(([number, word]) => `${number} ${word}`);
  const cached = steps.filter((step) => step.cached !== undefined).length;
  const free = cached === 0 ? '' : `; ${cached} cached`;
  return `${steps.length} ${steps.length === 1 ? 'step' : 'steps'}: ${said.join(', ')}${free}`;
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

export function describeStepWait(step: Pick<RunStep, 'awaiting' | 'state'>): string | null {
  if (step.state === 'in_review') return 'waits for a person';
  return step.awaiting === undefined
    ? null
    : `waits for ${awaitingWords[step.awaiting]}; ${remedies[step.awaiting]}`;
}
