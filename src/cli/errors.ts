/** The errors of a command, each with its lines for stderr and its exit code. */

import type { ProblemItem } from '@capstan/core/contracts/problem';
import type { RunState } from '@capstan/core/contracts/run';
import { MissingPartError } from '@capstan/core/errors/start-errors';
import { shortenLines } from '@capstan/core/json/values';

export const exitCodes = {
  ok: 0,
  /** The run failed, the definition has errors, or the API refused the request. */
  failed: 1,
  /** The outcome is unknown: no contact with Capstan, or the wait ended. */
  unknown: 2,
  cancelled: 3,
  /** A required part is not installed. */
  missingPart: 4,
  /** `apply --dry-run` and `pull --dry-run`: the files and the server differ. */
  differs: 5,
  interrupted: 130,
  brokenPipe: 141,
} as const;

/** The exit code of `capstan` for a run. Scripts depend on these numbers. */
export function exitCodeOf(state: RunState): number {
  switch (state) {
    case 'succeeded':
      return exitCodes.ok;
    case 'failed':
      return exitCodes.failed;
    case 'cancelled':
      return exitCodes.cancelled;
    case 'queued':
    case 'running':
    case 'paused':
    case 'cancelling':
      return exitCodes.unknown;
  }
}

/** The API answered with problem+json. `code` is not closed: a newer server may know more codes. */
export interface ProblemAnswer {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly errors: readonly ProblemItem[];
  readonly request_id?: string | undefined;
  readonly retry_after_s?: number | undefined;
}

export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly problem: ProblemAnswer;

  constructor(problem: ProblemAnswer) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** No usable answer: refused, unresolved, broken off, timed out, or not Capstan at all. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** The command line, or a file that it names, is invalid. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

interface ErrorReport {
  readonly lines: readonly string[];
  readonly exitCode: number;
}

function describeItem(item: ProblemItem): string {
  const place = item.line === undefined ? '' : ` (line ${item.line})`;
  const suggestion = item.suggestion === undefined ? '' : ` (${item.suggestion})`;
  return `${item.pointer || '/'}${place} ${item.code}: ${item.message}${suggestion}`;
}

function describeProblem(problem: ProblemAnswer): string[] {
  const items = problem.errors.map(describeItem);
  const shown = problem.code === 'definition_invalid' ? items : shortenLines(items);
  const lines = [`error ${problem.code}: ${problem.detail}`, ...shown.map((line) => `  ${line}`)];
  if (problem.retry_after_s !== undefined) lines.push(`  worth another try in ${problem.retry_after_s}s`);
  if (problem.status >= 500 && problem.request_id !== undefined) {
    lines.push(`  request_id ${problem.request_id} finds it in the server's log`);
  }
  return lines;
}

/** Also searches the causes. */
function findMissingPart(thrown: unknown): MissingPartError | null {
  if (!(thrown instanceof Error)) return null;
  return thrown instanceof MissingPartError ? thrown : findMissingPart(thrown.cause);
}

export function describeError(thrown: unknown): ErrorReport {
  if (thrown instanceof ProblemError) {
    return { lines: describeProblem(thrown.problem), exitCode: exitCodes.failed };
  }
  if (thrown instanceof UnreachableError)
    return { lines: thrown.message.split('\n'), exitCode: exitCodes.unknown };
  if (thrown instanceof UsageError) {
    return { lines: `error usage: ${thrown.message}`.split('\n'), exitCode: exitCodes.failed };
  }
  const missing = findMissingPart(thrown);
  if (missing !== null) {
    return { lines: `error missing_part: ${missing.message}`.split('\n'), exitCode: exitCodes.missingPart };
  }
  const message = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return { lines: `error internal: ${message}`.split('\n'), exitCode: exitCodes.failed };
}
