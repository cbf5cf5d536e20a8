/**
 * Holds that grow: what a call keeps from the room of its budgets while it runs, if it can be stopped and its use is
 * seen on the way. Invariants, in nano-USD:
 *
 * G1 The hold is never below what the call has used, and never above its worst case.
 * G2 A hold grows by a piece before the rest of it is used: `ahead` units are always left, as many as the call may
 *    use before the next look at it. Without a further piece the call is stopped while they are left.
 * G3 A piece is a share of the room, so that where there is room a call holds its worst case from the beginning, and
 *    where there is little, a piece is the least that keeps G2.
 * G4 A call is admitted if, in each of its budgets, spent + held + its first piece fits into the limit, and if every
 *    call in flight is expected to end within the limit beside it: the mean of its cost, with its `ahead` units, and
 *    `certainty` deviations of the sum. A further piece needs room only: a call in flight comes first.
 *
 * A unit is a token of the answer, or a millisecond where a call is paid by time.
 */

/** How many deviations of the cost of calls in flight an admission leaves free. */
export const certainty = 3;
/** The part of the room that one piece takes. */
const share = 1 / 512;

/** The price of a call as it runs. */
export interface HoldTerms {
  /** Before its first unit, nano-USD. */
  readonly startNano: number;
  readonly unitNano: number;
  /** Its worst case, nano-USD. */
  readonly mostNano: number;
  /** Units that it may use before it is looked at again, at least 1. */
  readonly ahead: number;
}

export function usedNano({ startNano, unitNano, mostNano }: HoldTerms, units: number): number {
  return Math.min(mostNano, startNano + Math.ceil(unitNano * units));
}

/** The least that keeps G2 for a call that has used so many units. */
function leastHold(terms: HoldTerms, units: number): number {
  return usedNano(terms, units + 2 * terms.ahead);
}

/** The hold of a call by the room of its budgets, beside what it holds already. @param roomNano null: there is no limit */
export function holdFor(
  terms: HoldTerms,
  {
    units,
    heldNano,
    roomNano,
  }: { readonly units: number; readonly heldNano: number; readonly roomNano: number | null },
): number {
  if (roomNano === null) return terms.mostNano;
  const wished = usedNano(terms, units) + Math.floor(roomNano * share);
  return Math.max(heldNano, Math.min(terms.mostNano, Math.max(leastHold(terms, units), wished)));
}

/** G2: whether the hold must grow now. */
export function mustGrow(terms: HoldTerms, units: number, heldNano: number): boolean {
  return heldNano < usedNano(terms, units + Math.ceil(1.5 * terms.ahead));
}

/** G2: whether the call must be stopped, if its hold cannot grow. */
export function mustStop(terms: HoldTerms, units: number, heldNano: number): boolean {
  return heldNano < usedNano(terms, units + terms.ahead);
}

/** G2: the most that a call has cost that ends now, nano-USD: what was seen of it, and the units ahead. */
export function mostAtEnd(terms: HoldTerms, units: number, heldNano: number): number {
  return Math.min(heldNano, usedNano(terms, units + terms.ahead));
}

// What calls use, learnt from those that have ended.

/** How many ended calls used so many units, by `lengthBucket`. */
export type Lengths = readonly number[];

const bucketsPerOctave = 4;
const lengthBuckets = 100;

function lengthBucket(units: number): number {
  return Math.min(lengthBuckets - 1, Math.floor(bucketsPerOctave * Math.log2(Math.max(0, units) + 1)));
}

export function addLength(lengths: Lengths, units: number): Lengths {
  const bucket = lengthBucket(units);
  const size = Math.max(lengths.length, bucket + 1);
  return Array.from({ length: size }, (_, at) => (lengths[at] ?? 0) + (at === bucket ? 1 : 0));
}

function middleOf(bucket: number): number {
  return 2 ** ((bucket + 0.5) / bucketsPerOctave) - 1;
}

/** Fewer ended calls are too few for an estimate. */
const leastKnown = 32;
/** A call is never expected to end at once. */
const leastRest = 8;

/** What a call pays, and what others like it have used. */
export interface GrowingCall {
  readonly terms: HoldTerms;
  readonly lengths: Lengths;
}

/** The use of a call, expected: mean, and variance. */
export interface CostOutlook {
  readonly mean: number;
  readonly variance: number;
}

/**
 * The units that a call will use in all, given that it has used some, and uses at most so many. Without enough ended
 * calls, or where none went so far: all of them.
 */
