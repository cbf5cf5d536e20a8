/** How long a ladder works by itself, and how often and for how long it asks a person. */
import type { Priority } from '../../contracts/primitives.ts';

/** Model calls and executions of one ladder between two decisions of people, ms. */
export const ladderMs = 30 * 60_000;

/** How often one review is asked, the first time counted. */
const reviewRounds = 3;

/** Whether the review of a round whose decision did not help may be asked once more. */
export function mayAskAgain(round: number): boolean {
  return round < reviewRounds;
}

/** How long a person has for a decision, ms. */
export function reviewDueMs(priority: Priority): number {
  return priority === 'interactive' ? 3_600_000 : 86_400_000;
}
