import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CallPlace,
  type ForeseenStep,
  foreseeTime,
  type UnitGroup,
} from '../../src/graph/foreseen-time.ts';

function aPlace(over: Partial<CallPlace> = {}): CallPlace {
  return { instanceId: 'gpu', slots: 1, ahead: 0, durationMs: 1_000, ...over };
}

/** It loads a key within a minute. */
function onKey(key: string, load: Partial<CallPlace['load']> = {}): CallPlace {
  return aPlace({ load: { key, ms: 60_000, resident: [], most: 1, ...load } });
}

function calls(count: number, ...places: CallPlace[]): UnitGroup {
  return { count, durationMs: places[0]?.durationMs ?? 0, places };
}

function aStep(groups: readonly UnitGroup[], over: Partial<ForeseenStep> = {}): ForeseenStep {
  return { id: 'a', dependencies: [], maxParallel: 200, groups, ...over };
}

const seconds = (...steps: ForeseenStep[]) => foreseeTime(steps).durationMs / 1_000;

describe('the time of a run', () => {
  it.each<[string, readonly ForeseenStep[], number]>([
    ['100 calls of 1 s on one slot', [aStep([calls(100, aPlace())])], 100],
    ['100 calls on 8 slots', [aStep([calls(100, aPlace({ slots: 8 }))])], 13],
    [
      'the slots of all instances, each at its own speed',
      [aStep([calls(9, aPlace({ slots: 2 }), aPlace({ instanceId: 'slow', durationMs: 4_000 }))])],
      4,
    ],
    [
      'no slot on which waiting for a faster one takes less time',
      [aStep([calls(3, aPlace(), aPlace({ instanceId: 'slow', durationMs: 9_000 }))])],
      3,
    ],
    [
      'as many items as may run in parallel',
      [aStep([calls(12, aPlace({ slots: 8 }))], { maxParallel: 3 })],
      4,
    ],
    ['what is in line already', [aStep([calls(5, aPlace({ slots: 2, ahead: 6 }))])], 6],
    [
      'steps that share a slot one after the other, though they are independent',
      [aStep([calls(10, aPlace())]), aStep([calls(5, aPlace())], { id: 'b' })],
      15,
    ],
    [
      'steps with slots of their own beside each other',
      [aStep([calls(10, aPlace())]), aStep([calls(5, aPlace({ instanceId: 'cpu' }))], { id: 'b' })],
      10,
    ],
    [
      'a step after all items of the one before',
      [
        aStep([calls(4, aPlace({ slots: 2 }))]),
        aStep([calls(1, aPlace({ slots: 2 }))], { id: 'b', dependencies: [0] }),
      ],
      3,
    ],
    ['one load for all calls with a key', [aStep([calls(100, onKey('x'))])], 160],
    ['no load where the key is loaded', [aStep([calls(100, onKey('x', { resident: ['x'] }))])], 100],
    [
      'a load for each change of keys',
      [aStep([calls(1, onKey('x')), calls(2, onKey('y')), calls(1, onKey('x'))])],
      184,
    ],
    [
      'no load for a key that an instance still holds',
      [
        aStep([
          calls(1, onKey('x', { most: 2 })),
          calls(2, onKey('y', { most: 2 })),
          calls(1, onKey('x', { most: 2 })),
        ]),
      ],
      124,
    ],
    [
      'what follows a step that does not happen',
      [aStep([]), aStep([calls(2, aPlace())], { id: 'b', dependencies: [0] })],
      2,
    ],
    [
      'waits beside each other, which take no slot',
      [aStep([{ count: 50, durationMs: 3_000, places: [] }])],
      3,
    ],
    [
      'the calls of child runs, which share slots',
      [
        aStep([
          { count: 100, durationMs: 1_000, places: [], within: new Map([['gpu', { ms: 1_000, slots: 2 }]]) },
        ]),
      ],
      50,
    ],
    ['no step', [], 0],
  ])('counts %s', (_, steps, expected) => {
    expect(seconds(...steps)).toBe(expected);
  });

  it('names the step that waits for slots', () => {
    const steps = [
      aStep([calls(3, aPlace())]),
      aStep([calls(3, aPlace({ instanceId: 'cpu', slots: 3 }))], { id: 'b' }),
    ];
    expect(foreseeTime(steps).waitedMs).toEqual([3_000, 0]);
  });

  it('of ten thousand steps, each with many items, is found in time and nearly right', () => {
    const many = Array.from({ length: 1_000 }, (_, at) =>
      aStep([calls(10_000, aPlace({ slots: 7 }))], { id: `${at}`, dependencies: at === 0 ? [] : [at - 1] }),
    );
    const exact = (10_000_000 * 1_000) / 7 / 1_000;
    expect(seconds(...many) / exact).toBeCloseTo(1, 1);
    const chain = Array.from({ length: 10_000 }, (_, at) =>
      aStep([], { id: `${at}`, dependencies: at === 0 ? [] : [at - 1] }),
    );
    expect(seconds(...chain)).toBe(0);
  });
});

