/**
 * When an instance gets no more calls for a while, by what one process observed of it in the last 30 s. Only transport
 * faults and 5xx count as faults; a processing error (422) is an answer, and a cancel shows nothing.
 */
export interface FaultWindow {
  /** Faults since the last success, by their weight. */
  readonly consecutive: number;
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
  /** Weight of the outcome, at most 1. Default: 1. */
  readonly weight?: number;
  /** Any monotonic clock, ms. */
  readonly atMs: number;
}

const windowSeconds = 30;
const maxConsecutive = 5;
const minCalls = 10;

export const noFaults: FaultWindow = { consecutive: 0, seconds: [] };

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
  { consecutive, seconds }: FaultWindow,
  outcome: CallOutcome,
): { readonly window: FaultWindow; readonly trips: boolean } {
  const window = {
    consecutive: outcome.ok ? 0 : consecutive + (outcome.weight ?? 1),
    seconds: addOutcome(seconds, outcome),
  };
  const trips =
    outcome.isRefused ||
    window.consecutive >= maxConsecutive ||
    (!outcome.ok && isMostlyFaulty(window.seconds));
  return { window: trips ? noFaults : window, trips };
}

const firstOpenMs = 5_000;
const maxOpenMs = 300_000;

/**
 * @param openings how often it opened since its last success, before this time
 * @param random in [0, 1)
 */
export function openMs(openings: number, random: number): number {
  return Math.min(maxOpenMs, Math.round(firstOpenMs * 2 ** openings * (0.8 + 0.4 * random)));
}
