/**
 * The levels of the ladder, its time limits, and how often and how long it waits for a review. The level that answers
 * an outside caller of `/advise` follows from that caller's history alone: it rises with the count of equal errors. So
 * a client that runs the specification's loop (advisor = failing level + 1, then level 0) climbs for a repeated error,
 * and stops.
 */
import type { Priority } from '../contracts/primitives.ts';

export const topLevel = 4;
export const humanLevel = 5;

/** By level, as a person reads them. */
const labels = [
  'static template',
  'fast model',
  'capable model',
  'reasoning model',
  'top-tier model',
] as const;

export const exhaustedText = 'the escalation ladder is exhausted and human review is required';

export function labelOf(level: number): string {
  return labels[level] ?? 'human';
}

/** Time for model calls and executions of one ladder between two decisions of people, ms. */
export const ladderMs = 30 * 60_000;

/** How often one review is opened, including the first time. */
const reviewRounds = 3;

/** Whether the review of a round may be opened once more after its decision did not help. */
export function mayAskAgain(round: number): boolean {
  return round < reviewRounds;
}

/** How long a person has for a decision, ms. */
export function reviewDueMs(priority: Priority): number {
  return priority === 'interactive' ? 3_600_000 : 86_400_000;
}

/** Entries of a history after which only a person can help. */
const maxEntries = 12;

interface AdviceRequest {
  /** The requested level, 1 to 5. */
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
