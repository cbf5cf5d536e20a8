/** One symbol and one colour for every state, so that a column of them reads at a glance. */
import type { InstanceState } from '../../contracts/capability.ts';
import type { ReviewState } from '../../contracts/review.ts';
import type { AttemptState, RunState, RunSummary, StepState } from '../../contracts/run.ts';
import { countEnded } from '../../core/run/ended-steps.ts';
import type { Colour, Style } from './style.ts';

export type AnyState = RunState | StepState | InstanceState | AttemptState | ReviewState;

const looks: Readonly<Record<AnyState, readonly [symbol: string, colour: Colour]>> = {
  queued: ['○', 'dim'],
  paused: ['‖', 'yellow'],
  pending: ['○', 'dim'],
  ready: ['◌', 'blue'],
  running: ['●', 'cyan'],
  retrying: ['↻', 'yellow'],
  in_review: ['◍', 'yellow'],
  waiting: ['◔', 'yellow'],
  cancelling: ['◍', 'yellow'],
  succeeded: ['✓', 'green'],
  failed: ['✗', 'red'],
  unknown: ['?', 'red'],
  skipped: ['–', 'dim'],
  reused: ['✓', 'dim'],
  cancelled: ['⊘', 'yellow'],
  up: ['●', 'green'],
  suspect: ['◐', 'yellow'],
  down: ['✗', 'red'],
  evicted: ['✗', 'dim'],
  quarantined: ['!', 'red'],
  draining: ['◌', 'yellow'],
  deregistered: ['–', 'dim'],
  reserved: ['◌', 'blue'],
  dispatched: ['●', 'cyan'],
  settled: ['✓', 'green'],
  released: ['–', 'dim'],
  lost: ['?', 'red'],
  cached: ['✓', 'dim'],
  open: ['◍', 'yellow'],
  claimed: ['●', 'cyan'],
  resolved: ['✓', 'green'],
  expired: ['✗', 'red'],
};

export function formatState(state: AnyState, style: Style): string {
  const [symbol, colour] = looks[state];
  return style[colour](`${symbol} ${state}`);
}

/** `● running (waits: review)`; a run whose failure another one works on waits for that one. */
export function formatRunState(
  { state, awaiting = [], follows }: Pick<RunSummary, 'state' | 'awaiting' | 'follows'>,
  style: Style,
): string {
  const other = follows === undefined ? [] : [`what ${follows.run_id ?? follows.escalation_id} learns`];
  const waits = [...awaiting, ...other];
  return `${formatState(state, style)}${waits.length === 0 ? '' : ` (waits: ${waits.join(', ')})`}`;
}

/** `3/5`: steps that have ended, of all. */
export function formatStepCounts(counts: RunSummary['step_counts']): string {
  const { ended, all } = countEnded(counts);
  return `${ended}/${all}`;
}
