import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noCalls, observeCall } from '../../src/routing/observed-calls.ts';
import type { InstanceSnapshot, RouteRequest } from '../../src/routing/types.ts';
import { chooseDispatch } from '../../src/run/dispatch.ts';
import { anInstance, now } from '../routing/a-snapshot.ts';

const anyone: Pick<RouteRequest, 'versionRange' | 'tags'> = { versionRange: null, tags: [] };
const known = { duration_ms: 10, deviation_ms: 2, success_count: 20 };

function howOf(instances: readonly InstanceSnapshot[], route = anyone) {
  return chooseDispatch(instances, route).how;
}

/** A speed, and how much of it is known. */
const speeds = fc.record({
  duration_ms: fc.option(fc.double({ min: 0, max: 200, noNaN: true })),
  deviation_ms: fc.option(fc.double({ min: 0, max: 60, noNaN: true })),
  success_count: fc.double({ min: 0, max: 50, noNaN: true }),
  failure_count: fc.double({ min: 0, max: 10, noNaN: true }),
});
const fleets = fc
  .array(speeds, { maxLength: 6 })
  .map((list) => list.map((speed, index) => anInstance(`i${index}`, speed)));

describe('whether a call is short enough to do without a queue', () => {
  it('takes nine of ten calls within 100 ms, of at least five', () => {
    const answers = [
      { ...known },
      { ...known, duration_ms: 84, deviation_ms: 10 },
      { ...known, duration_ms: 84.01, deviation_ms: 10 },
      { ...known, success_count: 4 },
      { duration_ms: null },
      { duration_ms: 0.3, success_count: 3, failure_count: 2 },
    ].map((speed) => chooseDispatch([anInstance('a', speed)], anyone));
    expect(answers).toEqual([
      { how: 'inline', code: 'short', calls: 20, p90_ms: 13.2 },
      { how: 'inline', code: 'short', calls: 20, p90_ms: 100 },
      { how: 'queued', code: 'slow', calls: 20, p90_ms: 100.1 },
      { how: 'queued', code: 'unknown', calls: 4, p90_ms: 13.2 },
      { how: 'queued', code: 'unknown', calls: 0 },
      { how: 'inline', code: 'short', calls: 5, p90_ms: 0.3 },
    ]);
    expect(chooseDispatch([], anyone)).toEqual({ how: 'queued', code: 'unknown', calls: 0 });
  });

  it('counts five calls as five, though old ones have begun to count for less', () => {
    let seen = noCalls;
    const after = Array.from({ length: 6 }, () => {
      seen = observeCall(seen, { durationMs: 10, costUsd: 0, ok: true });
      return chooseDispatch([anInstance('a', { ...known, success_count: seen.successes })], anyone);
    });
    expect(after.map(({ how, calls }) => `${calls} ${how}`)).toEqual([
      ...['1 queued', '2 queued', '3 queued', '4 queued', '5 inline', '6 inline'],
    ]);
  });

  it('is asked of those that a route may lead to, and of no others', () => {
    const slow = { ...known, duration_ms: 5_000 };
    const short = anInstance('short', known);
    const beside = [
      anInstance('old', { ...slow, version: '0.9.0' }),
      anInstance('untagged', { ...slow, tags: [] }),
      anInstance('down', { ...slow, state: 'down' }),
      anInstance('bad', { ...slow, state: 'quarantined' }),
      anInstance('gone', { ...slow, state: 'deregistered' }),
    ];
    const route = { versionRange: '^1.0.0', tags: ['local'] };
    expect(chooseDispatch([short, ...beside], route)).toEqual(chooseDispatch([short], route));
    expect(howOf([short, ...beside])).toBe('queued');
    const taking = [
      anInstance('suspect', { ...slow, state: 'suspect' }),
      anInstance('resting', { ...slow, breaker_until_ms: now + 1e9 }),
      anInstance('dear', { ...slow, cost_type: 'per_call', rate_usd: 900 }),
      anInstance('full', { ...slow, held: 1 }),
    ];
    for (const one of taking) expect(howOf([short, one], route), one.instance_id).toBe('queued');
  });

  it('is never taken for granted because calls are slower or fewer', () => {
    const worse = fc.record({
      longer: fc.double({ min: 0, max: 50, noNaN: true }),
      wider: fc.double({ min: 0, max: 50, noNaN: true }),
      kept: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    const all = fc.property(fleets, fc.array(worse, { minLength: 6, maxLength: 6 }), (fleet, changes) => {
      if (howOf(fleet) === 'inline') return;
      const after = fleet.map((instance, index) => {
        const { longer = 0, wider = 0, kept = 1 } = changes[index] ?? {};
        const { duration_ms, deviation_ms, success_count, failure_count } = instance;
        return anInstance(instance.instance_id, {
          duration_ms: duration_ms === null ? null : duration_ms + longer,
          deviation_ms: (deviation_ms ?? 0) + wider,
          success_count: success_count * kept,
          failure_count: failure_count * kept,
        });
      });
      expect(howOf(after)).toBe('queued');
    });
    fc.assert(all);
  });

  it('is denied by one slow instance, at any position', () => {
    const slow = anInstance('slow', { duration_ms: 100.5, success_count: 1 });
    const all = fc.property(fleets, fc.double({ min: 0, max: 1, noNaN: true }), (fleet, share) => {
      const at = Math.floor(share * fleet.length);
      expect(howOf(fleet.toSpliced(at, 0, slow))).toBe('queued');
    });
    fc.assert(all);
  });

  it('does not change by instances that no route leads to', () => {
    const excluded: readonly Partial<InstanceSnapshot>[] = [
      { state: 'down' },
      { state: 'quarantined' },
      { state: 'deregistered' },
      { version: '2.0.0' },
      { tags: ['cloud'] },
    ];
    const route = { versionRange: '^1.0.0', tags: ['local'] };
    const all = fc.property(fleets, speeds, fc.constantFrom(...excluded), (fleet, speed, reason) => {
      const other = anInstance('other', { ...speed, ...reason });
      expect(chooseDispatch([...fleet, other], route)).toEqual(chooseDispatch(fleet, route));
    });
    fc.assert(all);
  });
});
