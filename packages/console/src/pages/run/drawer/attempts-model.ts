/** The end of a delivery, in words. */
import type { Ambiguity, Attempt } from '@capstan/core/contracts/run-step';
import { formatUsd } from '../../../shared/format.ts';
import type { Tone } from '../../../shared/state.ts';

const deliveries: Readonly<Record<Ambiguity, string>> = {
  not_sent: 'never reached the instance',
  rejected: 'the instance refused it',
  overloaded: 'the instance had no room',
  ambiguous: 'it was sent; its outcome is unknown',
  answered: 'the instance answered',
};

/** @param isLater the step waits for an answer that comes later */
export function describeDelivery({ state, ambiguity, duration_ms, error }: Attempt, isLater = false): string {
  if (state === 'cached') return 'cached: the result of an equal call was taken';
  if (state === 'reserved') return 'about to be sent';
  if (state === 'dispatched') return isLater ? 'accepted; the answer comes later' : 'under way';
  if (error?.code === 'run_cancelled') return 'stopped before its end';
  if (state === 'lost') return 'contact was lost; its cost is an estimate';
  if (ambiguity === null) return duration_ms === null ? 'ended' : 'the instance answered';
  return deliveries[ambiguity];
}

/** For a reused result: its origin, and its original cost. */
export function describeOrigin({ cached_from }: Attempt): string | null {
  if (cached_from === undefined) return null;
  const { step_id, item, saved_usd } = cached_from;
  return `made by step ${step_id}${item === undefined ? '' : `[${item}]`}, saved ${formatUsd(saved_usd)}`;
}

export function toneOfAttempt({ state, error }: Attempt): Tone {
  if (state === 'reserved' || state === 'dispatched') return 'running';
  if (error?.code === 'run_cancelled') return 'quiet';
  if (state === 'lost') return 'waiting';
  return error === undefined ? 'done' : 'failed';
}
