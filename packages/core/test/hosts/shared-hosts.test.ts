import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { SharedHosts } from '../../src/hosts/shared-hosts.ts';
import type { InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance } from '../routing/a-snapshot.ts';

const box = { owner_project: 'p', host: 'gpu-1', slots_of_host: 4 };
const alone = { owner_project: 'p', host: null, slots_of_host: null };

function roomOf({ host_calls, host_room }: InstanceSnapshot) {
  return [host_calls, host_room];
}

type Placed = readonly [fields: Partial<InstanceSnapshot>, place: typeof box];

/** Instances that were placed on hosts, with what is free there. */
function placed(...members: readonly Placed[]) {
  const hosts = new SharedHosts();
  const instances = members.map(([fields], at) => anInstance(`i${at}`, fields));
  const places = members.map(([, place], at) => hosts.place(instances[at] as InstanceSnapshot, place, null));
  hosts.shareAll();
  return { hosts, instances, places, rooms: instances.map(roomOf) };
}

describe('the instances of a host', () => {
  test.each<[rule: string, members: readonly Placed[], rooms: unknown[]]>([
    [
      'share its slots',
      [
        [{ held: 1 }, box],
        [{ held: 2 }, box],
      ],
      [
        [4, 1],
        [4, 1],
      ],
    ],
    [
      'take as many slots as a call of theirs takes',
      [
        [
          { held: 1, takes: 2 },
          { ...box, slots_of_host: 5 },
        ],
        [{}, { ...box, slots_of_host: 5 }],
      ],
      [
        [2, 1],
        [5, 3],
      ],
    ],
    [
      'take all of a host that has less than they take',
      [
        [{ takes: 9 }, box],
        [{ held: 1 }, box],
      ],
      [
        [1, 0],
        [4, 3],
      ],
    ],
    [
      'that have more calls than the host has slots leave none',
      [
        [{ held: 5 }, box],
        [{}, box],
      ],
      [
        [4, 0],
        [4, 0],
      ],
    ],
    [
      'of another project share nothing with them, whatever the name of the host is',
      [
        [{ held: 4 }, box],
        [{}, { ...box, owner_project: 'q' }],
      ],
      [
        [4, 0],
        [4, 4],
      ],
    ],
    [
      'of another host share nothing with them',
      [
        [{ held: 4 }, box],
        [{}, { ...box, host: 'gpu-2' }],
      ],
      [
        [4, 0],
        [4, 4],
      ],
    ],
  ])('%s', (_, members, rooms) => {
    expect(placed(...members).rooms).toEqual(rooms);
  });

  test('have one place, which names them', () => {
    const { places } = placed([{ name: 'upscale' }, box], [{ name: 'render' }, box]);
    expect(places[0]).toBe(places[1]);
    expect(places[0]?.names()).toEqual(new Set(['upscale', 'render']));
  });

  test('have the slots that were registered last', () => {
    const { hosts, instances, places } = placed([{}, box], [{ held: 1 }, box]);
    hosts.place(instances[0] as InstanceSnapshot, { ...box, slots_of_host: 2 }, places[0] ?? null);
    hosts.shareAll();
    expect(instances.map(roomOf)).toEqual([
      [2, 1],
      [2, 1],
    ]);
  });

  test('never take more than the host has, as long as each begins only what it has room for', () => {
    const member = fc.record({ takes: fc.integer({ min: 1, max: 5 }) });
    const begins = fc.array(fc.nat(), { maxLength: 30 });
    fc.assert(
      fc.property(
        fc.array(member, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 9 }),
        begins,
        (all, slots, order) => {
          const { hosts, instances } = placed(
            ...all.map((fields): Placed => [fields, { ...box, slots_of_host: slots }]),
          );
          for (const at of order) {
            const one = instances[at % instances.length] as { held: number; host_room?: number | null };
            if ((one.host_room ?? 0) > 0) one.held += 1;
            hosts.shareAll();
          }
          const taken = instances.reduce(
            (sum, { held, takes = 1 }) => sum + held * Math.min(takes ?? 1, slots),
            0,
          );
          expect(taken).toBeLessThanOrEqual(slots);
        },
      ),
      { numRuns: runs(200) },
    );
  });
});

describe('an instance that moves', () => {
  test.each([
    ['for another one', { ...box, host: 'gpu-2' }, [4, 3]],
    ['for none', alone, [null, null]],
    ['of which no slots are known any more', { ...box, slots_of_host: null }, [null, null]],
  ])('%s takes its calls with it', (_, place, room) => {
    const { hosts, instances, places } = placed([{ held: 1 }, box], [{}, box]);
    const [moved, other] = instances as [InstanceSnapshot, InstanceSnapshot];
    const now = hosts.place(moved, place, places[0] ?? null);
    hosts.shareAll();
    expect([now === null, now === places[0]]).toEqual([room[0] === null, false]);
    expect([roomOf(moved), roomOf(other)]).toEqual([room, [4, 4]]);
  });

  test('away frees its room, and the last one its host', () => {
    const { hosts, instances, places } = placed([{ held: 1 }, box], [{}, box]);
    const [first, last] = instances as [InstanceSnapshot, InstanceSnapshot];
    hosts.remove(first, places[0] ?? null);
    hosts.shareAll();
    expect([roomOf(first), roomOf(last)]).toEqual([
      [null, null],
      [4, 4],
    ]);
    expect(hosts.place(anInstance('i3'), box, null)).toBe(places[0]);
    const left = placed([{}, box]);
    left.hosts.remove(left.instances[0] as InstanceSnapshot, left.places[0] ?? null);
    left.hosts.shareAll();
    expect(left.hosts.place(anInstance('i4'), box, null)).not.toBe(left.places[0]);
  });
});
