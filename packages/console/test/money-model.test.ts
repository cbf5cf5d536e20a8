import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type MoneyPoint,
  moneyCurve,
  mostOf,
  spentBelow,
  toCurvePaths,
} from '../src/timeline/money-model.ts';
import { callsAt, type TimelineCall } from '../src/timeline/timeline-model.ts';

const began = Date.parse('2026-01-01T00:00:00Z');

interface CallFacts {
  readonly ready: number;
  readonly waited: number;
  /** null: running */
  readonly took: number | null;
  readonly reserved: number;
  readonly cost: number;
}

function toCall({ ready, waited, took, reserved, cost }: CallFacts): TimelineCall {
  const instant = (ms: number): string => new Date(began + ms).toISOString();
  return {
    step_id: 's',
    item: null,
    attempt_id: null,
    revision: 0,
    level: null,
    endpoint: null,
    state: took === null ? 'dispatched' : 'settled',
    ready_at: instant(ready),
    started_at: instant(ready + waited),
    finished_at: took === null ? null : instant(ready + waited + took),
    expected_ms: null,
    expected_usd: null,
    reserved_usd: fromNanoUsd(BigInt(reserved)),
    cost_usd: took === null ? 0 : fromNanoUsd(BigInt(cost)),
    certainty: null,
    error: null,
  };
}

const amount = fc.integer({ min: 0, max: 5_000_000_000 });
const time = fc.integer({ min: 0, max: 10_000 });
const lastMoment = began + 30_000;

function someCalls(took: fc.Arbitrary<number | null>): fc.Arbitrary<TimelineCall[]> {
  return fc.array(
    fc.record({ ready: time, waited: time, took, reserved: amount, cost: amount }).map(toCall),
    { minLength: 1, maxLength: 30 },
  );
}

function sum(amounts: readonly number[]): number {
  return fromNanoUsd(amounts.reduce((all, usd) => all + toNanoUsd(usd), 0n));
}

function pointAt(points: readonly MoneyPoint[], moment: number): MoneyPoint | undefined {
  return points.findLast(({ at }) => at <= moment);
}

describe('money in time', () => {
  test('a run that has ended has spent what its calls cost, and holds nothing', () => {
    fc.assert(
      fc.property(someCalls(time), (calls) => {
        const last = moneyCurve(calls, lastMoment).at(-1);
        const spent_usd = sum(calls.map(({ cost_usd }) => cost_usd));
        expect(last).toEqual({ at: lastMoment, spent_usd, held_usd: 0 });
      }),
    );
  });

  test('a running run reserves the money of the calls that have not ended', () => {
    fc.assert(
      fc.property(someCalls(fc.option(time)), (calls) => {
        const open = calls.filter(({ finished_at }) => finished_at === null);
        const held = sum(open.map(({ reserved_usd }) => reserved_usd));
        expect(moneyCurve(calls, lastMoment).at(-1)?.held_usd).toBe(held);
      }),
    );
  });

  test('moments come in order, what was spent never shrinks, and nothing is below 0', () => {
    fc.assert(
      fc.property(someCalls(fc.option(time)), (calls) => {
        const points = moneyCurve(calls, lastMoment);
        for (const [index, { at, spent_usd, held_usd }] of points.entries()) {
          const before = points[index - 1];
          expect(at).toBeGreaterThan(before?.at ?? 0);
          expect(spent_usd).toBeGreaterThanOrEqual(before?.spent_usd ?? 0);
          expect(held_usd).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });

  test('the run at a past moment ends at the point of the whole curve at that moment', () => {
    fc.assert(
      fc.property(someCalls(fc.option(time)), fc.integer({ min: 0, max: 30_000 }), (calls, ms) => {
        const moment = began + ms;
        const then = moneyCurve(callsAt(calls, new Date(moment).toISOString()), moment).at(-1);
        const whole = pointAt(moneyCurve(calls, lastMoment), moment);
        expect(then).toEqual(whole === undefined ? undefined : { ...whole, at: moment });
      }),
    );
  });

  test('there is no curve of calls that wait', () => {
    expect(moneyCurve([{ ...toCall(paid), started_at: null, finished_at: null }], lastMoment)).toEqual([]);
  });
});

const notTimed = { started_at: null, finished_at: null } as const;
const paid: CallFacts = { ready: 0, waited: 0, took: 10_000, reserved: 4_000_000_000, cost: 1_000_000_000 };

test('the cost of a run beyond its own calls belongs to its child runs, if it has any', () => {
  const step = { id: 's', state: 'succeeded' as const, attempts: 1, revision: 0, cost_usd: 0, ...notTimed };
  const below = { cost_usd: 1.3, steps: [{ ...step, pipeline: 'reel@1.0' }] };
  expect(spentBelow(below, [toCall(paid)])).toBe(0.3);
  expect(spentBelow({ ...below, steps: [step] }, [toCall(paid)])).toBe(0);
  expect(spentBelow({ ...below, cost_usd: 0.9 }, [toCall(paid)])).toBe(0);
});

test('the areas go in steps, and the most that was bound touches the top', () => {
  const points = moneyCurve([toCall(paid)], began + 20_000);
  expect(mostOf(points)).toBe(4);
  const at = (moment: number): number => (moment - began) / 20_000;
  expect(toCurvePaths(points, { width: 100, height: 20, at })).toEqual({
    spent: 'M0 20H0V20H50V15H100V15h8V20Z',
    held: 'M0 20H0V0H50V15H100V15h8V20Z',
  });
});

test('a spike between two pictured moments stays seen', () => {
  const points = moneyCurve([toCall({ ...paid, took: 10 })], began + 20_000);
  const at = (moment: number): number => (moment - began) / 20_000;
  expect(toCurvePaths(points, { width: 100, height: 20, at }).held).toBe('M0 20H0V0H100V15h8V20Z');
});

test('calls without cost have no areas', () => {
  const points = moneyCurve([toCall({ ...paid, reserved: 0, cost: 0 })], began + 20_000);
  expect(toCurvePaths(points, { width: 100, height: 20, at: () => 0 })).toEqual({ spent: '', held: '' });
});
