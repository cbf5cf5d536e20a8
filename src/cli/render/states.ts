/** One symbol and one colour for every state, so that a column of them reads at a glance. */
import type { InstanceState } from '../../contracts/capability.ts';
import type { ReviewState } from '../../contracts/review.ts';
import type { AttemptState, RunState, StepState } from '../../contracts/run.ts';
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
  open: ['◍', 'yellow'],
  claimed: ['●', 'cyan'],
  resolved: ['✓', 'green'],
  expired: ['✗', 'red'],
};

export function formatState(state: AnyState, style: Style): string {
  const [symbol, colour] = looks[state];
  return style[colour](`${symbol} ${state}`);
}
