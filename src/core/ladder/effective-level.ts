/**
 * The level that answers an outside caller of `/advise`, from that caller's history alone: as high as the error
 * was often, so that a client that runs the specification's loop (advisor = failing level + 1, then level 0)
 * climbs for a repeated error, and stops.
 */
import { humanLevel } from './labels.ts';

/** Entries of a history after which only a person helps. */
const maxEntries = 12;

export interface AdviceRequest {
  /** As asked, 1 to 5. */
  readonly from_level: number;
  readonly fingerprint: string;
  /** Fingerprints of the errors in `escalation_history`. */
  readonly history: readonly string[];
}

/** @returns 1 to 4, or 5 = a person: answer with `suggested_executor_level: 5` */
export function effectiveLevel({ from_level, fingerprint, history }: AdviceRequest): number {
  if (history.length > maxEntries) return humanLevel;
  const times = history.filter((seen) => seen === fingerprint).length;
  return Math.min(Math.max(from_level, times, 1), humanLevel);
}
