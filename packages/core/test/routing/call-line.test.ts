/** The lines of calls that wait for a slot. */
import { describe, expect, it } from 'vitest';
import {
  accepts,
  compareInLine,
  countCallable,
  isShort,
  lineOf,
  nextPlace,
  refusalOf,
  refusedAs,
  routeOfLine,
  standAsideMs,
} from '../../src/routing/call-line.ts';
import { type MemberOfLine, MemoryLines } from '../../src/routing/memory-lines.ts';
import type { InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance, now } from './a-snapshot.ts';

const route = { capability: 'upscale', versionRange: null, tags: [] } as const;

describe('a line', () => {
  it('has the name of its capability where the route has no other condition', () => {
    expect(lineOf(route)).toBe('upscale');
    expect(routeOfLine('upscale')).toEqual(route);
    expect(lineOf({ ...route, versionRange: '^1' })).toBe('["upscale","^1"]');
    expect(lineOf({ ...route, tags: ['gpu'] })).toBe('["upscale",null,"gpu"]');
  });

  it('N1: is in order of priority, then place, then age', () => {
    const places = [
      [2, 1, 5],
      [1, 9, 9],
      [2, 1, 4],
      [1, 8, 10],
    ].map(([rank = 0, place = 0, queuedAtMs = 0]) => ({ rank, place, queuedAtMs }));
    const order = places.toSorted(compareInLine).map(({ queuedAtMs }) => queuedAtMs);
    expect(order).toEqual([10, 9, 4, 5]);
  });

  it('N2: has the next place behind the last of the run, and behind the highest that was called', () => {
    expect([nextPlace(0, 0), nextPlace(3, 1), nextPlace(1, 3)]).toEqual([1, 4, 4]);
  });

  it('N3: lets others go first for half a second, then longer, up to ten', () => {
    expect([1, 2, 3, 100].map((calls) => Math.round(standAsideMs(calls)))).toEqual([500, 800, 1_280, 10_000]);
  });
});

describe('N5: what a call refuses', () => {
  const free = anInstance('free', { held: 1 });
  const others = (count: number) => Array.from({ length: count }, (_, at) => anInstance(`i${at}`));

  it('lists free instances, and none where no other was free', () => {
    const full = anInstance('full', { held: 1 });
    expect(refusalOf(free, [free, full, ...others(2)])).toEqual({ awaits: 'free', refuses: ['i0', 'i1'] });
    expect(refusalOf(free, [free, full])).toEqual({ awaits: null, refuses: null });
    expect(refusalOf({ ...free, held: 0 }, [{ ...free, held: 0 }])).toEqual({ awaits: null, refuses: null });
  });

  it('lists no more than 50', () => {
    expect(refusalOf(free, others(50)).refuses).toHaveLength(50);
    expect(refusalOf(free, others(51))).toEqual({ awaits: 'free', refuses: null });
  });

  it('names a doubtful instance otherwise than a healthy one', () => {
    const doubtful = [anInstance('a', { state: 'suspect' }), anInstance('b', { breaker_until_ms: now })];
    expect([...doubtful, anInstance('c')].map(refusedAs)).toEqual(['a?', 'b?', 'c']);
  });

  it.each([
    ['takes the awaited one, whatever it refuses', { awaits: 'free', refuses: null }, free, true],
    ['takes no other where all are refused', { awaits: 'free', refuses: null }, anInstance('b'), false],
    ['takes one that was not refused', { awaits: 'free', refuses: ['a'] }, anInstance('b'), true],
    ['takes none that was', { awaits: 'free', refuses: ['a', 'b'] }, anInstance('b'), false],
    ['takes any where it awaits none', { awaits: null, refuses: ['b'] }, anInstance('b'), true],
    ['takes any where the awaited one is gone', { awaits: 'gone', refuses: ['b'] }, anInstance('b'), true],
  ])('%s', (_, refusal, instance, isAccepted) => {
    expect(accepts(refusal, instance, new Set(['free', 'a', 'b']))).toBe(isAccepted);
  });
});

