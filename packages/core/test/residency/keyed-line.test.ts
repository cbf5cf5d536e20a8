import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { runs } from '../../../../test/support/runs.ts';
import { callTurns, type KeyedMember, Patience } from '../../src/residency/keyed-line.ts';
import { type KeyedFleet, keyAt, ownKey } from '../../src/residency/residency.ts';
import type { LineRoute } from '../../src/routing/call-line.ts';
import type { InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance, now } from '../routing/a-snapshot.ts';

const route = { capability: 'upscale', versionRange: null, tags: [] };

function aBox(id: string, key: string | null, box: Partial<InstanceSnapshot> = {}): InstanceSnapshot {
  return anInstance(id, {
    affinity: '{{ input.model }}',
    duration_ms: 23_000,
    resident: key === null ? [] : [key],
    ...box,
  });
}

interface Named extends KeyedMember {
  readonly name: string;
}

function aCall(name: string, key: string | null, member: Partial<KeyedMember> = {}): Named {
  const usual = { awaits: null, refuses: null, rank: 2, waitedMs: 1_000, letGoMs: 0, isCalled: false };
  return { name, key, ...usual, ...member };
}

const loadMs = 22_000;
const loads = (): { warmMs: number; coldMs: number } => ({ warmMs: 23_000, coldMs: 23_000 + loadMs });

interface Asked {
  readonly of?: LineRoute;
  readonly sinceTurnMs?: number;
  readonly times?: (owner: string, key: string) => ReturnType<typeof loads>;
}

function turns(
  instances: readonly InstanceSnapshot[],
  members: readonly Named[],
  { of = route, sinceTurnMs = Number.POSITIVE_INFINITY, times = loads }: Asked = {},
) {
  const fleet = { instances, priorMs: 10_000, loads: times };
  const { called } = callTurns(of, fleet, { members, nowMs: now, sinceTurnMs: () => sinceTurnMs });
  return called.map(({ member: { name }, isPassing }) => (isPassing ? `${name} passes` : name));
}

const busy = { held: 1, busy_since_ms: now - 13_000 };

describe('W5: a free instance', () => {
  it('is for the first call with its key, which passes others', () => {
    expect(turns([aBox('a', 'x')], [aCall('1', 'y'), aCall('2', 'x'), aCall('3', 'x')])).toEqual([
      '2 passes',
    ]);
  });

  it('has the key of a step by its project, on an instance of another one too', () => {
    const [ofB, ofC] = [ownKey('prj_b', 'x') as string, ownKey('prj_c', 'x') as string];
    const shared = (key: string) => aBox('a', key, { owner_project: 'prj_a' });
    const members = [aCall('1', 'y'), aCall('2', ofC), aCall('3', ofB)];
    expect(turns([shared(keyAt(ofB, { owner_project: 'prj_a' }))], members)).toEqual(['3 passes']);
    expect(turns([shared('x')], members)).toEqual(['1']);
    expect(turns([aBox('a', 'x', { owner_project: 'prj_b' })], members)).toEqual(['3 passes']);
    const called = aCall('called', ofB, { isCalled: true });
    const twoSlots = aBox('a', 'z', { owner_project: 'prj_a', max_concurrency: 2 });
    expect(turns([twoSlots], [called, ...members])).toEqual(['3 passes']); // it loads it
  });

  it('is for the first call where it has no key of the line', () => {
    expect(turns([aBox('a', 'z')], [aCall('1', 'y'), aCall('2', 'x')])).toEqual(['1']);
  });

  it('is for the first call once others have passed it for 25 loads, also if it has waited for longer', () => {
    const members = [aCall('1', 'y', { waitedMs: 90 * loadMs }), aCall('2', 'x')];
    expect(turns([aBox('a', 'x')], members, { sinceTurnMs: 25 * loadMs })).toEqual(['1']);
    expect(turns([aBox('a', 'x')], members, { sinceTurnMs: 25 * loadMs - 1 })).toEqual(['2 passes']);
    const younger = [aCall('1', 'y', { waitedMs: 25 * loadMs - 1 }), aCall('2', 'x')];
    expect(turns([aBox('a', 'x')], younger)).toEqual(['2 passes']);
  });

  it('is for one passed call at a time, and sooner on more instances', () => {
    const boxes = ['a', 'b', 'c', 'd', 'e'].map((id) => aBox(id, 'x'));
    const waited = { waitedMs: 90 * loadMs };
    const members = [aCall('1', 'y', waited), aCall('2', 'z', waited), aCall('3', 'x'), aCall('4', 'x')];
    const sinceTurnMs = 5 * loadMs;
    const inUse = boxes.map((box, at) => (at < 2 ? box : { ...box, ...busy }));
    expect(turns(inUse, members, { sinceTurnMs })).toEqual(['1', '3 passes']);
    expect(turns(inUse, members, { sinceTurnMs: sinceTurnMs - 1 })).toEqual(['3 passes', '4 passes']);
  });

  it('is for the better rank, whatever is loaded', () => {
    expect(turns([aBox('a', 'x')], [aCall('1', 'y', { rank: 1 }), aCall('2', 'x')])).toEqual(['1']);
  });

  it('is kept for a call that was called for it', () => {
    expect(turns([aBox('a', 'x')], [aCall('1', 'x', { isCalled: true }), aCall('2', 'x')])).toEqual([]);
    expect(
      turns([aBox('a', 'x'), aBox('b', 'y')], [aCall('1', 'x', { isCalled: true }), aCall('2', 'y')]),
    ).toEqual(['2']);
  });
});

