/**
 * When an instance gets no more calls for a while, by what one process observed of it in the last 30 s. Only transport
 * faults, refusals for now (429, 503) and 5xx count as faults; a processing error (422) is an answer, and a cancel
 * shows nothing. R7: refusals of one caller count once until the next success. The instance may ask that caller to wait
 * for a job of its own, and serve all others.
 */
export interface FaultWindow {
  /** Faults since the last success, by their weight. */
  readonly consecutive: number;
  /** Callers that were refused since the last success. */
  readonly refused: readonly string[];
  /** Outcomes per second, oldest first; at most 30 seconds, so that memory is bounded at any rate. */
  readonly seconds: readonly OneSecond[];
}

interface OneSecond {
  readonly second: number;
  readonly calls: number;
  readonly faults: number;
}

export interface CallOutcome {
  readonly ok: boolean;
  /** The connection was refused: one such fault is enough. */
  readonly isRefused: boolean;
  /** The caller, if it was refused for now. */
  readonly refusedCaller?: string | undefined;
  /** Weight of the outcome, at most 1. Default: 1. */
  readonly weight?: number;
  /** Any monotonic clock, ms. */
  readonly atMs: number;
}

const windowSeconds = 30;
const maxConsecutive = 5;
const minCalls = 10;

export const noFaults: FaultWindow = { consecutive: 0, refused: [], seconds: [] };

function addOutcome(
  seconds: readonly OneSecond[],
  { ok, atMs, weight = 1 }: CallOutcome,
): FaultWindow['seconds'] {
  const newest = seconds.at(-1);
  const second = Math.max(Math.floor(atMs / 1_000), newest?.second ?? Number.NEGATIVE_INFINITY);
  const fault = ok ? 0 : weight;
  if (newest?.second === second) {
    return [...seconds.slice(0, -1), { second, calls: newest.calls + weight, faults: newest.faults + fault }];
  }
  const recent = seconds.filter((one) => one.second > second - windowSeconds);
  return [...recent, { second, calls: weight, faults: fault }];
}

function isMostlyFaulty(seconds: FaultWindow['seconds']): boolean {
  let calls = 0;
  let faults = 0;
  for (const one of seconds) {
    calls += one.calls;
    faults += one.faults;
  }
  return calls >= minCalls && faults * 2 > calls;
}

/** @returns the next window, which is empty after a trip, and whether the breaker has to open */
export function recordOutcome(
  before: FaultWindow,
  outcome: CallOutcome,
): { readonly window: FaultWindow; readonly trips: boolean } {
  const { consecutive, refused, seconds } = before;
  const { refusedCaller: caller } = outcome;
  if (caller !== undefined && refused.includes(caller)) return { window: before, trips: false };
  const window = {
    consecutive: outcome.ok ? 0 : consecutive + (outcome.weight ?? 1),
    refused: outcome.ok ? [] : caller === undefined ? refused : [...refused, caller],
    seconds: addOutcome(seconds, outcome),
  };
  const trips =
    outcome.isRefused ||
    window.consecutive >= maxConsecutive ||
    (!outcome.ok && isMostlyFaulty(window.seconds));
  return { window: trips ? noFaults : window, trips };
}

/** How long an instance may ask for. */
const longestAskedMs = 60_000;
const firstOpenMs = 5_000;
const maxOpenMs = 300_000;

interface Opening {
  /** How often it opened since its last success, before this time. */
  readonly openings: number;
  /** In [0, 1). */
  readonly random: number;
  /** The time that a refusal asked for. */
  readonly askedMs?: number | null | undefined;
}

export function openMs({ openings, random, askedMs = null }: Opening): number {
  if (askedMs !== null) return Math.min(longestAskedMs, askedMs);
  return Math.min(maxOpenMs, Math.round(firstOpenMs * 2 ** openings * (0.8 + 0.4 * random)));
}
