/** An error as clients read it: problem+json (RFC 9457). Of an unexpected fault it says nothing. */
import { type ErrorCode, errorTable } from '../contracts/errors.ts';
import type { Json } from '../contracts/primitives.ts';
import type { Problem } from '../contracts/problem.ts';
import { isPlainObject } from '../core/json-type.ts';
import type { AppError } from '../errors/app-error.ts';

function problemType(code: ErrorCode): string {
  return `/docs/errors#${code}`;
}

function membersOf(details: Json | undefined): Record<string, Json> {
  return details === undefined ? {} : isPlainObject(details) ? { ...details } : { details };
}

export function toProblem(error: AppError, place: { instance: string; request_id: string }): Problem {
  return {
    ...membersOf(error.code === 'internal' ? undefined : error.details),
    type: problemType(error.code),
    title: errorTable[error.code].meaning,
    status: error.status,
    detail: error.code === 'internal' ? 'unexpected fault' : error.message,
    ...place,
    code: error.code,
    ...(error.errors === undefined ? {} : { errors: [...error.errors] }),
  };
}