export function expectUnits(lengths: Lengths, used: number, most: number): CostOutlook {
  const known = lengths.reduce((sum, count) => sum + count, 0);
  let [count, sum, squares] = [0, 0, 0];
  for (let bucket = lengthBucket(used); bucket < lengths.length; bucket += 1) {
    const calls = lengths[bucket] as number;
    const units = Math.min(most, Math.max(used, middleOf(bucket)));
    count += calls;
    sum += calls * units;
    squares += calls * units * units;
  }
  if (known < leastKnown || count === 0) return { mean: most, variance: 0 };
  const mean = sum / count;
  return {
    mean: Math.min(most, Math.max(mean, used + leastRest)),
    variance: Math.max(0, squares / count - mean * mean),
  };
}

/** How quickly calls use their units, by how long they take on average; 0: too few are known. */
export function unitsPerSecond(lengths: Lengths, meanMs: number | null): number {
  const { mean } = expectUnits(lengths, 0, Number.POSITIVE_INFINITY);
  return meanMs === null || meanMs <= 0 || mean === Number.POSITIVE_INFINITY ? 0 : (mean * 1_000) / meanMs;
}

/** Of a call that is quicker than this in half a second, all of its answer may come at once. */
const mostAhead = 256;

/** The units ahead of a call that uses so many in a second: `least`, or what a quicker one uses in half a second. */
export function aheadAt(least: number, unitsASecond: number): number {
  return Math.max(least, Math.min(mostAhead, Math.ceil(unitsASecond / 2)));
}

/** Parts come together: what came in less than a second shows no pace above that in a second. */
const leastSpanMs = 1_000;

/** A call that has used so many units in this time may be quicker than its like. */
export function termsAt(terms: HoldTerms, units: number, elapsedMs: number): HoldTerms {
  const ahead = aheadAt(terms.ahead, (units * 1_000) / Math.max(leastSpanMs, elapsedMs));
  return ahead > terms.ahead ? { ...terms, ahead } : terms;
}

/** G4: what a call is expected to hold at its end, nano-USD, and the variance of it. */
export function expectCost(terms: HoldTerms, lengths: Lengths, units: number): CostOutlook {
  const { startNano, unitNano, mostNano, ahead } = terms;
  const most = unitNano === 0 ? 0 : (mostNano - startNano) / unitNano;
  const { mean, variance } = expectUnits(lengths, units, most);
  return { mean: usedNano(terms, mean + ahead), variance: variance * unitNano * unitNano };
}

/** The sums of a budget that an admission looks at, nano-USD. */
export interface BudgetOutlook {
  readonly limitNano: number;
  readonly spentNano: number;
  readonly heldNano: number;
  /** The sum that calls in flight will hold at their ends. */
  readonly expected: CostOutlook;
}

/** G4. The claim checks it in the database (sql/money.sql), which test/db/money/admission.test.ts holds to this. */
export function isAdmitted(
  { limitNano, spentNano, heldNano, expected }: BudgetOutlook,
  firstNano: number,
  own: CostOutlook,
): boolean {
  const deviation = Math.sqrt(expected.variance + own.variance);
  return (
    spentNano + heldNano + firstNano <= limitNano &&
    spentNano + expected.mean + own.mean + certainty * deviation <= limitNano
  );
}

/** A call as its budgets see it. */
export interface AdmittedCall {
  readonly firstNano: number;
  /** What it holds as well while it is open, and needs no room for. */
  readonly riskNano: number;
  /** Null: it holds its worst case. */
  readonly expected: CostOutlook | null;
}

/** G4: how many equal calls the room admits at once. Without an expectation, what they hold decides alone. */
export function countAdmitted({ firstNano, riskNano, expected }: AdmittedCall, roomNano: number): number {
  const own = expected ?? { mean: 0, variance: 0 };
  const isNextAdmitted = (count: number): boolean =>
    isAdmitted(
      {
        limitNano: roomNano,
        spentNano: 0,
        heldNano: count * (firstNano + riskNano),
        expected: { mean: count * own.mean, variance: count * own.variance },
      },
      firstNano,
      own,
    );
  // Each holds a nano-USD at least; larger numbers are not exact.
  let [admitted, refused] = [0, Math.min(roomNano + 1, Number.MAX_SAFE_INTEGER)];
  while (admitted < refused) {
    const count = Math.floor((admitted + refused) / 2);
    if (isNextAdmitted(count)) admitted = count + 1;
    else refused = count;
  }
  return admitted;
}
