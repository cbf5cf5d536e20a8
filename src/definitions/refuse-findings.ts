import type { Finding } from '../contracts/pipeline.ts';
import type { ProblemItem } from '../contracts/problem.ts';
import { AppError } from '../errors/app-error.ts';

function toItem({ severity: _, ...item }: Finding): ProblemItem {
  return item;
}

/** The errors among them, as an answer. */
export function refuseFindings(findings: readonly Finding[]): AppError {
  const errors = findings.filter(({ severity }) => severity === 'error');
  const count = errors.length === 1 ? 'one error' : `${errors.length} errors`;
  const first = errors[0] === undefined ? '' : `: ${errors[0].message}`;
  return new AppError('definition_invalid', `the definition has ${count}${first}`, {
    errors: errors.map(toItem),
  });
}
