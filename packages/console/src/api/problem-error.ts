import type { Problem } from '@capstan/core/contracts/problem';

/** An error response of the server; or no response, with status 0. */
export class AnswerError extends Error {
  readonly status: number;
  readonly problem: Partial<Problem>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? problem.title ?? `the server answered ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

export function toProblem(status: number, body: unknown): AnswerError {
  const isProblem = typeof body === 'object' && body !== null && 'code' in body;
  return new AnswerError(status, isProblem ? (body as Partial<Problem>) : {});
}

export function isStatus(error: unknown, status: number): boolean {
  return error instanceof AnswerError && error.status === status;
}