it.each([
  ['of a second', { duration_ms: 1_000 }, true],
  ['that are longer', { duration_ms: 1_001 }, false],
  ['that were never seen', { duration_ms: null }, false],
  ['that free their slot', { duration_ms: 90_000, answers_later: 'freed' }, true],
] as const)('short calls, which are called in advance: those %s: %s', (_, part, expected) => {
  expect(isShort(anInstance('a', part))).toBe(expected);
});

describe('the calls that may be called', () => {
  const count = (part: Partial<InstanceSnapshot>, called = 0, asked: object = {}) =>
    countCallable({ ...route, ...asked }, [anInstance('a', { duration_ms: null, ...part })], {
      called,
      nowMs: now,
    });

  it.each<[string, number, number]>([
    ['as many as there are free slots', count({ max_concurrency: 3, held: 1 }), 2],
    ['fewer, where some are called', count({ max_concurrency: 3 }, 2), 1],
    ['none on a full instance', count({ held: 2 }), 0],
    ['none while its breaker is open', count({ breaker_until_ms: now + 1 }), 0],
    ['some when the breaker is half-open', count({ breaker_until_ms: now }), 1],
    ['none on one that the route leaves out', count({}, 0, { tags: ['gpu'] }), 0],
    [
      'those that are free soon, of short calls',
      count({ held: 1, max_concurrency: 2, duration_ms: 1_000 }),
      2,
    ],
    ['at most four ahead of a slot', count({ held: 1, duration_ms: 1 }), 4],
    ['none ahead where no duration is known', count({ held: 1, duration_ms: 0 }), 0],
  ])('are %s', (_, counted, expected) => {
    expect(counted).toBe(expected);
  });
});

describe('lines in memory', () => {
  const begin = (slots: number) => {
    let free = slots;
    const called: string[] = [];
    const lines = new MemoryLines(
      () => [anInstance('a', { max_concurrency: slots, held: slots - free, duration_ms: 1 })],
      () => now,
    );
    const enter = (
      name: string,
      runId: string,
      more: Partial<Pick<MemberOfLine, 'queuedAtMs'>> & {
        priority?: 'interactive' | 'standard' | 'batch';
      } = {},
    ) => {
      const { priority = 'standard', queuedAtMs = 0 } = more;
      return lines.enter({ runId, route: { ...route, priority }, queuedAtMs, call: () => called.push(name) });
    };
    return {
      lines,
      enter,
      called,
      release: (slotsNow: number) => {
        free = slotsNow;
      },
    };
  };

  it('N2: let runs take turns, and higher priorities go first', () => {
    const { lines, enter, called } = begin(9);
    enter('a1', 'a');
    enter('a2', 'a');
    enter('a3', 'a');
    const b1 = enter('b1', 'b', { queuedAtMs: 1 });
    enter('c1', 'c', { priority: 'interactive', queuedAtMs: 2 });
    expect(lines.before(b1)).toBe(2);
    lines.serve(new Set(['other']));
    expect(called).toEqual([]);
    lines.serve(new Set(['upscale']));
    expect(called).toEqual(['c1', 'a1', 'b1', 'a2', 'a3']);
  });

  it('N4: count the calls of the same priority or a higher one', () => {
    const { lines, enter } = begin(1);
    enter('a', 'a', { priority: 'interactive' });
    enter('b', 'b');
    enter('c', 'c', { priority: 'batch' });
    const ahead = (['interactive', 'standard', 'batch'] as const).map((priority) =>
      lines.ahead({ ...route, priority }),
    );
    expect(ahead).toEqual([1, 2, 3]);
    expect(lines.ahead({ ...route, capability: 'other', priority: 'batch' })).toBe(0);
  });

  it('N3: call as many as there are slots, and the next one when a slot is free again', () => {
    const { lines, enter, called, release } = begin(1);
    const first = enter('a', 'a');
    enter('b', 'b');
    lines.serve(new Set(['upscale']));
    lines.serve(new Set(['upscale']));
    expect(called).toEqual(['a']);
    lines.leave(first);
    release(0);
    lines.serve(new Set(['upscale']));
    expect(called).toEqual(['a']);
    release(1);
    lines.serve(new Set(['upscale']));
    expect(called).toEqual(['a', 'b']);
  });

  it('N2: let a run that comes later wait behind the places that were called', () => {
    const { lines, enter, called } = begin(2);
    const [a1] = [enter('a1', 'a'), enter('a2', 'a'), enter('a3', 'a')];
    lines.serve(new Set(['upscale']));
    expect(called).toEqual(['a1', 'a2']);
    expect(enter('b1', 'b').place).toBe(3);
    lines.leave(a1);
    expect(enter('c1', 'c').place).toBe(3);
  });

  it('forget a line that is empty', () => {
    const { lines, enter } = begin(2);
    const a = enter('a', 'a');
    lines.serve(new Set(['upscale']));
    lines.leave(a);
    expect(enter('b', 'b').place).toBe(1);
  });
});

