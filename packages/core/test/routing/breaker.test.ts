import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FaultWindow, noFaults, openMs, recordOutcome } from '../../src/routing/breaker.ts';

type Seen = 'ok' | 'fault' | 'refused';

/** Which of the outcomes, one every `stepMs`, tripped it. */
function tripsOf(outcomes: readonly Seen[], stepMs = 10): number[] {
  let window: FaultWindow = noFaults;
  return outcomes.flatMap((seen, at) => {
    const outcome = { ok: seen === 'ok', isRefused: seen === 'refused', atMs: at * stepMs };
    const next = recordOutcome(window, outcome);
    window = next.window;
    return next.trips ? [at] : [];
  });
}

function times(count: number, ...outcomes: Seen[]): Seen[] {
  return Array(count).fill(outcomes).flat();
}

describe('recordOutcome', () => {
  const early: Seen[] = [...times(4, 'fault'), 'ok', ...times(2, 'ok', 'ok', 'fault')];
  const stories: [rule: string, outcomes: Seen[], stepMs: number, trips: number[]][] = [
    ['a refused connection trips at once', ['ok', 'refused'], 10, [1]],
    ['five faults in a row trip, however slowly they come', times(5, 'fault'), 60_000, [4]],
    [
      'four do not, nor does a success between',
      [...times(4, 'fault'), 'ok', ...times(4, 'fault')],
      9_000,
      [],
    ],
    ['half of ten calls may fail', times(5, 'ok', 'fault'), 10, []],
    ['more than half may not', [...times(5, 'fault', 'ok'), 'fault'], 10, [10]],
    ['nine calls are too few for a verdict', [...times(4, 'fault', 'ok'), 'fault'], 10, []],
    ['ten are enough', [...times(3, 'fault', 'fault', 'ok'), 'fault'], 10, [9]],
    ['all faults of 30 s count', early, 10, [10]],
    ['in whichever second they were seen', early, 2_900, [10]],
    ['older ones do not', early, 3_000, []],
    ['after it tripped it begins again', times(9, 'fault'), 10, [4]],
  ];

  it('keeps the callers that were refused, and no caller that is unknown', () => {
    const refused = { ok: false, isRefused: false, atMs: 0 };
    const once = recordOutcome(noFaults, { ...refused, refusedCaller: 'a' }).window;
    expect(once.refused).toEqual(['a']);
    expect(recordOutcome(once, refused).window.refused).toEqual(['a']);
  });

  it.each(stories)('%s', (_, outcomes, stepMs, trips) => {
    expect(tripsOf(outcomes, stepMs)).toEqual(trips);
  });

  /** Callers that are refused for now, in this order; `ok` is a success of any. */
  const refusalStories: [rule: string, callers: string[], trips: number[]][] = [
    ['one caller that asks again and again never trips it', Array(100).fill('poller'), []],
    ['nor do four', Array(25).fill(['a', 'b', 'c', 'd']).flat(), []],
    ['five callers without a success between do', ['a', 'a', 'b', 'c', 'a', 'd', 'e', 'f'], [6]],
    ['a success between makes all callers new', ['a', 'b', 'c', 'd', 'ok', 'a', 'b', 'c', 'd', 'e'], [9]],
    ['after it tripped all callers are new', ['a', 'b', 'c', 'd', 'e', 'a', 'b', 'c', 'd', 'e'], [4, 9]],
    ['faults count beside refusals', ['a', 'a', 'fault', 'fault', 'fault', 'a', 'fault'], [6]],
    [
      'more than half of ten calls may be refused to one caller',
      [...Array(4).fill('a'), 'ok', ...Array(20).fill('a')],
      [],
    ],
  ];

  it.each(refusalStories)('%s', (_, seen, expected) => {
    let window: FaultWindow = noFaults;
    const trips = seen.flatMap((one, at) => {
      const refusedCaller = one === 'ok' || one === 'fault' ? undefined : one;
      const next = recordOutcome(window, { ok: one === 'ok', isRefused: false, refusedCaller, atMs: at });
      window = next.window;
      expect(window.refused.length).toBeLessThan(5);
      return next.trips ? [at] : [];
    });
    expect(trips).toEqual(expected);
  });

  it('adds up what was seen within one second', () => {
    const seen = [0, 1_000, 2_000, 2_999].map((atMs) => ({ ok: atMs < 2_000, isRefused: false, atMs }));
    const { window } = seen.reduce((last, one) => recordOutcome(last.window, one), { window: noFaults });
    expect(window.seconds).toEqual([
      { second: 0, calls: 1, faults: 0 },
      { second: 1, calls: 1, faults: 0 },
      { second: 2, calls: 2, faults: 2 },
    ]);
  });

  it('counts an outcome of less weight by its weight', () => {
    const trips = (weight: number): number => {
      let window = noFaults;
      for (let seen = 1; ; seen++) {
        const next = recordOutcome(window, { ok: false, isRefused: false, weight, atMs: seen });
        if (next.trips) return seen;
        window = next.window;
      }
    };
    expect([trips(1), trips(0.5), trips(0.125)]).toEqual([5, 10, 40]);
    const half = { ok: false, isRefused: false, weight: 0.5 };
    const calls = [true, false, true, true, false, false].map((ok, atMs) => ({ ...half, ok, atMs }));
    const { window } = calls.reduce((seen, call) => recordOutcome(seen.window, call), { window: noFaults });
    expect(window.seconds).toEqual([{ second: 0, calls: 3, faults: 1.5 }]);
  });

  it('keeps at most 30 seconds, whatever the rate, and also when the clock stops or goes back', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -2_000, max: 5_000 }), { maxLength: 300 }), (steps) => {
        let window = noFaults;
        let atMs = 0;
        for (const step of steps) {
          atMs += step;
          window = recordOutcome(window, { ok: true, isRefused: false, atMs }).window;
          expect(window.seconds.length).toBeLessThanOrEqual(30);
        }
      }),
    );
  });
});

describe('openMs', () => {
  it('doubles with each opening, by a fifth more or less, up to 300 s', () => {
    const middle = [0, 1, 2, 5, 6, 50].map((openings) => openMs({ openings, random: 0.5 }));
    expect(middle).toEqual([5_000, 10_000, 20_000, 160_000, 300_000, 300_000]);
    const edges = [
      { openings: 0, random: 0 },
      { openings: 0, random: 0.999_999 },
      { openings: 6, random: 0 },
    ];
    expect(edges.map(openMs)).toEqual([4_000, 6_000, 256_000]);
  });

  it('equals the pause that a refusal asks for, up to a minute, however often it opened', () => {
    const asked = [0, 2_000, 60_000, 3_600_000].map((askedMs) =>
      openMs({ openings: 4, random: 0.9, askedMs }),
    );
    expect(asked).toEqual([0, 2_000, 60_000, 60_000]);
    expect(openMs({ openings: 1, random: 0.5, askedMs: null })).toBe(10_000);
  });
});
