/** The time of a run stops in a pause, whatever the pauses and histories. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { limitTime, type TimeLeft, type TimeLimit, timeOf } from '../src/time-limit.ts';

/** A clock whose timers fire when it is moved past them. */
function aClock() {
  let now = 1_000;
  const timers = new Set<{ readonly at: number; readonly fire: () => void }>();
  return {
    ports: {
      nowMs: () => now,
      arm: (ms: number, fire: () => void) => {
        const timer = { at: now + ms, fire };
        timers.add(timer);
        return () => void timers.delete(timer);
      },
    },
    armed: () => timers.size,
    pass: (ms: number) => {
      now += ms;
      for (const timer of timers) {
        if (timer.at > now) continue;
        timers.delete(timer);
        timer.fire();
      }
    },
  };
}

function limited(timeoutMs: number | null, isPaused = false) {
  const clock = aClock();
  let ends = 0;
  const over = (): void => {
    ends += 1;
  };
  const begin = (from: TimeLeft, paused: boolean) => limitTime(clock.ports, { from, isPaused: paused, over });
  const limit = begin(timeOf(timeoutMs, clock.ports.nowMs()), isPaused);
  return { clock, limit, begin, ends: () => ends };
}

describe('the time of a run', () => {
  test('is over at its deadline', () => {
    const { clock, ends } = limited(5_000);
    clock.pass(4_999);
    expect(ends()).toBe(0);
    clock.pass(1);
    expect(ends()).toBe(1);
  });

  test('stops from the pause to the resume', () => {
    const { clock, limit, ends } = limited(5_000);
    clock.pass(2_000);
    limit.pause();
    expect(limit.left()).toEqual({ deadline_ms: null, left_ms: 3_000 });
    clock.pass(3_600_000);
    expect([ends(), clock.armed()]).toEqual([0, 0]);
    limit.resume();
    clock.pass(2_999);
    expect(ends()).toBe(0);
    clock.pass(1);
    expect(ends()).toBe(1);
  });

  test('has not begun to pass in a run that is paused from its start', () => {
    const { clock, limit, ends } = limited(5_000, true);
    clock.pass(60_000);
    limit.resume();
    clock.pass(4_999);
    expect(ends()).toBe(0);
    clock.pass(1);
    expect(ends()).toBe(1);
  });

  test('is without end where there is no limit', () => {
    const { clock, limit, ends } = limited(null);
    limit.pause();
    limit.resume();
    clock.pass(3_600_000);
    expect([ends(), clock.armed(), limit.left()]).toEqual([0, 0, { deadline_ms: null }]);
  });

  test('a second pause or resume changes nothing', () => {
    const { clock, limit } = limited(5_000);
    limit.resume();
    expect(clock.armed()).toBe(1);
    limit.pause();
    clock.pass(1_000);
    limit.pause();
    expect(limit.left()).toEqual({ deadline_ms: null, left_ms: 5_000 });
  });
});

type Act = { readonly pass: number } | 'pause' | 'resume' | 'next history';
const acts: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ pass: fc.integer({ min: 0, max: 3_000 }) }),
  fc.constantFrom<Act>('pause', 'resume', 'next history'),
);

test('passes exactly while the run is not paused, over any pauses and histories', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), fc.array(acts, { maxLength: 40 }), (timeoutMs, list) => {
      const { clock, limit, begin, ends } = limited(timeoutMs);
      let current: TimeLimit = limit;
      let isPaused = false;
      let passedMs = 0;
      for (const act of list) {
        if (typeof act === 'object') {
          clock.pass(act.pass);
          if (!isPaused) passedMs += act.pass;
        } else if (act === 'next history') {
          if (ends() > 0) continue;
          const left = JSON.parse(JSON.stringify(current.left()));
          current.stop();
          current = begin(left, isPaused);
        } else {
          isPaused = act === 'pause';
          current[act]();
        }
        expect(ends()).toBe(passedMs >= timeoutMs ? 1 : 0);
        if (ends() === 1) return;
        expect(clock.armed()).toBe(isPaused ? 0 : 1);
      }
    }),
  );
});
