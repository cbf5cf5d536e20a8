/**
 * Prices that an instance declares as expressions over the input of a call: checked at its registration, reckoned for
 * each call. If an expression yields no amount for an input, the reason is returned.
 */
import type { Registration } from '../contracts/capability.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { evaluateTemplate } from '../expression/evaluate.ts';
import { inputDialect } from '../expression/filters.ts';
import { ExpressionError, ExpressionSyntaxError } from '../expression/language.ts';
import { Meter, workLimits } from '../expression/meter.ts';
import { type CompiledTemplate, readTemplate, visitPaths } from '../expression/template.ts';
import { isForbiddenName } from '../json/values.ts';

/** The one expression over `input` that is the text, or why it is none. */
function parseCost(text: string): CompiledTemplate | ExpressionSyntaxError {
  const { template, errors } = readTemplate(text, '', inputDialect);
  const [error] = errors;
  if (error !== undefined) return error;
  if (template.root.kind === 'expression') return template;
  const message = 'one {{ }} is the whole text, such as {{ (input | tokens) * 0.000003 }}';
  return new ExpressionSyntaxError({ code: 'expression_syntax', pointer: '', offset: 0, message });
}

/** What is wrong with the expressions of a price. */
export function findCostFaults({
  cost_model: { type, worst_case, expected, start, per_token },
  settle,
}: Pick<Registration, 'cost_model' | 'settle'>): { readonly field: string; readonly message: string }[] {
  const faults = Object.entries({ worst_case, expected, start, per_token }).flatMap(([field, text]) => {
    const message = text === undefined ? null : findTextFault(text);
    return message === null ? [] : [{ field, message }];
  });
  if (per_token !== undefined && worst_case === undefined)
    faults.push({ field: 'per_token', message: 'needs `worst_case`, up to which the call may grow' });
  if (worst_case === undefined || type !== 'per_call' || settle === 'reported') return faults;
  const message = 'needs settle: "reported", because each call costs the whole rate otherwise';
  return [...faults, { field: 'worst_case', message }];
}

function findTextFault(text: string): string | null {
  const parsed = parseCost(text);
  if (!(parsed instanceof ExpressionSyntaxError)) return findWorkFault(parsed);
  const { message, offset, suggestion } = parsed;
  return `at character ${offset + 1}: ${message}${suggestion === undefined ? '' : `; ${suggestion}`}`;
}

/** Values of usual size, which an expression may find at its paths. */
const usualValues: readonly Json[] = [
  'word '.repeat(800),
  1_000,
  Array.from({ length: 20 }, () => ({ role: 'user', content: 'word '.repeat(40) })),
];

/** The price is reckoned for every call, so it is measured before it is accepted. */
function findWorkFault(compiled: CompiledTemplate): string | null {
  const units = Math.max(...usualValues.map((value) => measureWork(compiled, usualInput(compiled, value))));
  if (units <= workLimits.usualPrice) return null;
  const seen = units < workLimits.request ? units : `more than ${workLimits.request}`;
  return `takes ${seen} units of work for an input of usual size; at most ${workLimits.usualPrice} are allowed`;
}

function measureWork(compiled: CompiledTemplate, input: JsonObject): number {
  const meter = new Meter(workLimits.request);
  try {
    evaluateTemplate(compiled, { input, match: {} }, meter);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
  }
  return meter.spent;
}

/** An input with that value at each path of the expression. */
function usualInput(compiled: CompiledTemplate, value: Json): JsonObject {
  const input: Record<string, Json> = { messages: value };
  visitPaths(compiled, ({ segments }) => {
    const [first, ...rest] = segments;
    if (typeof first !== 'string' || isForbiddenName(first)) return;
    input[first] = rest.reduceRight<Json>(
      (below, segment) => (typeof segment === 'string' ? { [segment]: below } : [below]),
      value,
    );
  });
  return input;
}

/** Each spec version has its own text, and parsing takes longer than evaluating. */
const known = new Map<string, ReturnType<typeof parseCost>>();
const maxKnown = 500;

function readCost(text: string): ReturnType<typeof parseCost> {
  let compiled = known.get(text);
  if (compiled === undefined) {
    if (known.size >= maxKnown) known.clear();
    compiled = parseCost(text);
    known.set(text, compiled);
  }
  return compiled;
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
  const compiled = readCost(text);
  if (compiled instanceof ExpressionSyntaxError) return { fault: compiled.message };
  try {
    const value = evaluateTemplate(compiled, { input, match: {} }, meter);
    if (typeof value !== 'number') return { fault: 'it is no number' };
    if (value < 0) return { fault: 'it is below 0' };
    return Math.max(leastUsd, Number(value.toFixed(rateDecimals)));
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { fault: error.isTooLarge ? describeWork(meter) : error.message };
  }
}

function describeWork({ most }: Meter): string {
  return most === workLimits.price
    ? `it takes more than ${most} units of work for this input`
    : 'the prices of this choice take too much work together';
}
