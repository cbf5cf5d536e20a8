/** Whether a step with `repeat` has another round (R2, R3 and R5 of rounds.ts), by the output of the last one. */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Repeat } from '../../contracts/pipeline.ts';
import type { Failure, Json } from '../../contracts/primitives.ts';
import { parseDuration } from '../../duration.ts';
import { writeJson } from '../../json/text.ts';
import type { RoundVerdict } from './rounds.ts';

export interface EndedRound {
  readonly repeat: Repeat;
  /** From 1. */
  readonly round: number;
  readonly output: Json;
  /** Whether the condition holds. */
  readonly holds: { readonly value: boolean } | { readonly error: Failure };
  /** Since the first round began, without the pauses of the run. */
  readonly spentMs: number;
  readonly nowMs: number;
}

export function judgeRound({ repeat, round, output, holds, spentMs, nowMs }: EndedRound): RoundVerdict {
  if ('error' in holds) {
    const message = `repeat.until, after round ${round}: ${holds.error.message}`;
    return { type: 'fail', error: { ...holds.error, message } };
  }
  if (holds.value) return { type: 'done' };
  const pauseMs = repeat.pause === undefined ? 0 : parseDuration(repeat.pause);
  const limit = findLimit(repeat, round, spentMs + pauseMs);
  if (limit === null) return { type: 'again', until: pauseMs === 0 ? null : nowMs + pauseMs };
  return repeat.on_exhausted === 'continue'
    ? { type: 'done' }
    : { type: 'fail', error: exhausted(limit, output) };
}

/** @returns why no further round may begin; null = it may */
function findLimit({ max, timeout }: Repeat, round: number, nextMs: number): string | null {
  if (round >= max) return `${round} of at most ${max} rounds`;
  if (timeout === undefined || nextMs <= parseDuration(timeout)) return null;
  return `${round} ${round === 1 ? 'round' : 'rounds'}; the next one would begin after the timeout of ${timeout}`;
}

const longestShown = 300;

function exhausted(limit: string, output: Json): Failure {
  const text = writeJson(output);
  const shown = text.length <= longestShown ? text : `${text.slice(0, longestShown)}…`;
  return {
    code: 'rounds_exhausted' satisfies ErrorCode,
    message: `repeat.until did not hold in ${limit}; the last output is ${shown}`,
  };
}
