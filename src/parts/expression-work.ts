/**
 * The work of expressions in this process. However many requests and runs evaluate at once, one turn of the event loop
 * does little more than one of their evaluations: later ones wait until everything else was served once.
 */
import { setImmediate } from 'node:timers/promises';
import { AppError } from '@capstan/core/errors/app-error';
import type { ExpressionError } from '@capstan/core/expression/language';
import type { Meter } from '@capstan/core/expression/meter';

/** Some hundred microseconds, and about two hundred usual inputs of a step. */
const unitsPerTurn = 50_000;

let done = 0;
let isServing = false;
const waiting: (() => void)[] = [];

/** In each turn of the event loop, those that wait continue one after the other until the turn has its work. */
async function serve(): Promise<void> {
  isServing = true;
  do {
    await setImmediate();
    done = 0;
    for (
      let next = waiting.shift();
      next !== undefined;
      next = done < unitsPerTurn ? waiting.shift() : undefined
    ) {
      next();
      await null; // its evaluation is done when this continues
    }
  } while (waiting.length > 0 || done >= unitsPerTurn);
  isServing = false;
}

/** Counts work that was done in this turn. */
export function noteWork(units: number): void {
  done += units;
  if (done >= unitsPerTurn && !isServing) void serve();
}

/** After a piece of work that is all that a turn may do. */
export function endTurn(): void {
  noteWork(unitsPerTurn);
}

/** @returns what to wait for before more work is done; null as a rule, so that nothing is awaited without need */
export function turnFor(): Promise<void> | null {
  return isServing ? new Promise((resolve) => waiting.push(resolve)) : null;
}

/** Evaluates, and counts it. @param meter that the evaluation draws on */
export function evaluateNow<Value>(meter: Meter, evaluate: () => Value): Value {
  const before = meter.left;
  try {
    return evaluate();
  } finally {
    noteWork(before - meter.left);
  }
}

/** @param where whose expressions they are, such as `step a` */
export function refuseWork({ message, pointer }: ExpressionError, where: string): AppError {
  return new AppError('expression_limit', `${where}: ${message} (at ${pointer})`, {
    errors: [{ pointer, code: 'expression_limit', message }],
  });
}