/** Serves a line on one instance until it is empty. @returns the keys in the order of their calls */
function serveAll(keys: readonly string[]): string[] {
  let waiting: Named[] = keys.map((key, at) => aCall(String(at), key, { waitedMs: 3_600_000 }));
  let loaded: string | null = null;
  let sinceTurnMs = 0;
  const served: string[] = [];
  while (waiting.length > 0) {
    const fleet: KeyedFleet = { instances: [aBox('a', loaded)], priorMs: 10_000, loads };
    const asked = { members: waiting, nowMs: now, sinceTurnMs: () => sinceTurnMs };
    const [turn, ...others] = callTurns(route, fleet, asked).called;
    if (turn === undefined || others.length > 0) throw new Error('a free instance takes one call');
    const { member, isPassing } = turn;
    sinceTurnMs = (isPassing ? sinceTurnMs : 0) + 23_000 + (member.key === loaded ? 0 : loadMs);
    loaded = member.key;
    served.push(member.key as string);
    waiting = waiting.filter((one) => one !== member);
  }
  return served;
}

it('calls with one key are served together, and the first of those that were passed comes next', () => {
  expect(serveAll([...'ABAACABC']).join('')).toBe('AAAABBCC');
  expect(serveAll([...`AB${'A'.repeat(60)}`]).indexOf('B')).toBe(23); // a load and 23 calls
});

it('however long all have waited, few calls of a line need a load, and each key has its turn', () => {
  const anyKey = fc.constantFrom('x', 'y', 'z');
  fc.assert(
    fc.property(fc.array(anyKey, { minLength: 1, maxLength: 120 }), (keys) => {
      const served = serveAll(keys);
      expect(served.toSorted()).toEqual(keys.toSorted());
      const loadsSeen = served.filter((key, at) => key !== served[at - 1]).length;
      expect(loadsSeen).toBeLessThanOrEqual(3 + (served.length * 23_000) / (24 * loadMs));
      const inARow = 25 * (loadMs / 23_000) + 2; // until the first that was passed has its turn
      for (const [at, key] of served.entries()) {
        const end = served.findIndex((one, from) => from > at && one !== key);
        const rest = new Set(served.slice(at)).size;
        if (rest > 1) expect(end - at).toBeLessThanOrEqual(inARow);
      }
    }),
    { numRuns: runs(100) },
  );
});

describe('W4: a call', () => {
  it('is not called for a free slot while its key is free sooner', () => {
    const boxes = [aBox('a', 'x', busy), aBox('b', 'y')];
    expect(turns(boxes, [aCall('1', 'x')])).toEqual([]);
    expect(turns(boxes, [aCall('1', 'x'), aCall('2', 'z')])).toEqual(['2']);
  });

  it('is called for a load when others wait for its key before it', () => {
    expect(turns([aBox('a', 'x', busy), aBox('b', 'y')], [aCall('1', 'x'), aCall('2', 'x')])).toEqual(['2']);
  });

  it('is called for a load when the one with its key takes far longer than expected', () => {
    const hung = { held: 1, busy_since_ms: now - 90_000 };
    expect(turns([aBox('a', 'x', hung), aBox('b', 'y')], [aCall('1', 'x')])).toEqual(['1']);
  });

  it('without a key takes what is free', () => {
    expect(turns([aBox('a', 'x', busy), aBox('b', 'y')], [aCall('1', null), aCall('2', null)])).toEqual([
      '1',
    ]);
  });
});

