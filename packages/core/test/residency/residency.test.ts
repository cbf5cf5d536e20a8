import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { createKeyOfInput, findAffinityFault, toLiteral } from '../../src/residency/affinity-key.ts';
import {
  applyFolded,
  distrustMs,
  foldValue,
  type LoadTimes,
  paceWeight,
  readTimes,
  reportKeys,
  residencyOf,
  serveKey,
  timeWeight,
  toKey,
} from '../../src/residency/residency.ts';
import { choose } from '../../src/routing/choose.ts';
import { explainChoice } from '../../src/routing/explain.ts';
import { replayChoice, toInputs } from '../../src/routing/replay.ts';
import type { InstanceSnapshot, RouteRequest } from '../../src/routing/types.ts';
import { anInstance, aRequest, now } from '../routing/a-snapshot.ts';

/** A rented instance, so that no tier decides. */
function aBox(id: string, box: Partial<InstanceSnapshot> = {}): InstanceSnapshot {
  return anInstance(id, { is_local: false, affinity: '{{ input.model }}', duration_ms: 23_000, ...box });
}

const usual: Record<string, LoadTimes> = { '': { warmMs: 23_000, coldMs: 45_000 } };

function ask(
  instances: readonly InstanceSnapshot[],
  key: string,
  { times = usual, ...request }: Partial<RouteRequest> & { readonly times?: Record<string, LoadTimes> } = {},
) {
  const fleet = { instances, priorMs: 10_000, loads: (_: string, one: string) => times[one] };
  const asked = aRequest({ residency: residencyOf(fleet, () => key, now), ...request });
  const choice = choose(instances, asked, 7);
  const { reason, candidates } = explainChoice(asked, choice, {
    decision_id: 'dec_1',
    chosen: choice.best?.isFull === false,
  });
  return { ...choice, request: asked, id: choice.best?.instance.instance_id, reason, candidates };
}