describe('for any steps on one kind of slot, the time', () => {
  const slots = fc.integer({ min: 1, max: 4 });
  const graph = fc.array(
    fc.record({
      units: fc.array(
        fc.record({ count: fc.integer({ min: 1, max: 5 }), ms: fc.integer({ min: 0, max: 50 }) }),
        {
          maxLength: 4,
        },
      ),
      maxParallel: fc.integer({ min: 1, max: 6 }),
      after: fc.array(fc.nat(20), { maxLength: 3 }),
    }),
    { maxLength: 8 },
  );
  type Graph = ReturnType<typeof graph extends fc.Arbitrary<infer Value> ? () => Value : never>;

  function toSteps(shape: Graph, count: number, isLimited: boolean): ForeseenStep[] {
    return shape.map(({ units, maxParallel, after }, at) => ({
      id: `s${at}`,
      dependencies: at === 0 ? [] : [...new Set(after.map((other) => other % at))],
      maxParallel: isLimited ? maxParallel : 200,
      groups: units.map((unit) => calls(unit.count, aPlace({ slots: count, durationMs: unit.ms }))),
    }));
  }
  const workOf = ({ groups }: ForeseenStep) =>
    groups.reduce((sum, { count, durationMs }) => sum + count * durationMs, 0);
  const longestUnit = ({ groups }: ForeseenStep) =>
    Math.max(0, ...groups.map(({ durationMs }) => durationMs));
  function longestPath(steps: readonly ForeseenStep[], weigh: (step: ForeseenStep) => number): number {
    const ends: number[] = [];
    for (const step of steps)
      ends.push(weigh(step) + Math.max(0, ...step.dependencies.map((at) => ends[at] ?? 0)));
    return Math.max(0, ...ends);
  }

  it('is at least all work over all slots, and at least the longest path', () => {
    fc.assert(
      fc.property(graph, slots, (shape, count) => {
        const steps = toSteps(shape, count, true);
        const { durationMs } = foreseeTime(steps);
        const work = steps.reduce((sum, step) => sum + workOf(step), 0);
        const least = ({ maxParallel, ...step }: ForeseenStep) =>
          Math.max(
            longestUnit({ maxParallel, ...step }),
            workOf({ maxParallel, ...step }) / Math.min(maxParallel, count),
          );
        expect(durationMs).toBeGreaterThanOrEqual(work / count - 1e-6);
        expect(durationMs).toBeGreaterThanOrEqual(longestPath(steps, least) - 1e-6);
      }),
    );
  });

  it('is that of a list schedule: no slot is idle while a call could start', () => {
    fc.assert(
      fc.property(graph, slots, (shape, count) => {
        const steps = toSteps(shape, count, false);
        const { durationMs } = foreseeTime(steps);
        const work = steps.reduce((sum, step) => sum + workOf(step), 0);
        const path = longestPath(steps, longestUnit);
        expect(durationMs).toBeLessThanOrEqual(work / count + path * (1 - 1 / count) + 1e-6);
      }),
    );
  });

  it('does not grow by a call fewer or a slot more on one step', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(20),
        (count, size, ahead) => {
          const time = (units: number, places: number) =>
            seconds(aStep([calls(units, aPlace({ slots: places, ahead }))]));
          expect(time(count, size)).toBeLessThanOrEqual(time(count + 1, size));
          expect(time(count, size + 1)).toBeLessThanOrEqual(time(count, size));
        },
      ),
    );
  });
});
