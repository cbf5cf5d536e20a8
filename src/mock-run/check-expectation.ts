/** Whether a local run came out as its mocks file expects; each difference is one line. */
import type { Json } from '../contracts/primitives.ts';
import { isEqual } from '../core/expression/equality.ts';
import { showBriefly } from './mock-fault.ts';
import type { Expectation } from './mocks.ts';
import type { LocalStep } from './run-journal.ts';
import type { LocalResult } from './run-locally.ts';

export interface Difference {
  /** As in the mocks file: `steps.join.state`. */
  readonly at: string;
  readonly expected: string;
  readonly actual: string;
}

/** @returns empty when all is as expected */
export function findDifferences(expected: Expectation, result: LocalResult): Difference[] {
  return [
    ...compare('outcome', expected.outcome, result.outcome),
    ...compare('error', expected.error, result.error?.code ?? null),
    ...compare('output', expected.output, result.output),
    ...Object.entries(expected.steps ?? {}).flatMap(([id, step]) => compareStep(id, step, result.steps)),
    ...Object.entries(expected.calls ?? {}).flatMap(([name, count]) =>
      compare(`calls.${name}`, count, result.calls[name] ?? 0),
    ),
  ];
}

type ExpectedStep = NonNullable<Expectation['steps']>[string];

function compareStep(id: string, expected: ExpectedStep, steps: readonly LocalStep[]): Difference[] {
  const at = `steps.${id}`;
  const whole = steps.find((step) => step.id === id && step.item === 0);
  if (whole === undefined) return [{ at, expected: 'a step', actual: 'no such step' }];
  if (typeof expected === 'string') return compare(at, expected, whole.state);
  const items = steps.filter((step) => step.id === id && step.item > 0);
  return [
    ...compare(`${at}.state`, expected.state, whole.state),
    ...compare(`${at}.error`, expected.error, whole.error?.code ?? null),
    ...compare(`${at}.output`, expected.output, whole.output ?? null),
    ...compare(`${at}.attempts`, expected.attempts, whole.attempts),
    ...compare(
      `${at}.items`,
      expected.items,
      items.map(({ state }) => state),
    ),
  ];
}

function compare(at: string, expected: Json | undefined, actual: Json): Difference[] {
  return expected === undefined || isEqual(expected, actual)
    ? []
    : [{ at, expected: showBriefly(expected), actual: showBriefly(actual) }];
}