describe('N5: a call that rather waits for an instance', () => {
  const free = aBox('free', null, { ...busy, affinity: null });
  const paid = aBox('paid', null, { affinity: null });
  const waits = (name: string, refuses: readonly string[] | null = ['paid']) =>
    aCall(name, null, { awaits: 'free', refuses });

  it('is not called for one that it refused, which is for those behind it', () => {
    expect(turns([free, paid], [waits('1'), waits('2'), aCall('3', null)])).toEqual(['3']);
  });

  it('is called for that one and for others that it did not refuse, as far as they are listed', () => {
    expect(turns([{ ...free, held: 0 }, paid], [waits('1'), waits('2')])).toEqual(['1']);
    const other = aBox('other', null, { affinity: null });
    expect(turns([free, paid, other], [waits('1'), waits('2')])).toEqual(['1']);
    expect(turns([free, paid, other], [waits('1', null)])).toEqual([]);
  });

  it('is called for any while the awaited one is gone or takes no calls', () => {
    expect(turns([paid], [waits('1'), waits('2')])).toEqual(['1']);
    expect(turns([{ ...free, breaker_until_ms: now + 1 }, paid], [waits('1')])).toEqual(['1']);
    expect(turns([{ ...free, state: 'draining' }, paid], [waits('1')])).toEqual(['1']);
  });

  it('is called for one that it refused in a doubtful state, once that has recovered', () => {
    const doubtful = { ...paid, state: 'suspect' } as const;
    expect(turns([free, doubtful], [waits('1', ['paid?'])])).toEqual([]);
    expect(turns([free, paid], [waits('1', ['paid?'])])).toEqual(['1']);
    expect(turns([free, doubtful], [waits('1')])).toEqual(['1']);
  });

  it('takes the awaited one first, and a free slot of another is for those behind', () => {
    const two = [paid, { ...free, held: 0 }];
    expect(turns(two, [waits('1'), aCall('2', null), waits('3')])).toEqual(['1', '2']);
  });

  it('takes the awaited one before others that it did not refuse', () => {
    const both = [aBox('other', null, { affinity: null }), { ...free, held: 0 }, { ...paid, held: 1 }];
    expect(turns(both, [waits('1'), waits('2', ['paid', 'other'])])).toEqual(['1']);
  });

  it('is called in advance where calls of the awaited one are short, and for no other short one', () => {
    const short = { duration_ms: 200 };
    expect(turns([{ ...free, ...short }, paid], [waits('1'), waits('2'), waits('3')])).toEqual(['1', '2']);
    const full = { ...paid, ...short, held: 1 };
    expect(turns([free, full], [waits('1')])).toEqual([]);
  });
});

describe('a slot that a called one will take', () => {
  const called = (key: string | null): Named => aCall('0', key, { isCalled: true });
  /** It ends sooner than a load: what waits for its key waits for it (W4). */
  const soon = (key: string): InstanceSnapshot => aBox('soon', key, busy);
  const two = { max_concurrency: 2 };

  it('has its key loaded, and what was loaded there before is lost', () => {
    expect(turns([aBox('a', 'z', two), soon('y')], [called('y'), aCall('1', 'y')])).toEqual(['1']);
    expect(turns([aBox('a', 'x', two), soon('x')], [called('y'), aCall('1', 'x')])).toEqual([]);
  });

  it('keeps what was loaded where the instance holds more, or the call needs nothing', () => {
    const more = { ...two, max_resident: 2 };
    expect(turns([aBox('a', 'x', more), soon('x')], [called('y'), aCall('1', 'x')])).toEqual(['1']);
    expect(turns([aBox('a', 'x', two), soon('x')], [called(null), aCall('1', 'x')])).toEqual(['1']);
  });

  it('is busy from now on, and as long as before where it had a call', () => {
    const stale = { busy_since_ms: now - 13_000 };
    expect(turns([aBox('a', 'y', stale), aBox('b', 'z')], [called('y'), aCall('1', 'y')])).toEqual(['1']);
    const half = { ...two, held: 1, ...stale };
    expect(turns([aBox('a', 'y', half), aBox('b', 'z')], [called('y'), aCall('1', 'y')])).toEqual([]);
  });

  it('is on the instance that needs its models least', () => {
    const boxes = [
      aBox('used', 'x', { last_call_ms: now - 1_000 }),
      aBox('idle', 'z', { last_call_ms: now - 90_000 }),
      soon('x'),
    ];
    expect(turns(boxes, [called('y'), aCall('1', 'x')])).toEqual(['1']);
    expect(turns(boxes.toReversed(), [called('y'), aCall('1', 'x')])).toEqual(['1']);
  });

  it('is none of those for which calls are called in advance', () => {
    const quick = aBox('a', 'x', { duration_ms: 100, held: 1, busy_since_ms: now });
    const waiting = ['1', '2', '3', '4'].map((name) => aCall(name, 'x'));
    expect(turns([quick], [called('x'), ...waiting])).toEqual(['1', '2', '3']);
  });
});

