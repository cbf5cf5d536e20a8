import type { CallReport } from '../support/router-messages.ts';

/** The most different answers that were given to one key. */
export function countAnswers(reports: readonly CallReport[]): number {
  const answers = new Map<string, Set<string>>();
  for (const { key, answer } of reports) {
    if (answer === null) continue;
    const seen = answers.get(key) ?? new Set();
    answers.set(key, seen.add(JSON.stringify(answer)));
  }
  return Math.max(0, ...[...answers.values()].map(({ size }) => size));
}
