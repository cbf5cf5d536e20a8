/** Every error leaves as problem+json (RFC 9457). Causes go to the log with the request's id and nowhere else. */
import { type ErrorCode, errorTable } from '../../contracts/errors.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { Problem } from '../../contracts/problem.ts';
import { isPlainObject } from '../../core/json-type.ts';
import type { AppError } from '../../errors/app-error.ts';
import type { Answer } from '../route.ts';

export function problemType(code: ErrorCode): string {
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

export function toProblemAnswer(error: AppError, place: { instance: string; request_id: string }): Answer {
  return {
    status: error.status,
    headers: {
      'Content-Type': 'application/problem+json',
      ...(error.retryAfterS === undefined ? {} : { 'Retry-After': String(Math.ceil(error.retryAfterS)) }),
    },
    body: toProblem(error, place),
  };
}