describe('W4: the wait that a load is compared with', () => {
  const cold = aBox('cold', 'z');

  it('is that of the free instance that is the quickest for the call', () => {
    const slow = aBox('slow', 'z', { pace: 3 });
    const full = aBox('full', 'x', { held: 1, busy_since_ms: now });
    expect(turns([slow, cold, full], [aCall('1', 'x')])).toEqual(['1']);
    expect(turns([cold, slow, full], [aCall('1', 'x')])).toEqual(['1']);
    expect(turns([slow, full], [aCall('1', 'x')])).toEqual([]);
  });

  it('is that of the full one that is free first, of those that have the key', () => {
    const late = aBox('late', 'x', { held: 1, busy_since_ms: now });
    expect(turns([late, aBox('soon', 'x', busy), cold], [aCall('1', 'x')])).toEqual([]);
    expect(turns([late, cold], [aCall('1', 'x')])).toEqual(['1']);
    const other = aBox('other', 'z', { held: 1, busy_since_ms: now - 22_900, pace: 0.5 });
    expect(turns([other, cold], [aCall('1', 'x')])).toEqual(['1']);
  });

  it('is half a load longer where the key is only listed', () => {
    const listed = (ranMs: number) =>
      aBox('listed', 'z', { held: 1, busy_since_ms: now - ranMs, resident: ['z', 'x'] });
    expect(turns([listed(12_001), cold], [aCall('1', 'x')])).toEqual([]);
    expect(turns([listed(12_000), cold], [aCall('1', 'x')])).toEqual(['1']);
  });

  it('is no reason to wait where a load takes as long', () => {
    const at = (ranMs: number) => aBox('full', 'x', { held: 1, busy_since_ms: now - ranMs });
    expect(turns([at(1_000), cold], [aCall('1', 'x')])).toEqual(['1']);
    expect(turns([at(1_001), cold], [aCall('1', 'x')])).toEqual([]);
  });

  it('grows with each call that waits before it', () => {
    const four = aBox('four', 'x', { ...busy, held: 4, max_concurrency: 4 });
    const members = ['1', '2', '3', '4'].map((name) => aCall(name, 'x'));
    expect(turns([four, cold], members)).toEqual(['4']);
  });
});