describe('the key of a call', () => {
  it.each([
    ['a text', '{{ input.model }}', { model: 'sdxl' }, 'sdxl'],
    [
      'several parts',
      '{{ input.model }}+{{ input.lora | join("+") }}',
      { model: 'sdxl', lora: ['a', 'b'] },
      'sdxl+a+b',
    ],
    ['a number', '{{ input.seed }}', { seed: 7 }, '7'],
    ['a text without expressions', 'always', {}, 'always'],
    ['an empty text', '{{ input.model }}', { model: '' }, null],
    ['null', '{{ input.model }}', { model: null }, null],
    ['a field that is missing', '{{ input.model }}', {}, null],
    ['a field of the wrong type', '{{ input.lora | join("+") }}', { lora: 3 }, null],
  ])('is that of %s', (_, text, input, expected) => {
    expect(createKeyOfInput(input)(text)).toBe(expected);
  });

  it('is short for a long prefix, the same for the same one, and another for another', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 129, maxLength: 400 }),
        fc.string({ minLength: 129, maxLength: 400 }),
        (one, other) => {
          const key = toKey(one) as string;
          expect(key).toMatch(/^#[0-9a-f]{32}$/);
          expect(toKey(one)).toBe(key);
          expect(toKey(other) === key).toBe(one === other);
        },
      ),
      { numRuns: runs(100) },
    );
  });

  it('of a long text is its hash, which is the same in every process', () => {
    expect(toKey('x'.repeat(128))).toBe('x'.repeat(128));
    expect(toKey('x'.repeat(129))).toBe('#4ee8de8772aa25cd4c59ea9f6dd5b52e');
    expect(toKey('system prompt '.repeat(20))).toBe('#60f8b1ed3a6b2da59fde802034cfe898');
  });

  it.each([
    ['an object', '{{ input.voice }}'],
    ['a list', '{{ input.messages | slice(0, 2) }}'],
    ['their JSON', '{{ input.messages | json }}'],
    ['a text with a line break', 'sdxl\nturbo'],
    ['a text that changes the direction', 'sdxl\u202eturbo'],
    ['half a character', 'sdxl\ud83d'],
  ])('of %s is its hash, since keys are stored and shown', (_, text) => {
    const messages = [{ role: 'system', content: 'sys' }];
    expect(createKeyOfInput({ voice: { b: 1, a: 2 }, messages })(text)).toMatch(/^#[0-9a-f]{32}$/);
  });

  it('of an object does not depend on the order of its fields', () => {
    expect(toKey({ b: 1, a: 2 })).toBe(toKey({ a: 2, b: 1 }));
  });

  it('of two objects is the same where they are', () => {
    expect(toKey({ a: 1, b: 2 })).toBe(toKey({ b: 2, a: 1 }));
    expect(toKey({ a: 1 })).not.toBe(toKey({ a: 2 }));
  });

  it('of a caller is no expression, whatever it holds', () => {
    expect(createKeyOfInput({ a: 1 })(toLiteral('chat {{ input.a }}'))).toBe('chat { { input.a }}');
    const part = fc.constantFrom(
      '{',
      '}',
      '{{',
      ' ',
      '"',
      "'",
      '\\',
      '%',
      '#',
      'input.a',
      'secret',
      ':',
      '1',
    );
    const text = fc.array(part, { minLength: 1, maxLength: 12 }).map((parts) => parts.join(''));
    const keyOf = createKeyOfInput({ a: 'of the input' });
    const property = fc.property(text, (one) => {
      expect(findAffinityFault(toLiteral(one))).toBeNull();
      expect(keyOf(toLiteral(one))).toBe(toKey(toLiteral(one)));
    });
    fc.assert(property, { numRuns: runs(200) });
  });

  it.each([
    ['{{ input.model', 'at character'],
    ['{{ job.model }}', 'at character'],
    ['{{ input.model | jion }}', 'at character'],
  ])('of %j is refused where it is declared', (text, part) => {
    expect(findAffinityFault(text)).toContain(part);
  });

  it.each(['{{ input.model }}', '{{ input.model }}+{{ input.lora }}', 'always'])(
    'of %j is right where it is declared',
    (text) => {
      expect(findAffinityFault(text)).toBeNull();
    },
  );

  it('is evaluated once for all instances, and the input is read only for it', () => {
    let units = 0;
    let reads = 0;
    const read = () => {
      reads += 1;
      return { model: 'sdxl' };
    };
    const keyOf = createKeyOfInput(read, (spent) => {
      units += spent;
    });
    expect(reads).toBe(0);
    expect(keyOf('{{ input.model }}')).toBe('sdxl');
    const once = units;
    expect(once).toBeGreaterThan(0);
    expect(keyOf('{{ input.model }}')).toBe('sdxl');
    expect([units, reads]).toEqual([once, 1]);
  });
});

describe('W1: a key is resident', () => {
  it('where it was served last, and on an instance that holds more, where it was served before', () => {
    expect(serveKey(['a', 'b'], 'c', 1)).toEqual(['c']);
    expect(serveKey(['a', 'b'], 'c', 3)).toEqual(['c', 'a', 'b']);
    expect(serveKey(['a', 'b'], 'b', 2)).toEqual(['b', 'a']);
  });

  it('where it was reported, in the order of its use', () => {
    expect(reportKeys(['a', 'b'], ['c', 'b'], false)).toEqual(['b', 'c']);
    expect(reportKeys(['a', 'b'], [], false)).toEqual([]);
  });

  it('where it is being loaded by a call, which no report has yet', () => {
    expect(reportKeys(['a', 'b'], ['b'], true)).toEqual(['a', 'b']);
  });

  it('the list has the key first, each key once, and no more than the instance holds', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.string(), fc.integer({ min: 1, max: 100 }), (list, key, most) => {
        const keys = [...new Set(list)].slice(0, most);
        const served = serveKey(keys, key, most);
        expect(served[0]).toBe(key);
        expect(new Set(served).size).toBe(served.length);
        expect(served.length).toBeLessThanOrEqual(most);
      }),
      { numRuns: runs(100) },
    );
  });
});

it.each(['constructor', 'toString', '__proto__'])('W2: the key %s is trusted as others are', (key) => {
  const box = aBox('a', { resident: ['x', key], distrusted: {} });
  const fleet = { instances: [box], priorMs: 10_000 };
  expect(residencyOf(fleet, () => key, now)?.get('a')).toMatchObject({ isResident: true, isListed: true });
});

