/**
 * Prices that an instance declares as expressions over the input of a call: checked at its registration, reckoned for
 * each call. If an expression yields no amount for an input, the reason is returned.
 */

import { evaluateOverInput, findInputFault } from '../call/input-expressions.ts';
import type { Registration } from '../contracts/capability.ts';
import type { JsonObject } from '../contracts/primitives.ts';
import { Meter, workLimits } from '../expression/meter.ts';

/** What is wrong with the expressions of a price. */
export function findCostFaults({
  cost_model: { type, worst_case, expected, start, per_token },
  settle,
}: Pick<Registration, 'cost_model' | 'settle'>): { readonly field: string; readonly message: string }[] {
  const faults = Object.entries({ worst_case, expected, start, per_token }).flatMap(([field, text]) => {
    const message = text === undefined ? null : findInputFault(text, 'expression');
    return message === null ? [] : [{ field, message }];
  });
  if (per_token !== undefined && worst_case === undefined)
    faults.push({ field: 'per_token', message: 'needs `worst_case`, up to which the call may grow' });
  if (worst_case === undefined || type !== 'per_call' || settle === 'reported') return faults;
  const message = 'needs settle: "reported", because each call costs the whole rate otherwise';
  return [...faults, { field: 'worst_case', message }];
}

interface CostFault {
  readonly fault: string;
}

/** USD above 0, or the reason why there is no amount. */
export type CostOfInput = (text: string) => number | CostFault;

/** An amount of 0 would make the call a free one, without a reservation that an overrun could be booked on. */
const leastUsd = 1e-9;

/** As many as a rate has: more would be the error of a double, which the reservation rounds up to a nano-USD. */
const rateDecimals = 12;

interface CostWork {
  /** That the prices of several inputs share; default: one for each input. */
  readonly meter?: Meter;
  /** Receives the work that was done. */
  readonly note?: (units: number) => void;
}

/** Evaluates each text once for the input, however many instances share it and however often the call is routed. */
export function createCostOfInput(
  input: JsonObject | (() => JsonObject),
  { meter, note }: CostWork = {},
): CostOfInput {
  let known: { readonly costs: Map<string, ReturnType<CostOfInput>>; readonly all: Meter } | null = null;
  return (text) => {
    known ??= { costs: new Map(), all: meter ?? new Meter(workLimits.choice) };
    const { costs, all } = known;
    let cost = costs.get(text);
    if (cost === undefined) {
      const own = all.part(workLimits.price);
      cost = evaluateCost(text, typeof input === 'function' ? input() : input, own);
      all.count(own);
      note?.(own.spent);
      costs.set(text, cost);
    }
    return cost;
  };
}

function evaluateCost(text: string, input: JsonObject, meter: Meter): number | CostFault {
  const { value, fault, isTooLarge } = evaluateOverInput(text, input, meter);
  if (fault !== undefined) return { fault: isTooLarge ? describeWork(meter) : fault };
  if (typeof value !== 'number') return { fault: 'it is no number' };
  if (value < 0) return { fault: 'it is below 0' };
  return Math.max(leastUsd, Number(value.toFixed(rateDecimals)));
}

function describeWork({ most }: Meter): string {
  return most === workLimits.price
    ? `it takes more than ${most} units of work for this input`
    : 'the prices of this choice take too much work together';
}