describe('W4: a call that lets free slots go', () => {
  const cold = aBox('cold', 'z');
  const full = aBox('full', 'x', { held: 1, busy_since_ms: now - 22_999 });

  it('is listed, and one that no free slot was for is not', () => {
    const asked = { nowMs: now, sinceTurnMs: () => 0, members: [aCall('1', 'x')] };
    const lettingOf = (instances: readonly InstanceSnapshot[]) =>
      callTurns(route, { instances, priorMs: 10_000, loads }, asked).letting.map(({ name }) => name);
    expect(lettingOf([full, cold])).toEqual(['1']);
    expect(lettingOf([full])).toEqual([]);
    expect(lettingOf([cold])).toEqual([]);
    const picky = aCall('1', 'x', { awaits: 'full', refuses: ['cold'] });
    const fleet = { instances: [full, cold], priorMs: 10_000, loads };
    expect(callTurns(route, fleet, { ...asked, members: [picky] }).letting).toEqual([]);
  });

  it('takes one once it has let them go for two calls, however soon its key seems to be free', () => {
    const twice = 2 * (23_000 + loadMs);
    expect(turns([full, cold], [aCall('1', 'x', { letGoMs: twice - 1 })])).toEqual([]);
    expect(turns([full, cold], [aCall('1', 'x', { letGoMs: twice })])).toEqual(['1']);
  });

  it('is not beside an idle one for ever, where other calls take each slot that it waits for', () => {
    let letGoMs = 0;
    let looks = 0;
    for (; looks < 1_000; looks++) {
      const young = { ...full, busy_since_ms: now - ((looks * 250) % 23_000) };
      if (turns([young, cold], [aCall('1', 'x', { letGoMs })]).length > 0) break;
      letGoMs += 250;
    }
    expect(looks * 250).toBeLessThanOrEqual(2 * (23_000 + loadMs));
  });

  it('is listed also where a call with another key takes the slot', () => {
    const members = [aCall('1', 'x'), aCall('2', 'z')];
    const fleet = { instances: [full, cold], priorMs: 10_000, loads };
    const { called, letting } = callTurns(route, fleet, { members, nowMs: now, sinceTurnMs: () => 0 });
    expect(
      [called, letting].map((some) => some.map((one) => ('name' in one ? one : one.member).name)),
    ).toEqual([['2'], ['1']]);
  });

  it('is passed for 25 loads at most, where others wait for its key before it', () => {
    const many = Array.from({ length: 20 }, (_, at) => aCall(`x${at}`, 'x', { waitedMs: 100 * loadMs }));
    const boxes = [aBox('full', 'x', busy), aBox('free', 'y')];
    expect(turns(boxes, [...many, aCall('young', 'y')], { sinceTurnMs: 100 * loadMs })[0]).toMatch(/^x/);
    expect(turns(boxes, [...many, aCall('young', 'y')], { sinceTurnMs: 0 })).toEqual(['young passes']);
  });

  it('is listed behind the first that is passed, too', () => {
    const members = [aCall('1', 'y'), aCall('2', 'x')];
    const fleet = { instances: [full, cold, aBox('other', 'w')], priorMs: 10_000, loads };
    const { called, letting } = callTurns(route, fleet, { members, nowMs: now, sinceTurnMs: () => 0 });
    expect([called.map(({ member }) => member.name), letting.map(({ name }) => name)]).toEqual([
      ['1'],
      ['2'],
    ]);
  });

  it('counts those before it once', () => {
    const long = (): ReturnType<typeof loads> => ({ warmMs: 23_000, coldMs: 73_000 });
    const late = { waitedMs: 100 * 50_000 };
    const members = [aCall('1', 'x'), aCall('2', 'x'), aCall('3', 'x', late), aCall('4', 'y')];
    expect(turns([aBox('full', 'x', busy), aBox('free', 'y')], members, { times: long })).toEqual(['3']);
  });

  it('waits for none that it does not accept', () => {
    const awaited = aBox('awaited', 'z', busy);
    const warm = aBox('warm', 'x', busy);
    const picky = aCall('1', 'x', { awaits: 'awaited', refuses: ['warm'] });
    expect(turns([awaited, warm, cold], [picky])).toEqual(['1']);
    expect(turns([awaited, { ...warm, held: 0 }, cold], [picky, aCall('2', 'x')])).toEqual(['1', '2']);
  });

  it('does not keep those behind it from their loads (W5)', () => {
    const boxes = [full, aBox('free', 'y')];
    const late = { waitedMs: 90 * loadMs };
    expect(turns(boxes, [aCall('1', 'x'), aCall('2', 'z', late), aCall('3', 'y')])).toEqual(['2']);
  });
});

it('W4: the patience of a call counts from the first slot that it let go, until it leaves the line', () => {
  const patience = new Patience<string>();
  expect(patience.letGoMs('a', 5_000)).toBe(0);
  patience.note(['a', 'b'], ['a'], 5_000);
  patience.note(['a', 'b'], ['a', 'b'], 6_000);
  patience.note(['a', 'b'], [], 7_000);
  expect([patience.letGoMs('a', 8_000), patience.letGoMs('b', 8_000)]).toEqual([3_000, 2_000]);
  patience.note(['b'], [], 9_000);
  expect([patience.letGoMs('a', 9_000), patience.letGoMs('b', 9_000)]).toEqual([0, 3_000]);
});