describe('a call with little time left', () => {
  const loads: Record<string, LoadTimes> = { x: { warmMs: 5_000, coldMs: 65_000 } };
  const calls = { success_count: 20, deviation_ms: 15_000 };
  const verdictsOf = (box: Partial<InstanceSnapshot>, times: Record<string, LoadTimes> = loads) => [
    ...ask([aBox('a', { ...calls, ...box })], 'x', { times, leftMs: 30_000 }).verdicts.keys(),
  ];

  it('is made where its key is loaded, however long others take that must load', () => {
    expect(verdictsOf({ duration_ms: 35_000, resident: ['x'] })).toEqual([]);
  });

  it('is not made where it would be over before its load is, however short others are', () => {
    expect(verdictsOf({ duration_ms: 6_000, deviation_ms: 1_000, resident: ['y'] })).toEqual(['no_time']);
  });

  it('is made where its one call had to load: that does not show what a warm one takes', () => {
    const once = { x: { warmMs: null, coldMs: 60_000 }, '': { warmMs: null, coldMs: 60_000 } };
    expect(verdictsOf({ duration_ms: 60_000, success_count: 1, resident: ['x'] }, once)).toEqual([]);
  });

  it('with a key that was never seen is judged by all calls, so that its times can be learnt', () => {
    expect(verdictsOf({ duration_ms: 35_000, resident: ['x'] }, usual)).toEqual(['no_time']);
    expect(verdictsOf({ duration_ms: 6_000, deviation_ms: 1_000, resident: ['y'] }, usual)).toEqual([]);
  });
});

describe('R8: among free instances', () => {
  it('the one with the key is chosen', () => {
    expect(ask([aBox('a', { resident: ['x'] }), aBox('b', { resident: ['sdxl'] })], 'sdxl').id).toBe('b');
  });

  it('the one that was idle for longest loads it, and an empty one before', () => {
    const boxes = [
      aBox('a', { resident: ['x'], last_call_ms: now - 9_000 }),
      aBox('b', { resident: ['y'], last_call_ms: now - 90_000 }),
    ];
    expect(ask(boxes, 'sdxl').id).toBe('b');
    expect(ask([...boxes, aBox('c')], 'sdxl').id).toBe('c');
  });

  it('a free, local, idle one without it comes before a rented one with it, and one with it before one without', () => {
    const rented = aBox('a', { resident: ['sdxl'] });
    const local = aBox('b', { is_local: true, resident: ['x'] });
    expect(ask([rented, local], 'sdxl').id).toBe('b');
    expect(ask([rented, local, aBox('c', { is_local: true, resident: ['sdxl'] })], 'sdxl').id).toBe('c');
  });

  it('one that is slower than others by more than the load is not chosen for its key', () => {
    const slow = aBox('a', { resident: ['sdxl'], pace: 3 });
    expect(ask([slow, aBox('b')], 'sdxl').id).toBe('b');
    expect(ask([{ ...slow, pace: 1.2 }, aBox('b')], 'sdxl').id).toBe('a');
  });

  it('a rented one costs the load too', () => {
    const priced = { cost_type: 'per_second', rate_usd: 0.001, deviation_ms: 0 } as const;
    const { shown } = ask([aBox('a', { ...priced, resident: ['sdxl'] }), aBox('b', priced)], 'sdxl');
    expect(shown.map(({ costUsd }) => Number(costUsd.toFixed(6)))).toEqual([0.023, 0.045]);
  });
});

