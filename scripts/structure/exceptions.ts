import type { Violation } from './source.ts';

/** The subjects that may leave a rule, by rule. */
export type Exceptions = Readonly<Record<string, readonly string[]>>;

export interface Comparison {
  /** Violations without an exception. */
  readonly broken: readonly Violation[];
  /** `rule: subject` of exceptions without a violation. */
  readonly unneeded: readonly string[];
  /** The exceptions that remain. */
  readonly needed: Exceptions;
}

export function compareWithExceptions(violations: readonly Violation[], exceptions: Exceptions): Comparison {
  const isNeeded = (rule: string, subject: string): boolean =>
    violations.some((each) => each.rule === rule && each.subject === subject);
  const rows = Object.entries(exceptions);
  return {
    broken: violations.filter(({ rule, subject }) => !(exceptions[rule] ?? []).includes(subject)),
    unneeded: rows.flatMap(([rule, subjects]) =>
      subjects.filter((subject) => !isNeeded(rule, subject)).map((subject) => `${rule}: ${subject}`),
    ),
    needed: Object.fromEntries(
      rows.map(([rule, subjects]) => [rule, subjects.filter((subject) => isNeeded(rule, subject))]),
    ),
  };
}