describe('several instances of a host', () => {
  const box = { host: 'gpu-1', owner_project: 'p', takes: 1, host_calls: 1, host_room: 1 };
  const three = (more: Partial<InstanceSnapshot> = {}) =>
    ['x', 'y', 'z'].map((key) => aBox(key, key, { ...box, ...more }));
  const members = ['y', 'x', 'v'].map((key, at) => aCall(String(at), key));

  it('have no more slots together than the host, for what is loaded there first', () => {
    expect(turns(three(), members)).toEqual(['0']);
    expect(turns(three(), members.toReversed())).toEqual(['1 passes']);
    expect(turns(three({ host_calls: 2, host_room: 2 }), members)).toEqual(['0', '1']);
    expect(turns(three({ takes: 2, host_calls: 2, host_room: 2 }), members)).toEqual(['0', '1']);
  });

  it('take the slots that their calls take', () => {
    const small = aBox('small', 'x', { ...box, host_calls: 3, host_room: 3, max_concurrency: 2 });
    const large = aBox('large', 'z', { ...box, takes: 2 });
    expect(turns([small, large], [aCall('1', 'x'), aCall('2', 'z')])).toEqual(['1', '2']);
    expect(turns([small, large], [aCall('1', 'x'), aCall('2', 'x'), aCall('3', 'z')])).toEqual(['1', '2']);
  });

  it('are full together, so a call does not count on the others', () => {
    const called = aCall('called', 'x', { isCalled: true });
    expect(turns([...three(), aBox('cold', 'w')], [called, aCall('1', 'y')])).toEqual(['1']);
  });

  it('count as the slots of the host where the first of a line is due', () => {
    const late = [aCall('1', 'v', { waitedMs: 90 * loadMs }), aCall('2', 'x')];
    expect(turns(three(), late, { sinceTurnMs: 25 * loadMs })).toEqual(['1']);
    expect(turns(three(), late, { sinceTurnMs: 25 * loadMs - 1 })).toEqual(['2 passes']);
  });

  it('are ahead of a release as the slots of the host are', () => {
    const quick = { duration_ms: 500, held: 1, host_room: 0, busy_since_ms: now };
    const waiting = ['1', '2', '3', '4'].map((name) => aCall(name, null));
    expect(turns(three(quick), waiting)).toEqual(['1']);
  });
});

describe('W5: the order of the line', () => {
  const young = { waitedMs: 0 };

  it('holds for a call that needs nothing loaded, and where no load was ever seen', () => {
    expect(turns([aBox('a', 'x')], [aCall('1', null, young), aCall('2', 'x')])).toEqual(['1']);
    const fleet = { instances: [aBox('a', 'x')], priorMs: 10_000 };
    const members = [aCall('1', 'y', young), aCall('2', 'x')];
    const { called } = callTurns(route, fleet, { members, nowMs: now, sinceTurnMs: () => 0 });
    expect(called.map(({ member }) => member.name)).toEqual(['1']);
  });

  it('is that of calls which may take what is free', () => {
    const free = aBox('free', 'z', busy);
    const picky = aCall('1', null, { awaits: 'free', refuses: ['paid'] });
    const members = [picky, aCall('2', 'y', { waitedMs: 90 * loadMs }), aCall('3', 'x')];
    expect(turns([free, aBox('paid', 'x')], members)).toEqual(['2']);
  });

  it('is kept for the first that waits for any slot alone, and passed by those behind it alone', () => {
    const members = [aCall('1', 'x'), aCall('2', 'y'), aCall('3', 'z')];
    expect(turns([aBox('a', 'x'), aBox('b', 'z')], members)).toEqual(['1', '3 passes']);
    const quick = (_: string, key: string) => (key === 'v' ? { warmMs: 100, coldMs: 101 } : loads());
    const others = [aCall('1', 'y'), aCall('2', 'v'), aCall('3', 'x')];
    expect(turns([aBox('a', 'x')], others, { times: quick, sinceTurnMs: 1_000 })).toEqual(['3 passes']);
  });

  it('gives each call one slot', () => {
    expect(turns([aBox('a', 'x'), aBox('b', 'z')], [aCall('1', 'x'), aCall('2', 'y')])).toEqual(['1', '2']);
  });
});

it('a key counts where an affinity is declared, or everywhere if none is', () => {
  const full = aBox('full', 'x', { held: 1, busy_since_ms: now - 22_999 });
  const plain = anInstance('plain', { duration_ms: 23_000 });
  expect(turns([full, plain], [aCall('1', 'x')])).toEqual(['1']);
  const [busyPlain, freePlain] = [
    anInstance('busy', { resident: ['x'], held: 1, busy_since_ms: now - 22_999 }),
    anInstance('free'),
  ];
  expect(turns([busyPlain, freePlain], [aCall('1', 'x')])).toEqual([]);
});