describe('R8: among instances that are as fast', () => {
  const idle = (ago: number) => aBox(`idle${ago}`, { resident: ['x'], last_call_ms: now - ago });
  const chosenOf = (boxes: readonly InstanceSnapshot[]) => {
    const asked = aRequest({
      residency: residencyOf({ instances: boxes, priorMs: 10_000 }, () => 'sdxl', now),
    });
    const seeds = Array.from({ length: 20 }, (_, seed) => seed);
    return new Set(seeds.map((seed) => choose(boxes, asked, seed).best?.instance.instance_id));
  };

  it('the least is lost, whatever the seed', () => {
    const never = aBox('never', { resident: ['x'] });
    expect(chosenOf([idle(100), idle(900), idle(500)])).toEqual(new Set(['idle900']));
    expect(chosenOf([idle(900), never, idle(500)])).toEqual(new Set(['never']));
    expect(chosenOf([never, aBox('empty')])).toEqual(new Set(['empty']));
    expect(chosenOf([aBox('empty'), aBox('warm', { resident: ['sdxl'] })])).toEqual(new Set(['warm']));
    const listed = aBox('listed', { resident: ['x', 'sdxl'] });
    expect(chosenOf([listed, aBox('warm', { resident: ['sdxl'] })])).toEqual(new Set(['warm']));
    expect(chosenOf([listed, never, aBox('empty')])).toEqual(new Set(['listed']));
    expect(chosenOf([aBox('empty'), aBox('empty2')])).toEqual(new Set(['empty', 'empty2']));
  });
});

describe('R8: the reason', () => {
  const warm = aBox('warm', { resident: ['sdxl'] });

  it.each<[string, InstanceSnapshot, Parameters<typeof ask>[2], words: string]>([
    ['is loaded', warm, {}, '(free, done in about 23 s); sdxl is loaded there'],
    [
      'is loaded on a full one',
      { ...warm, held: 1 },
      {},
      '(free, done in about 46 s); sdxl is loaded there, which is worth the wait',
    ],
    [
      'is not loaded',
      aBox('cold'),
      {},
      '(free, done in about 45 s); sdxl is not loaded there, and takes about 22 s',
    ],
    ['is not loaded, and no load was seen', aBox('cold'), { times: {} }, '(free, done in about 10 s)'],
  ])('names a key that %s', (_, box, request, words) => {
    const { reason } = ask([box], 'sdxl', request);
    expect(reason.endsWith(words), reason).toBe(true);
  });

  it('of an instance is with its candidate', () => {
    const shown = (times: Record<string, LoadTimes>) =>
      ask([warm, aBox('cold')], 'sdxl', { times }).candidates.map(({ resident, load_ms }) => [
        resident,
        load_ms,
      ]);
    expect(shown({ '': { warmMs: 23_000, coldMs: 45_000.4 } })).toEqual([
      [true, undefined],
      [false, 22_000],
    ]);
    expect(shown({})).toEqual([
      [true, undefined],
      [false, undefined],
    ]);
  });
});

describe('the wait of a call with a key', () => {
  const waitOn = (box: Partial<InstanceSnapshot>, request: Partial<RouteRequest> = {}) =>
    ask(
      [aBox('a', { resident: ['sdxl'], max_concurrency: 2, held: 1, busy_since_ms: now - 3_000, ...box })],
      'sdxl',
      {
        times: { '': { warmMs: 23_000, coldMs: 45_000 } },
        ...request,
      },
    ).shown[0]?.waitMs;

  it.each<[string, Partial<InstanceSnapshot>, expected: number]>([
    ['a slot is free', {}, 23_000],
    ['its slots are held', { held: 2 }, 43_000],
    ['others that are no calls of Capstan fill it', { reported_extra: 1 }, 46_000],
    ['its host has room', { host_calls: 2, host_room: 1 }, 23_000],
    ['its host has none', { host_calls: 2, host_room: 0 }, 46_000],
  ])('counts where %s', (_, box, expected) => {
    expect(waitOn(box)).toBe(expected);
  });
});

