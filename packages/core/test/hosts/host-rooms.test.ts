import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { HostRooms, type LineOnHosts } from '../../src/hosts/host-rooms.ts';
import { countCallable } from '../../src/routing/call-line.ts';
import type { InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance, now } from '../routing/a-snapshot.ts';

/** Its calls never end soon, so that only free slots count. */
function onHost(id: string, instance: Partial<InstanceSnapshot> = {}): InstanceSnapshot {
  const box = { host: 'gpu-1', owner_project: 'p', takes: 1, host_calls: 2, host_room: 2 };
  return anInstance(id, { duration_ms: null, max_concurrency: 2, ...box, ...instance });
}

function aLine(capability: string, instances: readonly InstanceSnapshot[], called = 0): LineOnHosts {
  return { route: { capability, versionRange: null, tags: [] }, known: { instances }, called };
}

/** What each line calls in turn, where each has calls enough. */
function callAll(lines: readonly LineOnHosts[]): number[] {
  const rooms = new HostRooms(lines);
  return lines.map(({ route, called }, at) => {
    const count = countCallable(route, rooms.instancesOf(at), { called, nowMs: now });
    rooms.take(at, count);
    return count;
  });
}

describe('the lines of a round', () => {
  test.each<[rule: string, LineOnHosts[], number[]]>([
    ['call what a host has together', [aLine('a', [onHost('a')]), aLine('b', [onHost('b')])], [2, 0]],
    ['leave what others have called', [aLine('a', [onHost('a')]), aLine('b', [onHost('b')], 1)], [1, 0]],
    ['count their own called ones once', [aLine('a', [onHost('a')], 1)], [1]],
    [
      'call by what a call takes',
      [aLine('a', [onHost('a', { takes: 2, host_calls: 1, host_room: 1 })]), aLine('b', [onHost('b')])],
      [1, 0],
    ],
    [
      'leave the host where an instance without one is free',
      [aLine('a', [anInstance('x', { duration_ms: null }), onHost('a')], 1), aLine('b', [onHost('b')])],
      [2, 0],
    ],
    [
      'take what is free without a host first, and then no more of a host than is left',
      [aLine('b', [onHost('b')]), aLine('a', [onHost('a'), anInstance('x', { duration_ms: null })], 1)],
      [2, 0],
    ],
    [
      'take each called one from one host only',
      [
        aLine('b', [onHost('b', { host: 'gpu-2' })]),
        aLine('a', [onHost('a'), onHost('c', { host: 'gpu-2' })], 1),
      ],
      [2, 1],
    ],
    [
      'leave room to calls that take two slots, beside a call that takes one',
      [
        aLine('a', [onHost('a', { host_room: 4, host_calls: 4, max_concurrency: 1 })], 1),
        aLine('b', [onHost('b', { host_room: 2, takes: 2 })]),
      ],
      [0, 1],
    ],
    [
      'take one slot for each call where nothing else is declared',
      [aLine('a', [onHost('a', { takes: undefined, max_concurrency: 1 })]), aLine('b', [onHost('b')])],
      [1, 1],
    ],
    [
      'share no host whose room is unknown',
      [aLine('a', [onHost('a', { host_room: null })]), aLine('b', [onHost('b', { host_room: null })])],
      [2, 2],
    ],
    [
      'call for the slots of a host once, where it has several instances of a line',
      [
        aLine(
          'a',
          ['x', 'y', 'z'].map((id) => onHost(id, { host_calls: 1, host_room: 1 })),
        ),
      ],
      [1],
    ],
    [
      'call in advance for the slots of a host once, too',
      [
        aLine(
          'a',
          ['x', 'y', 'z'].map((id) => onHost(id, { host_room: 0, duration_ms: 250 })),
        ),
      ],
      [4],
    ],
    [
      'leave all slots that were called, where calls take different numbers of them',
      [
        aLine('a', [onHost('a', { host_calls: 3, host_room: 3 })], 1),
        aLine('b', [onHost('b', { takes: 2, host_calls: 1, host_room: 1 })], 1),
        aLine('c', [onHost('c', { host_calls: 3, host_room: 3 })]),
      ],
      [0, 0, 0],
    ],
    [
      'call what an instance without a host has together',
      [
        aLine('a', [anInstance('x', { duration_ms: null })]),
        aLine('b', [anInstance('x', { duration_ms: null })]),
      ],
      [1, 0],
    ],
    [
      'leave the slot of an instance to a call that was called for it',
      [
        aLine('a', [anInstance('x', { duration_ms: null })]),
        aLine('b', [anInstance('x', { duration_ms: null }), anInstance('y', { duration_ms: null })], 1),
      ],
      [0, 1],
    ],
    [
      'take no room of a host of the same name of another project',
      [aLine('a', [onHost('a')]), aLine('b', [onHost('b', { owner_project: 'q' })])],
      [2, 2],
    ],
    [
      'are bounded by the room, not by the slots of the instance',
      [aLine('a', [onHost('a', { host_room: 1 })])],
      [1],
    ],
    [
      'leave instances alone that their route excludes',
      [
        { ...aLine('a', [onHost('a')], 2), route: { capability: 'a', versionRange: null, tags: ['none'] } },
        aLine('b', [onHost('b')]),
      ],
      [0, 2],
    ],
  ])('%s', (_, lines, counts) => {
    expect(callAll(lines)).toEqual(counts);
  });

  test('keep free slots for a line in turn that needs more of them', () => {
    const large = onHost('a', { takes: 2, host_calls: 1, host_room: 0 });
    const small = onHost('b', { host_room: 1, held: 1 });
    const rooms = new HostRooms([aLine('a', [large]), aLine('b', [small])]);
    const callable = () =>
      countCallable(aLine('b', []).route, rooms.instancesOf(1), { called: 0, nowMs: now });
    expect([rooms.isShort(0), rooms.isShort(1), callable()]).toEqual([true, false, 1]);
    rooms.keep(0);
    expect(callable()).toBe(0);
    const quick = new HostRooms([aLine('a', [large]), aLine('b', [{ ...small, duration_ms: 400 }])]);
    quick.keep(0);
    expect(quick.instancesOf(1)[0]?.duration_ms).toBeNull(); // none in advance either
  });

  test.each([
    ['that has room', { takes: 2, host_calls: 1, host_room: 1 }],
    ['that is full itself', { takes: 2, host_calls: 1, host_room: 0, held: 2 }],
    ['with an open breaker', { takes: 2, host_calls: 1, host_room: 0, breaker_until_ms: now }],
    ['whose calls take one slot', { host_room: 0 }],
  ])('keep nothing for an instance %s', (_, fields) => {
    expect(new HostRooms([aLine('a', [onHost('a', fields)])]).isShort(0)).toBe(false);
  });

  test.each([
    ['for a part of a call', 1, true],
    ['for one call', 2, false],
  ])('need more slots where others leave room %s', (_, host_room, isShort) => {
    const large = onHost('a', { takes: 2, host_calls: 2, host_room });
    const rooms = new HostRooms([aLine('a', [large]), aLine('b', [onHost('b')], host_room)]);
    expect(rooms.isShort(0)).toBe(isShort);
  });

  test('need no more slots for a call that was called for them', () => {
    const large = onHost('a', { takes: 2, host_calls: 1, host_room: 1 });
    expect(new HostRooms([aLine('a', [large], 1)]).isShort(0)).toBe(false);
  });

  test('count calls that are called one after the other once each', () => {
    const four = { host_calls: 4, host_room: 4, max_concurrency: 4 };
    const rooms = new HostRooms([aLine('a', [onHost('a', four)]), aLine('b', [onHost('b', four)])]);
    rooms.take(0, 1);
    rooms.take(0, 1);
    expect(rooms.instancesOf(1).map((one) => [one.host_room, one.duration_ms])).toEqual([[2, null]]);
  });

  test('leave instances without hosts as they are', () => {
    const instances = [anInstance('a'), anInstance('b', { held: 1, max_concurrency: 3 })];
    expect(new HostRooms([aLine('a', instances)]).instancesOf(0)).toEqual(instances);
  });

  test('call in advance together what one would alone', () => {
    const short = { duration_ms: 500, held: 2, host_room: 0 };
    const counts = callAll([aLine('a', [onHost('a', short)]), aLine('b', [onHost('b', short)])]);
    expect(counts).toEqual([1, 1]);
    expect(callAll([aLine('a', [onHost('a', short)])])).toEqual([2]);
  });

  test('never call more than the room of a host, in any order', () => {
    const line = fc.record({ takes: fc.integer({ min: 1, max: 3 }), held: fc.nat(2), called: fc.nat(3) });
    fc.assert(
      fc.property(
        fc.integer({ min: 3, max: 9 }),
        fc.array(line, { minLength: 1, maxLength: 5 }),
        (slots, all) => {
          const room = Math.max(0, slots - all.reduce((sum, { takes, held }) => sum + takes * held, 0));
          let left = room; // calls were called where there was room
          const lines = all.map(({ takes, held, called: wanted }, at) => {
            const host = {
              takes,
              held,
              host_calls: Math.floor(slots / takes),
              host_room: Math.floor(room / takes),
            };
            const instance = onHost(`i${at}`, { max_concurrency: 4, ...host });
            const called = Math.min(wanted, 4 - held, Math.floor(left / takes));
            left -= called * takes;
            return aLine(`c${at}`, [instance], called);
          });
          const counts = callAll(lines);
          const taken = counts.reduce((sum, count, at) => sum + count * (all[at]?.takes ?? 1), 0);
          expect(taken).toBeLessThanOrEqual(left);
        },
      ),
      { numRuns: runs(200) },
    );
  });
});
