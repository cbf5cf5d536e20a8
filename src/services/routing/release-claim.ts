import type { Claim } from '../../db/attempt/attempt.ts';
import type { AttemptWriter } from './attempt-writer.ts';

/** Gives back a claim for which nothing was sent. It never rejects: what cannot be given back ends with its lease. */
export function releaseClaim(
  attemptWriter: Pick<AttemptWriter, 'settle' | 'follow'>,
  { attempt_id, token, step, reserved_nano }: Claim,
  why: string,
): Promise<void> {
  const isDurable = step !== null || reserved_nano > 0n;
  const end = {
    ...({
      attempt_id,
      token,
      state: 'released',
      ambiguity: 'not_sent',
      counted: false,
      has_failed: false,
    } as const),
    ...({ settled_nano: 0n, certainty: 'exact', duration_ms: 0, output: undefined, event_data: {} } as const),
    ...({
      is_step: step !== null,
      keeps: null,
      step_state: 'retrying',
      error: { code: 'unavailable', message: why },
    } as const),
  };
  const released = attemptWriter.settle(end, isDurable, false).then(
    () => undefined,
    () => undefined,
  );
  attemptWriter.follow(released);
  return released;
}
