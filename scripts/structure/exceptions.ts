import type { Violation } from './source.ts';

/** The subjects that may leave a rule, by rule; or each with its reason. */
export type Exceptions = Readonly<Record<string, readonly string[] | Readonly<Record<string, string>>>>;

export interface Comparison {
  /** Violations without an exception. */
  readonly broken: readonly Violation[];
  /** `rule: subject` of exceptions without a violation. */
  readonly unneeded: readonly string[];
  /** The exceptions that remain. */
  readonly needed: Exceptions;
}

function isList(subjects: Exceptions[string]): subjects is readonly string[] {
  return Array.isArray(subjects);
}

function listSubjects(subjects: Exceptions[string] = []): readonly string[] {
  return isList(subjects) ? subjects : Object.keys(subjects);
}

export function compareWithExceptions(violations: readonly Violation[], exceptions: Exceptions): Comparison {
  const isNeeded = (rule: string, subject: string): boolean =>
    violations.some((each) => each.rule === rule && each.subject === subject);
  const rows = Object.entries(exceptions);
  const keep = (rule: string, subjects: Exceptions[string]): Exceptions[string] =>
    isList(subjects)
      ? subjects.filter((subject) => isNeeded(rule, subject))
      : Object.fromEntries(Object.entries(subjects).filter(([subject]) => isNeeded(rule, subject)));
  return {
    broken: violations.filter(({ rule, subject }) => !listSubjects(exceptions[rule]).includes(subject)),
    unneeded: rows.flatMap(([rule, subjects]) =>
      listSubjects(subjects)
        .filter((subject) => !isNeeded(rule, subject))
        .map((subject) => `${rule}: ${subject}`),
    ),
    needed: Object.fromEntries(rows.map(([rule, subjects]) => [rule, keep(rule, subjects)])),
  };
}
