/** Amounts that the page promises: a plan's bound, and the budget that lets a run continue. */
import type { Plan, PlannedStepView } from '@capstan/core/contracts/plan';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextStepsOf } from '../src/pages/run/model.ts';
import { type BudgetNeed, suggestCeiling } from '../src/pages/run/rerun-model.ts';
import { describeAtOnce, describeOpenItems, describePast, describeRange } from '../src/plan/plan-model.ts';
import { adviseCeiling, exactUsd, findCeilingFault } from '../src/review/ceiling.ts';

function aPlan(worst: number, limit_usd: number, steps: readonly object[] = []): Plan {
  return { cost_usd: { min: 0, expected: 0, worst }, limit_usd, steps } as unknown as Plan;
}

describe('a plan', () => {
  test('names the greatest cost, and the lists whose length only the run knows', () => {
    const steps = [
      { id: 'list', happens: 'yes' },
      { id: 'chapters', happens: 'yes', items: null },
      { id: 'never', happens: 'no', items: null },
      { id: 'covers', happens: 'unknown', items: null },
      { id: 'four', happens: 'yes', items: 4 },
    ];
    const open = aPlan(0.024, 240, steps);
    expect(describeRange(open)).toBe('(at least $0, at worst $240.00, if no input has to be corrected)');
    expect(describeOpenItems(open)).toBe(
      'Only the run knows how many items chapters, covers will have: estimate and time count one of each, the worst case 10,000.',
    );
    const known = aPlan(0.024, 0.024, steps.slice(0, 1));
    expect([describeRange(known), describeOpenItems(known)]).toEqual([
      '(at least $0, at worst $0.024, if no input has to be corrected)',
      null,
    ]);
  });

  test.each([
    ['fewer than its items', { at_once: 37, items: 2_000 }, 'Its money admits 37 of 2,000 calls at once.'],
    ['none', { at_once: 0, items: 3 }, 'Its money admits 0 of 3 calls at once.'],
    ['all', { at_once: 5, items: 5 }, null],
    ['any number', { items: 5 }, null],
    ['an unknown share', { at_once: 3, items: null }, null],
    ['its only call', { at_once: 3 }, null],
  ])('names what its money admits at once: %s', (_, step, words) => {
    expect(describeAtOnce(step as PlannedStepView)).toBe(words);
  });

  test('shows that where the list is that of a child run', () => {
    expect(describeOpenItems(aPlan(1, 10_000, [{ id: 'child', happens: 'yes' }]))).toContain(
      'how many items lists in child runs will have',
    );
  });

  test('is beside the costs of such runs', () => {
    const run = (cost_usd: number, s: number) => ({
      cost_usd,
      started_at: '2026-01-01T00:00:00Z',
      finished_at: new Date(Date.parse('2026-01-01T00:00:00Z') + s * 1_000).toISOString(),
    });
    expect(describePast([])).toBeNull();
    expect(describePast([run(0.01, 2)])).toBe('The last run that succeeded cost $0.01 and took 2.0 s.');
    expect(describePast([run(0.052, 12), run(0.042, 8), run(0.05, 9)])).toBe(
      'The last 3 runs that succeeded cost $0.042 to $0.052 and took 8.0 s to 12 s.',
    );
  });
});

interface Case {
  readonly spent: number;
  readonly minimum: number;
  readonly limit: number;
  readonly need: number | null;
  readonly items: number;
  /** The run that waits is below the run with the ceiling. */
  readonly isBelow: boolean;
}

const cents = (max: number) => fc.integer({ min: 1, max }).map((n) => n / 1_000);

const cases: fc.Arbitrary<Case> = fc.record({
  spent: cents(100),
  minimum: cents(100),
  limit: cents(150),
  need: fc.option(cents(300)),
  items: fc.integer({ min: 1, max: 9 }),
  isBelow: fc.boolean(),
});

function play({ spent, minimum, limit, need, items, isBelow }: Case) {
  const step = { id: 'covers', state: 'waiting', items: { waiting: items } } as unknown as RunStep;
  const child = { run_id: 'run_child', cost_usd: 0, reserved_usd: 0, steps: [step] } as unknown as Run;
  const parent = {
    run_id: 'run_parent',
    cost_usd: spent,
    reserved_usd: 0,
    budget_ceiling_usd: limit,
    steps: isBelow ? [{ id: 'cover', awaiting: 'run' }] : [step],
  } as unknown as Run;
  const waiting = isBelow ? child : parent;
  const details = {
    scope: 'run',
    limit_usd: limit,
    spent_usd: spent,
    reserved_usd: 0,
    minimum_usd: minimum,
    resets_at: null,
    run_id: waiting.run_id,
    step_id: 'covers',
  };
  const review = { kind: 'budget', run_id: 'run_parent', payload: { details } } as unknown as Review;
  const advice = adviseCeiling(review, waiting);
  const wanted: BudgetNeed | null =
    need === null
      ? null
      : {
          usd: need,
          spentUsd: spent,
          left: [{ id: isBelow ? 'cover' : 'covers', calls: 1, eachUsd: minimum }],
        };
  return { suggested: suggestCeiling(parent, wanted, advice) ?? limit, advice };
}

test('a suggested ceiling is never one that the form refuses, and suffices for all waiting items', () => {
  const refused = cases.filter(({ spent, minimum, limit }) => spent + minimum > limit);
  fc.assert(
    fc.property(refused, (given) => {
      const { suggested, advice } = play(given);
      expect(findCeilingFault(exactUsd(suggested), advice)).toBeNull();
      const all = given.spent + given.items * given.minimum;
      expect(suggested).toBeGreaterThanOrEqual(all - 1e-9);
    }),
  );
});

test('the price of steps that do not wait is added', () => {
  const { advice } = play({ spent: 0.05, minimum: 0.002, limit: 0.05, need: null, items: 2, isBelow: true });
  const left = [
    { id: 'cover', calls: 1, eachUsd: 0.002 },
    { id: 'publish', calls: 1, eachUsd: 0.1 },
  ];
  const run = {
    run_id: 'run_parent',
    budget_ceiling_usd: 0.05,
    steps: [{ id: 'cover', awaiting: 'run' }, { id: 'publish' }],
  } as unknown as Run;
  const need = { usd: 0.152, spentUsd: 0.05, left };
  expect(suggestCeiling(run, need, advice)).toBe(0.154);
});

test('a parent whose child waits for budget offers the budget and the child', () => {
  const step = { id: 'cover', state: 'running', awaiting: 'run', sub_run_id: 'run_child' };
  const run = { steps: [step] } as unknown as Run;
  const condition = { kind: 'budget', title: '', detail: '', steps: ['cover'] } as const;
  expect(nextStepsOf(run, condition)).toEqual([{ kind: 'raise' }, { kind: 'run', runId: 'run_child' }]);
});