it('a key of the caller counts everywhere', () => {
  const key = ownKey('prj_one', 'x') as string;
  const own = { owner_project: 'prj_one' };
  const plain = anInstance('plain', {
    ...own,
    duration_ms: 23_000,
    resident: ['x'],
    held: 1,
    busy_since_ms: now - 22_999,
  });
  expect(turns([plain, aBox('free', 'z', own)], [aCall('1', key)])).toEqual([]);
  expect(
    turns(
      [{ ...plain, held: 0 }, aBox('full', 'z', { ...own, ...busy })],
      [aCall('1', 'y'), aCall('2', key)],
    ),
  ).toEqual(['2 passes']);
});

it('a call without a load goes where no key counts, not where it must load', () => {
  const plain = anInstance('plain', { duration_ms: 23_000 });
  const picky = aCall('2', 'w', { awaits: 'cold', refuses: ['plain'] });
  expect(turns([aBox('cold', 'z'), plain], [aCall('1', 'x'), picky])).toEqual(['1', '2']);
  const slow = anInstance('slow', { duration_ms: 46_000 });
  const other = aCall('2', 'w', { awaits: 'slow', refuses: ['cold'] });
  expect(turns([slow, aBox('cold', 'z')], [aCall('1', 'x'), other])).toEqual(['1', '2']);
});

it('a call finds the key of the one before it on its slot', () => {
  const long = (): ReturnType<typeof loads> => ({ warmMs: 23_000, coldMs: 200_000 });
  const two = [aBox('a', 'z', { max_concurrency: 2 }), aBox('b', 'z')];
  const picky = aCall('3', 'w', { awaits: 'b', refuses: ['a'] });
  expect(turns(two, [aCall('1', 'x'), aCall('2', 'x'), picky], { times: long })).toEqual(['1', '2', '3']);
  expect(
    turns([aBox('a', 'z'), aBox('b', 'z')], [aCall('1', 'x'), aCall('2', 'x')], { times: long }),
  ).toEqual(['1']);
});

it('a look does not compare each call of a long line with each instance of a large fleet', () => {
  const boxes = Array.from({ length: 1_000 }, (_, at) => aBox(`b${at}`, `k${at}`, at === 0 ? {} : busy));
  const members = Array.from({ length: 200 }, (_, at) => aCall(`m${at}`, `k${1 + at}`));
  const spentMs = countProcessorMs();
  for (let look = 0; look < 10; look++) turns(boxes, members);
  expect(spentMs()).toBeLessThan(400);
});

it('W5: calls of a better rank that are called in order do not put off the first of another rank', () => {
  const fleet = { instances: [aBox('a', 'x')], priorMs: 10_000, loads };
  const members = [aCall('1', 'y', { waitedMs: 90 * loadMs }), aCall('2', 'x')];
  const sinceTurnMs = (rank: number): number => (rank === 1 ? 0 : 25 * loadMs);
  const [turn] = callTurns(route, fleet, { members, nowMs: now, sinceTurnMs }).called;
  expect([turn?.member.name, turn?.isPassing]).toEqual(['1', false]);
});

it('an instance that rests, is drained or has another version takes none', () => {
  const others = [
    aBox('a', 'x', { breaker_until_ms: now + 1 }),
    aBox('b', 'x', { state: 'draining' }),
    aBox('c', 'x', { state: 'down' }),
  ];
  expect(turns(others, [aCall('1', 'x')])).toEqual([]);
});

const shortLoads = (): { warmMs: number; coldMs: number } => ({ warmMs: 100, coldMs: 600 });

it('short calls are called before a slot is free, where each has what they need, or a load is short, too', () => {
  const quick = { duration_ms: 100, held: 1, busy_since_ms: now };
  const members = [aCall('1', 'x'), aCall('2', null), aCall('3', 'y')];
  expect(turns([aBox('a', 'x', quick)], members, { times: shortLoads })).toEqual(['1', '2', '3']);
  expect(turns([aBox('a', 'x', quick)], members)).toEqual(['1', '2']);
  expect(turns([aBox('a', 'x', quick), aBox('b', 'y', quick)], members)).toEqual(['2']);
});

it('and also where others that are full take longer', () => {
  const quick = aBox('a', 'x', { duration_ms: 100, held: 1, busy_since_ms: now });
  expect(turns([quick, aBox('b', 'x', busy)], [aCall('1', 'x')])).toEqual(['1']);
});

