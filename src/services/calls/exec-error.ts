/** The error that a routed call ends with, when it does not succeed: every one carries the decision. */
import type { ExecRequest } from '../../contracts/decision.ts';
import type { ErrorCode } from '../../contracts/errors.ts';
import type { BudgetRefusal } from '../../contracts/money.ts';
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { ProblemItem } from '../../contracts/problem.ts';
import type { SchemaError } from '../../core/call/claim-search.ts';
import type { CallEnd } from '../../core/call/types.ts';
import { isPlainObject } from '../../core/json-type.ts';
import { AppError, type AppErrorOptions } from '../../errors/app-error.ts';

type Members = Readonly<Record<string, Json>>;

/** What is wrong with the input, once each, with pointers into the body of the request. */
function toItems(code: string, refusals: readonly SchemaError[]): ProblemItem[] {
  const items = new Map(
    refusals.map(({ pointer, message }) => [
      `${pointer} ${message}`,
      { pointer: `/input${pointer}`, code: code === 'input_invalid' ? 'schema_mismatch' : code, message },
    ]),
  );
  return [...items.values()];
}

function limitOfCall({ budget_ceiling_usd = 0 }: ExecRequest, { minimum_usd }: Members): Members {
  const refusal: BudgetRefusal = {
    scope: 'call',
    limit_usd: budget_ceiling_usd,
    spent_usd: 0,
    reserved_usd: 0,
    resets_at: null,
    minimum_usd: Number(minimum_usd),
  };
  return refusal as unknown as Members;
}

function explain(
  { code, message, details }: Failure,
  decision: Json,
  request: ExecRequest,
  retryAfterS?: number,
): AppError {
  const { errors, ...members } = (isPlainObject(details) ? details : {}) as Members;
  const limit = code === 'ceiling_too_low' ? limitOfCall(request, members) : {};
  const options: AppErrorOptions = {
    details: { ...members, ...limit, ...(decision === null ? {} : { decision }) },
    ...(errors === undefined ? {} : { errors: toItems(code, errors as unknown as SchemaError[]) }),
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  };
  return new AppError(code as ErrorCode, message, options);
}

/** @param request as it was asked */
export function toExecError(end: Exclude<CallEnd, { kind: 'succeeded' }>, request: ExecRequest): AppError {
  switch (end.kind) {
    case 'failed':
    case 'unknown':
      return explain(end.error, end.decision as unknown as Json, request);
    case 'retry':
      return explain(end.error, end.decision as unknown as Json, request, Math.ceil(end.delayMs / 1_000));
    case 'cancelled':
      return new AppError('run_cancelled', 'the caller went away, so the call was cancelled');
    case 'closed':
      return takenOver();
  }
}

/** The process was cut off from the database for longer than its lease. */
export function takenOver(): AppError {
  return new AppError('contact_lost', 'the call outlived its lease, and what it answered was not accepted', {
    retryAfterS: 1,
  });
}
