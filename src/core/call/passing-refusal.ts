/**
 * Refusals that say nothing about the input: the same request may be taken later, or elsewhere. A capability that answers
 * 422 for what passes is known to its operator, who lists what it says.
 */
import type { AnsweredError } from './outcome.ts';

/** It took too long to arrive; something else is under way. 429 and 503 are no refusals: kindOfStatus says so. */
const passingStatuses: ReadonlySet<number> = new Set([408, 409]);

/** @param listed texts of which one is part of the message, in small letters */
export function isPassing({ status, message }: AnsweredError, listed: readonly string[]): boolean {
  if (passingStatuses.has(status)) return true;
  const text = message.toLowerCase();
  return listed.some((part) => text.includes(part));
}

/** @param setting texts with | between them */
export function readTransientTexts(setting: string): readonly string[] {
  return setting.split('|').flatMap((part) => part.trim().toLowerCase() || []);
}
