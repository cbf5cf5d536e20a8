/** Gives back claims for which nothing was sent. It is insisted upon, and never rejects: what fails ends with its lease. */
import type { AttemptEnd, Claim } from '../../db/attempt/attempt.ts';
import { type AttemptWriter, hasDurableEnd } from './attempt-writer.ts';

/** Gives back a claim that was made. */
export async function releaseClaim(
  attemptWriter: Pick<AttemptWriter, 'settle'>,
  claim: Claim,
  why: string,
): Promise<void> {
  await attemptWriter.settle(toRelease(claim, why), hasDurableEnd(claim), false).catch(() => undefined);
}

/** Gives back a claim whose answer was lost: it may have been made, may still be under way, or may never be made. */
export async function withdrawClaim(
  attemptWriter: Pick<AttemptWriter, 'withdraw'>,
  claim: Claim,
  why: string,
): Promise<void> {
  await attemptWriter.withdraw(claim, toRelease(claim, why), hasDurableEnd(claim)).catch(() => undefined);
}

function toRelease({ attempt_id, token, step }: Claim, why: string): AttemptEnd {
  return {
    attempt_id,
    token,
    state: 'released',
    ambiguity: 'not_sent',
    counted: false,
    has_failed: false,
    settled_nano: 0n,
    certainty: 'exact',
    duration_ms: 0,
    error: { code: 'unavailable', message: why },
    step_state: 'retrying',
    output: undefined,
    keeps: null,
    event_data: {},
    step,
  };
}