describe('W4: an instance with the key that is full', () => {
  const busy = aBox('warm', { resident: ['sdxl'], held: 1, busy_since_ms: now - 13_000 });
  const free = aBox('cold', { resident: ['x'] });

  it('is waited for while that is sooner than a load', () => {
    const { best, id, reason } = ask([busy, free], 'sdxl');
    expect([id, best?.isFull, best?.waitMs]).toEqual(['warm', true, 33_000]);
    expect(reason).toContain('sdxl is loaded there, which is worth the wait');
  });

  it.each([
    ['the wait is longer than a load', { busy_since_ms: now - 100 }, {}],
    ['its call takes much longer than expected', { busy_since_ms: now - 60_000 }, {}],
    ['others wait for it', {}, { waiting: 1 }],
    ['the call may not wait so long', {}, { patienceMs: 2_000 }],
    ['it was called for a free slot', {}, { patienceMs: 0 }],
  ])('is not waited for when %s', (_, box, request) => {
    expect(ask([{ ...busy, ...box }, free], 'sdxl', request).id).toBe('cold');
  });

  it('is not waited for by a call that was called, however long a load seems to take', () => {
    const box = fc.record({
      key: fc.constantFrom('sdxl', 'x'),
      ranMs: fc.nat(200_000),
      isFree: fc.boolean(),
    });
    const coldMs = fc.integer({ min: 23_000, max: 3_600_000 });
    fc.assert(
      fc.property(fc.array(box), coldMs, (drawn, cold) => {
        const boxes = drawn.map(({ key, ranMs, isFree }, at) =>
          aBox(`b${at}`, { resident: [key], ...(isFree ? {} : { held: 1, busy_since_ms: now - ranMs }) }),
        );
        const times = { '': { warmMs: 23_000, coldMs: cold } };
        for (const priority of ['interactive', 'standard', 'batch'] as const) {
          const { best } = ask([...boxes, free], 'sdxl', { patienceMs: 0, times, priority });
          expect(best?.isFull).toBe(false);
        }
      }),
      { numRuns: runs(100) },
    );
  });

  it('is waited for as long as the call may wait, with no others before it', () => {
    expect(ask([busy, free], 'sdxl', { patienceMs: 10_000 }).id).toBe('warm');
    expect(ask([busy, free], 'sdxl', { patienceMs: 9_999 }).id).toBe('cold');
  });

  it('is not waited for when no load was ever seen', () => {
    expect(ask([busy, free], 'sdxl', { times: {} }).id).toBe('cold');
  });
});

describe('W2: a listed key', () => {
  const liar = aBox('liar', { resident: ['x', 'sdxl'] });
  const found = (box: InstanceSnapshot) =>
    residencyOf({ instances: [box], priorMs: 1, loads: (_, key) => usual[key] }, () => 'sdxl', now)?.get(
      box.instance_id,
    );

  it('that took the time of a load is not believed for an hour', () => {
    const listed = found(liar);
    if (listed === undefined) throw new Error('it has a key');
    expect(listed).toMatchObject({ isResident: true, isListed: true });
    const seen = readTimes(listed, 46_000);
    expect(seen).toMatchObject({ isCold: true, isDistrusted: true });
    expect(distrustMs).toBe(3_600_000);
    expect(found({ ...liar, distrusted: { sdxl: now + distrustMs } })?.isResident).toBe(false);
    expect(found({ ...liar, distrusted: { sdxl: now } })?.isResident).toBe(true);
  });

  it('that was served last is believed, and its long time is that of a warm call', () => {
    const last = found(aBox('a', { resident: ['sdxl'], distrusted: { sdxl: now + distrustMs } }));
    if (last === undefined) throw new Error('it has a key');
    expect(last).toMatchObject({ isResident: true, isListed: false });
    expect(readTimes(last, 46_000)).toMatchObject({ isCold: false, isDistrusted: false });
  });
});

describe('the times of a key', () => {
  const expected = (times: Record<string, LoadTimes>) => {
    const { shown } = ask([aBox('a')], 'sdxl', { times });
    const { warmMs, loadMs } = shown[0]?.residency ?? { warmMs: null, loadMs: null };
    return [warmMs, loadMs];
  };

  it.each([
    ['its own', { sdxl: { warmMs: 4_000, coldMs: 9_000 }, ...usual }, [4_000, 5_000]],
    [
      'the load of all keys, before its own was seen',
      { sdxl: { warmMs: 4_000, coldMs: null }, ...usual },
      [4_000, 22_000],
    ],
    [
      'its cold call without the usual load',
      { sdxl: { warmMs: null, coldMs: 30_000 }, ...usual },
      [8_000, 22_000],
    ],
    [
      'a tenth of its cold call at least',
      { sdxl: { warmMs: null, coldMs: 22_500 }, ...usual },
      [2_250, 22_000],
    ],
    ['those of all keys', usual, [23_000, 22_000]],
    ['those of the capability', {}, [10_000, 0]],
    ['no load below 0', { sdxl: { warmMs: 9_000, coldMs: 4_000 } }, [9_000, 0]],
  ])('are %s', (_, times, both) => {
    expect(expected(times)).toEqual(both);
  });

  it('count a call that hung at most four times', () => {
    const { shown } = ask([aBox('a', { resident: ['sdxl'] })], 'sdxl', {
      times: { sdxl: { warmMs: 1_000, coldMs: 2_000 } },
    });
    const found = shown[0]?.residency;
    if (found === undefined) throw new Error('it has a key');
    expect(readTimes(found, 600_000)).toMatchObject({ durationMs: 4_000, ratio: 4 });
  });

  it('are the same, folded by one process or by several in turn', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 1, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 20 }),
        (values) => {
          const folded = values.reduce<ReturnType<typeof foldValue> | undefined>(
            (sum, value) => foldValue(sum, value, 0.1),
            undefined,
          );
          const inTurn = values.reduce<number | null>(
            (average, value) => applyFolded(average, foldValue(undefined, value, 0.1)),
            null,
          );
          expect(applyFolded(null, folded as ReturnType<typeof foldValue>)).toBeCloseTo(inTurn as number, 3);
        },
      ),
      { numRuns: runs(100) },
    );
  });
});

