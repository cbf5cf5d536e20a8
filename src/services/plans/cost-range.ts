/**
 * What something costs, in nano-USD, as long as no input has to be corrected and no process of Capstan is killed:
 * - least: the cheapest instances take the calls, those that say themselves what a call costs for nothing, and what need
 *   not happen does not;
 * - expected: the chosen instances take them, for as long as such calls took so far, or, where an instance says itself
 *   what its calls cost, for what they cost so far;
 * - worst: every delivery that the retries allow is lost, and a lost one is paid for with all that was reserved (one
 *   that is answered with an error costs its time at most, one that was not sent nothing);
 * - limit: the worst, with as many items as a step may have where their number is not known: it is never exceeded.
 * A run below costs at worst its own ceiling.
 */
import type { PlannedCost } from '../../contracts/plan.ts';
import { fromNanoUsd, toNanoUsd } from '../../core/money/nano-usd.ts';

export interface CostRange {
  readonly least: bigint;
  readonly expected: bigint;
  readonly worst: bigint;
  readonly limit: bigint;
}

export const noCost: CostRange = { least: 0n, expected: 0n, worst: 0n, limit: 0n };

export function addCosts(one: CostRange, other: CostRange): CostRange {
  return {
    least: one.least + other.least,
    expected: one.expected + other.expected,
    worst: one.worst + other.worst,
    limit: one.limit + other.limit,
  };
}

export function multiplyCost({ least, expected, worst, limit }: CostRange, times: number): CostRange {
  const n = BigInt(times);
  return { least: least * n, expected: expected * n, worst: worst * n, limit: limit * n };
}

/** Of a run below: its own ceiling ends it, where it would cost more. @param ceilingUsd null = none */
export function capCost(cost: CostRange, ceilingUsd: number | null): CostRange {
  if (ceilingUsd === null) return cost;
  const ceiling = toNanoUsd(ceilingUsd);
  const cap = ceiling > cost.expected ? ceiling : cost.expected;
  const lower = (nano: bigint): bigint => (nano < cap ? nano : cap);
  return { ...cost, worst: lower(cost.worst), limit: lower(cost.limit) };
}

export function showCost({ least, expected, worst }: CostRange): PlannedCost {
  return {
    min: fromNanoUsd(least),
    expected: fromNanoUsd(expected),
    worst: fromNanoUsd(worst),
  };
}