it('longer calls are not, and no call is while a slot is free for which it rather waits', () => {
  const longer = aBox('a', 'x', { duration_ms: 1_100, held: 1, busy_since_ms: now });
  const many = Array.from({ length: 8 }, (_, at) => ({ ...longer, instance_id: `a${at}` }));
  expect(turns(many, [aCall('1', 'y')])).toEqual([]);
  const quick = { duration_ms: 900, held: 1, busy_since_ms: now - 13_000 } as const;
  const warm = Array.from({ length: 8 }, (_, at) => aBox(`a${at}`, 'x', quick));
  expect(turns([...warm, aBox('b', 'y')], [aCall('1', 'x')])).toEqual([]);
});

const anyMember = fc.record({
  key: fc.constantFrom('x', 'y', 'z', null),
  rank: fc.integer({ min: 1, max: 3 }),
  waitedMs: fc.integer({ min: 0, max: 900_000 }),
  isCalled: fc.boolean(),
  awaits: fc.constantFrom(null, 'ins_0', 'ins_1'),
  refuses: fc.constantFrom(null, [], ['ins_0'], ['ins_2', 'ins_3']),
});
const anyBox = fc.record({
  key: fc.constantFrom('x', 'y', null),
  held: fc.integer({ min: 0, max: 2 }),
  max_concurrency: fc.integer({ min: 1, max: 3 }),
});

it('no more are called than slots are free, none twice, and none is left while a slot is free that it may load on', () => {
  fc.assert(
    fc.property(
      fc.array(anyBox, { maxLength: 8 }),
      fc.array(anyMember, { maxLength: 20 }),
      fc.integer({ min: 0, max: 900_000 }),
      (boxes, drawn, sinceTurnMs) => {
        const instances = boxes.map(({ key, ...box }, at) => aBox(`ins_${at}`, key, box));
        const members = drawn
          .toSorted((a, b) => a.rank - b.rank)
          .map((member, at) => aCall(String(at), member.key, member));
        const fleet = { instances, priorMs: 10_000, loads };
        const { called } = callTurns(route, fleet, { members, nowMs: now, sinceTurnMs: () => sinceTurnMs });
        const free = instances.reduce(
          (sum, { held, max_concurrency }) => sum + Math.max(0, max_concurrency - held),
          0,
        );
        const calledBefore = members.filter(({ isCalled }) => isCalled);
        const before = calledBefore.filter(({ awaits }) => awaits === null).length;
        expect(new Set(called.map(({ member }) => member)).size).toBe(called.length);
        expect(called.length).toBeLessThanOrEqual(Math.max(0, free - Math.min(free, before)));
        const left = members.filter((one) => !one.isCalled && !called.some(({ member }) => member === one));
        if (called.length + calledBefore.length < free) {
          const isAwaited = ({ key, awaits }: Named): boolean =>
            awaits !== null ||
            instances.some((box) => box.resident?.[0] === key && box.held >= box.max_concurrency);
          expect(left.every(isAwaited)).toBe(true);
        }
      },
    ),
    { numRuns: runs(100) },
  );
});

it.each([
  ['down', { state: 'down' }],
  ['drained', { state: 'draining' }],
  ['resting', { breaker_until_ms: now + 60_000 }],
  ['of another version', { version: '9.0.0' }],
] as const)('an instance that is %s changes no turn, whatever it has loaded', (_, box) => {
  const ids = fc.constantFrom('x', 'y', 'z');
  const boxOf = fc.record({ key: ids, isBusy: fc.boolean() });
  const callOf = fc.record({ key: ids, waitedMs: fc.nat({ max: 700_000 }) });
  fc.assert(
    fc.property(fc.array(boxOf, { minLength: 1 }), fc.array(callOf), ids, (boxes, calls, key) => {
      const able = boxes.map((one, at) => aBox(`a${at}`, one.key, one.isBusy ? busy : {}));
      const members = calls.map(({ key: wanted, waitedMs }, at) => aCall(`${at}`, wanted, { waitedMs }));
      const unable = aBox('unable', key, box as Partial<InstanceSnapshot>);
      const narrow = { ...route, versionRange: '^1.0.0' };
      expect(turns([...able, unable], members, { of: narrow })).toEqual(turns(able, members, { of: narrow }));
    }),
    { numRuns: runs(100) },
  );
});