const anyBox = fc.record({
  resident: fc.subarray(['sdxl', 'x', 'y']),
  held: fc.integer({ min: 0, max: 1 }),
  busy_since_ms: fc.integer({ min: now - 60_000, max: now }),
  last_call_ms: fc.option(fc.integer({ min: now - 60_000, max: now })),
  pace: fc.option(fc.double({ min: 0.2, max: 5, noNaN: true })),
  is_local: fc.boolean(),
});

it('R1: a stored decision with keys is made again', () => {
  fc.assert(
    fc.property(
      fc.array(anyBox, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 0, max: 3 }),
      (boxes, waiting) => {
        const instances = boxes.map((box, at) => aBox(`ins_${String(at).padStart(8, '0')}`, box));
        const { best, request, ...choice } = ask(instances, 'sdxl', { waiting });
        const inputs = JSON.parse(JSON.stringify(toInputs({ ...choice, best }, request, 7)));
        expect(replayChoice(inputs)).toBe(best?.instance.endpoint ?? null);
      },
    ),
    { numRuns: runs(100) },
  );
});

describe('the time that an instance needs', () => {
  const found = (box: Partial<InstanceSnapshot>, times: Record<string, LoadTimes> = usual) =>
    residencyOf(
      { instances: [aBox('a', box)], priorMs: 10_000, loads: (_, key) => times[key] },
      () => 'sdxl',
      now,
    )?.get('a');

  it.each([
    ['one that is a little slower counts as usual', 1.24, 23_000],
    ['one that is a quarter slower', 1.25, 28_750],
    ['one that is a little faster counts as usual', 0.81, 23_000],
    ['one that is a quarter faster', 0.8, 18_400],
    ['one that is unknown', null, 23_000],
  ])('follows its pace: %s', (_, pace, warmMs) => {
    expect(found({ pace })?.warmMs).toBeCloseTo(warmMs, 6);
    expect(found({ pace })?.loadMs).toBeCloseTo((warmMs * 22) / 23, 6);
  });

  it.each([
    ['without a call', { held: 0, busy_since_ms: now - 5_000 }, 0],
    ['that begins', { held: 1, busy_since_ms: now }, 23_000],
    ['that began at an unknown time', { held: 1, busy_since_ms: null }, 23_000],
    ['that is half through', { held: 1, busy_since_ms: now - 11_500 }, 11_500],
    ['that is as old as expected', { held: 1, busy_since_ms: now - 23_000 }, 11_500],
    ['that is twice as old', { held: 1, busy_since_ms: now - 46_000 }, 23_000],
    ['of the future, by clocks that differ', { held: 1, busy_since_ms: now + 500 }, 23_000],
    ['of another key', { held: 1, busy_since_ms: now, resident: ['quick'] }, 2_000],
    ['of no key', { held: 1, busy_since_ms: now, resident: [], duration_ms: 7_000 }, 7_000],
    ['of no key, never seen', { held: 1, busy_since_ms: now, resident: [], duration_ms: null }, 10_000],
    ['on a slow one', { held: 1, busy_since_ms: now, pace: 2 }, 46_000],
  ])('ends a call %s', (_, box, leftMs) => {
    const times = { ...usual, quick: { warmMs: 2_000, coldMs: null } };
    expect(found({ resident: ['sdxl'], ...box }, times)?.leftMs).toBeCloseTo(leftMs, 6);
  });
});

