/**
 * The time that a run has for its end. It stops while the run is paused, and continues after it, in any number of
 * pauses and histories. Engine and mock runs bring their clocks as ports.
 */
import type { Failure } from './contracts/primitives.ts';

export interface TimePorts {
  /** Unix milliseconds. */
  nowMs(): number;
  /** Calls `fire` once this time has passed. @returns a function that prevents the call */
  arm(ms: number, fire: () => void): () => void;
}

/** The time of a run between two histories: while it is paused what is left, else its deadline. */
export interface TimeLeft {
  /** Unix milliseconds; null = the run has no limit, or is paused. */
  readonly deadline_ms: number | null;
  /** Present while a run with a limit is paused. */
  readonly left_ms?: number;
}

export interface TimeLimit {
  pause(): void;
  resume(): void;
  /** The run has ended, or continues in another history. */
  stop(): void;
  left(): TimeLeft;
}

/** @param timeoutMs null = no limit */
export function timeOf(timeoutMs: number | null, nowMs: number): TimeLeft {
  return { deadline_ms: timeoutMs === null ? null : nowMs + timeoutMs };
}

export function outOfRunTime(timeoutMs: number | null): Failure {
  return { code: 'run_timeout', message: `the run did not end within ${timeoutMs} ms` };
}

interface TimeLimitTerms {
  readonly from: TimeLeft;
  readonly isPaused: boolean;
  /** Called at most once, when the time is over. */
  readonly over: () => void;
}

export function limitTime(ports: TimePorts, { from, isPaused, over }: TimeLimitTerms): TimeLimit {
  let deadlineMs = from.deadline_ms;
  let leftMs: number | null = from.left_ms ?? null;
  let disarm = (): void => undefined;
  const arm = (): void => {
    if (deadlineMs !== null) disarm = ports.arm(Math.max(1, deadlineMs - ports.nowMs()), over);
  };
  const pause = (): void => {
    if (deadlineMs === null) return;
    disarm();
    leftMs = Math.max(0, deadlineMs - ports.nowMs());
    deadlineMs = null;
  };
  const resume = (): void => {
    if (leftMs === null) return;
    deadlineMs = ports.nowMs() + leftMs;
    leftMs = null;
    arm();
  };
  if (isPaused) pause();
  else if (leftMs !== null) resume();
  else arm();
  return {
    pause,
    resume,
    stop: () => disarm(),
    left: () => ({ deadline_ms: deadlineMs, ...(leftMs === null ? {} : { left_ms: leftMs }) }),
  };
}
