/**
 * Failures that an instance answered by HTTP. The message begins with the status, for people; whoever decides reads
 * `status`, and the code that the instance gave in `x-error-code` from `details`.
 */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure } from '../../contracts/primitives.ts';
import { isPlainObject } from '../json-type.ts';
import type { AnsweredError } from './outcome.ts';

export interface HttpFailure extends Failure {
  readonly code: ErrorCode;
}

function prefixOf(status: number): string {
  return `HTTP ${status}: `;
}

export function toHttpFailure(code: ErrorCode, { status, message, errorCode }: AnsweredError): HttpFailure {
  return {
    code,
    message: `${prefixOf(status)}${message}`,
    status,
    ...(errorCode === undefined ? {} : { details: { error_code: errorCode } }),
  };
}

/** The instance's own words in a failure of `toHttpFailure`; the message of any other. */
export function wordsOf({ status, message }: Failure): string {
  return status === undefined ? message : message.slice(prefixOf(status).length);
}

/** The code that the instance gave its error; undefined when it gave none. */
export function errorCodeOf({ status, details }: Failure): string | undefined {
  const code = status !== undefined && isPlainObject(details) ? details.error_code : undefined;
  return typeof code === 'string' ? code : undefined;
}
