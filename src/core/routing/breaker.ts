/**
 * When an instance gets no more calls for a while: what one process saw of it in the last 30 s. Only faults of
 * transport and 5xx are recorded as such; a processing error (422) is an answer, and a cancel says nothing.
 */
export interface FaultWindow {
  /** Faults since the last success, by their weight. */
  readonly consecutive: number;
  /** Outcomes by second, oldest first; at most 30 seconds, so that memory is bounded whatever the rate. */
  readonly seconds: readonly OneSecond[];
}

interface OneSecond {
  readonly second: number;
  readonly calls: number;
  readonly faults: number;
}

export interface CallOutcome {
  readonly ok: boolean;
  /** Nobody listens there: no need to see it twice. */
  readonly isRefused: boolean;
  /** How much it says, at most 1. Default: 1. */
  readonly weight?: number;
  /** Any clock that does not jump, ms. */
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

/** @returns the window to go on with, empty after it tripped, and whether the breaker has to open */
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
 * @param openings how often it opened since it last worked, before this time
 * @param random in [0, 1)
 */
export function openMs(openings: number, random: number): number {
  return Math.min(maxOpenMs, Math.round(firstOpenMs * 2 ** openings * (0.8 + 0.4 * random)));
}
