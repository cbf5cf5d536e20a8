/** What the exit code of `capstan` says. Scripts depend on these numbers. */
import type { RunState } from '../contracts/run.ts';

export const exitCodes = {
  ok: 0,
  /** The run failed, the definition has errors, or the API refused the request. */
  failed: 1,
  /** The outcome is not known: no contact with Capstan, or no longer waited for. */
  unknown: 2,
  cancelled: 3,
  /** A part that the command needs is not installed. */
  missingPart: 4,
  interrupted: 130,
  brokenPipe: 141,
} as const;

export function exitCodeOf(state: RunState): number {
  switch (state) {
    case 'succeeded':
      return exitCodes.ok;
    case 'failed':
      return exitCodes.failed;
    case 'cancelled':
      return exitCodes.cancelled;
    case 'queued':
    case 'running':
    case 'paused':
    case 'cancelling':
      return exitCodes.unknown;
  }
}