it('the times of a key are those of the owner of the instance', () => {
  const owners: string[] = [];
  const loads = (owner: string): undefined => void owners.push(owner);
  residencyOf({ instances: [aBox('a', { owner_project: 'p' })], priorMs: 1, loads }, () => 'sdxl', now);
  expect(new Set(owners)).toEqual(new Set(['p']));
});

it('the time of the last call is known where something is loaded', () => {
  const usedAt = (box: Partial<InstanceSnapshot>) =>
    residencyOf({ instances: [aBox('a', box)], priorMs: 1 }, () => 'sdxl', now)?.get('a')?.usedAtMs;
  expect(usedAt({ resident: ['x'], last_call_ms: 7 })).toBe(7);
  expect(usedAt({ resident: ['x'], last_call_ms: null })).toBe(0);
  expect(usedAt({ resident: [], last_call_ms: 7 })).toBeNull();
});

describe('what the time of a call shows', () => {
  const cold = { key: 'k', isResident: false, isListed: false, warmMs: 1_000, loadMs: 3_000, pace: 1 };
  const seen = (over: object, durationMs: number) =>
    readTimes({ ...cold, isLearnt: true, leftMs: 0, usedAtMs: null, ...over }, durationMs);
  const listed = { isResident: true, isListed: true };

  it.each([
    ['a load, where the key was not', {}, 4_000, { isCold: true, ratio: 1, durationMs: 4_000 }],
    ['a slow instance', { warmMs: 2_000, loadMs: 6_000, pace: 2 }, 8_000, { isCold: true, ratio: 2 }],
    ['a warm call', { isResident: true }, 1_500, { isCold: false, ratio: 1.5, isDistrusted: false }],
    ['a long warm call', { isResident: true }, 4_000, { isCold: false, ratio: 4, isDistrusted: false }],
    ['a listed key that it has', listed, 2_500, { isClear: true, isCold: false, isDistrusted: false }],
    ['a listed key that it lacks', listed, 2_501, { isCold: true, isDistrusted: true }],
    [
      'a load that looks like work',
      { ...listed, loadMs: 250 },
      2_000,
      { isCold: false, isDistrusted: false },
    ],
    ['a load that is longer', { ...listed, loadMs: 251 }, 2_000, { isCold: true, isDistrusted: true }],
    [
      'nothing, of a listed key before a load was seen',
      { ...listed, loadMs: 0 },
      2_000,
      { isClear: false, isCold: false, isDistrusted: false },
    ],
    [
      'a load, of a listed key whose call took twice as long',
      { ...listed, loadMs: 0 },
      2_001,
      { isClear: true, isCold: true, isDistrusted: true },
    ],
    [
      'a warm call, of the key that was served last, before a load was seen',
      { isResident: true, loadMs: 0 },
      9_000,
      { isClear: true, isCold: false, isDistrusted: false },
    ],
    ['a call that hung', {}, 99_000, { durationMs: 16_000, ratio: 4 }],
    ['a call that hung, of an unknown key', { isLearnt: false }, 99_000, { durationMs: 99_000, ratio: 4 }],
    ['a short call of a key that took no time', { isResident: true, warmMs: 0, loadMs: 9 }, 3, { ratio: 3 }],
    ['a call that took no time', {}, 0, { durationMs: 0, ratio: 0.25 }],
  ])('is %s', (_, over, durationMs, expected) => {
    expect(seen(over, durationMs)).toMatchObject(expected);
  });

  it('moves an average by its weight', () => {
    const folded = foldValue(undefined, 200, timeWeight);
    expect(applyFolded(100, folded)).toBeCloseTo(110, 6);
    expect(applyFolded(null, folded)).toBeCloseTo(200, 6);
    expect(applyFolded(1, foldValue(undefined, 2, paceWeight))).toBeCloseTo(1.05, 6);
  });
});