describe('lines in memory that share a host', () => {
  const host = { host: 'gpu', host_calls: 9, owner_project: 'prj_1', max_concurrency: 9, duration_ms: null };

  /** Calls of `big` take two slots of the host; they can also take an instance elsewhere, if it is free. */
  const begin = () => {
    let free = { room: 9, elsewhere: 0 };
    const called: string[] = [];
    const instancesOf = (capability: string): readonly InstanceSnapshot[] => {
      const shared = { ...host, host_room: free.room };
      if (capability !== 'big') return [anInstance(capability, shared)];
      const alone = anInstance('alone', { max_concurrency: 1, held: 1 - free.elsewhere, duration_ms: null });
      return [anInstance('big', { ...shared, host_room: Math.floor(free.room / 2), takes: 2 }), alone];
    };
    const lines = new MemoryLines(instancesOf, () => now);
    return {
      enter: (name: string, priority: 'interactive' | 'standard' | 'batch' = 'standard') => {
        const own = { ...route, capability: name.replace(/\d/, ''), priority };
        return lines.enter({ runId: name, route: own, queuedAtMs: 0, call: () => called.push(name) });
      },
      leave: (member: MemberOfLine) => lines.leave(member),
      /** @returns the calls of this round */
      serve: (room: number, elsewhere = 0, capabilities = ['a', 'b', 'big']) => {
        free = { room, elsewhere };
        lines.serve(new Set(capabilities));
        return called.splice(0);
      },
    };
  };

  it('N3: take turns, and one that was empty goes first', () => {
    const { enter, leave, serve } = begin();
    const b1 = enter('b1');
    enter('b2');
    expect(serve(1)).toEqual(['b1']);
    leave(b1);
    const a1 = enter('a1');
    expect(serve(1)).toEqual(['a1']);
    leave(a1);
    enter('a2');
    expect(serve(1)).toEqual(['a2']);
    expect(serve(2)).toEqual(['b2']);
  });

  it('N3: leave the room to others that their called ones do not need', () => {
    const { enter, serve } = begin();
    enter('a1');
    expect(serve(3)).toEqual(['a1']);
    enter('b1');
    expect(serve(3)).toEqual(['b1']);
    enter('b2');
    expect(serve(3)).toEqual(['b2']);
  });

  it('N1: are in order of their next calls, not of those that were called', () => {
    const { enter, serve } = begin();
    enter('a1', 'interactive');
    enter('a2', 'batch');
    expect(serve(1)).toEqual(['a1']);
    enter('b1');
    expect(serve(2)).toEqual(['b1']);
  });

  it.each([
    ['a large call waits for more room', 1, ['big1'], []],
    ['it has room', 3, ['big1'], ['big1', 'a1']],
  ])('keep the room where %s', (_, room, others, expected) => {
    const { enter, serve } = begin();
    for (const name of [...others, 'a1']) enter(name);
    expect(serve(room)).toEqual(expected);
  });

  it('keep no room for large calls that go elsewhere, or that this round is not for', () => {
    const { enter, serve } = begin();
    enter('big1', 'interactive');
    expect(serve(1, 1)).toEqual(['big1']);
    enter('a1');
    expect(serve(1, 1)).toEqual(['a1']);
    const next = begin();
    for (const name of ['big1', 'big2', 'a1']) next.enter(name);
    expect(next.serve(1, 1, ['a'])).toEqual(['a1']);
    expect(next.serve(1, 1)).toEqual(['big1']);
  });
});
