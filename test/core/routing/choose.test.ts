import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { choose } from '../../../src/core/routing/choose.ts';
import type { InstanceSnapshot, RouteRequest } from '../../../src/core/routing/types.ts';
import { anInstance, aPaid, aRequest } from './a-snapshot.ts';

const orderOf = (instances: readonly InstanceSnapshot[], request: RouteRequest, seed = 1): string =>
  choose(instances, request, seed)
    .ranked.map(({ instance }) => instance.instance_id)
    .join(' ');

const busy = (id: string, instance: Partial<InstanceSnapshot> = {}): InstanceSnapshot =>
  anInstance(id, { held: 1, ...instance });
const remote = (id: string, instance: Partial<InstanceSnapshot> = {}): InstanceSnapshot =>
  anInstance(id, { tags: [], ...instance });

const interactive = aRequest({ priority: 'interactive' });
const standard = aRequest();
const batch = aRequest({ priority: 'batch' });

/** Busy free: 20 s until the call ends. Paid: 1 s and its price. */
const orders: [rule: string, InstanceSnapshot[], RouteRequest, order: string][] = [
  [
    'a free idle local instance comes before a faster one',
    [aPaid('paid', 0.000_001), remote('remote', { duration_ms: 1 }), anInstance('idle')],
    interactive,
    'idle remote paid',
  ],
  ['interactive buys its way out of a queue', [busy('free'), aPaid('paid', 0.18)], interactive, 'paid free'],
  ['but not at any price', [busy('free'), aPaid('paid', 0.2)], interactive, 'free paid'],
  ['standard pays a tenth of that', [busy('free'), aPaid('paid', 0.018)], standard, 'paid free'],
  ['and no more', [busy('free'), aPaid('paid', 0.02)], standard, 'free paid'],
  ['batch stays on the free queue', [aPaid('paid', 1e-9), busy('free', { held: 1 })], batch, 'free paid'],
  [
    'batch does not queue beside an instance that is as cheap and has room',
    [busy('full'), remote('room'), busy('part', { max_concurrency: 4, duration_ms: 10_500 })],
    batch,
    'room part full',
  ],
  [
    'work that an instance reports makes it busy',
    [anInstance('reported', { reported_extra: 1 }), anInstance('idle', { duration_ms: 90_000 })],
    standard,
    'idle reported',
  ],
  [
    'a suspect instance is the last resort',
    [anInstance('suspect', { state: 'suspect' }), aPaid('paid', 100)],
    batch,
    'paid suspect',
  ],
  [
    'an instance that often fails counts as dearer',
    [aPaid('flaky', 0.1, { success_count: 41, failure_count: 49 }), aPaid('sound', 0.15)],
    batch,
    'sound flaky',
  ],
  [
    'an instance without a call of its own is as fast as the median of the others',
    [
      remote('slow', { duration_ms: 9_000 }),
      remote('new', { duration_ms: null }),
      remote('fast', { duration_ms: 2_000 }),
      remote('usual', { duration_ms: 4_000 }),
    ].map((one) => (one.instance_id === 'new' ? { ...one, success_count: 1 } : one)),
    standard,
    'fast new usual slow',
  ],
  [
    'a price per second counts a long call, not a usual one',
    [
      aPaid('seconds', 0.01, { cost_type: 'per_second', duration_ms: 10_000, deviation_ms: 2_000 }),
      aPaid('call', 0.13, { duration_ms: 10_000 }),
      aPaid('dear', 0.135, { duration_ms: 10_000 }),
    ],
    batch,
    'call seconds dear',
  ],
];

const excluded: [verdict: string, Partial<InstanceSnapshot>, Partial<RouteRequest>][] = [
  ['draining', { state: 'deregistered' }, {}],
  ['down', { state: 'down' }, {}],
  ['quarantined', { state: 'quarantined' }, {}],
  ['wrong_version', {}, { versionRange: '^2.0.0' }],
  ['tag_mismatch', { tags: ['local', 'gpu'] }, { tags: ['gpu', 'eu'] }],
  ['already_tried', {}, { tried: new Set(['a']) }],
  ['input_invalid', {}, { refusing: new Set(['a']) }],
  ['over_ceiling', { cost_type: 'per_call', rate_usd: 0.5 }, { ceilingUsd: 0.49 }],
  ['over_ceiling', { cost_type: 'per_second', rate_usd: 0.05, deviation_ms: 10 }, { ceilingUsd: 0.5 }],
  ['down', { state: 'down', version: '9.0.0' }, { versionRange: '^1', tried: new Set(['a']) }],
];

const included: [rule: string, Partial<InstanceSnapshot>, Partial<RouteRequest>][] = [
  ['that carries more tags than asked for', { tags: ['gpu', 'eu', 'x'] }, { tags: ['eu', 'gpu'] }],
  ['that costs exactly the ceiling', { cost_type: 'per_call', rate_usd: 0.5 }, { ceilingUsd: 0.5 }],
  ['that is free, under a ceiling of 0', {}, { ceilingUsd: 0 }],
  ['that others have tried', {}, { tried: new Set(['b']), refusing: new Set(['b']) }],
  ['that is suspect', { state: 'suspect' }, {}],
  ['that is full', { held: 5 }, {}],
];

const versions: [version: string, range: string | null, isWanted: boolean][] = [
  ['1.2.3', null, true],
  ['1.2.3', '^1.0.0', true],
  ['1.2.3', '1.x', true],
  ['1.2.3', '>=1.2.4', false],
  ['2.0.0', '^1.0.0 || ^2.0.0', true],
  ['2.0.0', '^1', false],
  ['1.2.3-beta.1', '^1.0.0', false],
  ['1.2.3-beta.1', '1.2.3-beta.1', true],
  ['v1.2.3', '^1.2.0', true],
  ['2024-11 nightly', '2024-11 nightly', true],
  ['2024-11 nightly', '^1', false],
  ['1.2.3', 'no range', false],
];

describe('choose', () => {
  it.each(orders)('%s', (_, instances, request, order) => {
    expect(orderOf(instances, request)).toBe(order);
    expect(orderOf(instances.toReversed(), request)).toBe(order);
  });

  it('says of each candidate what a call would cost and take', () => {
    const full = busy('free', {
      max_concurrency: 2,
      held: 3,
      reported_extra: 2,
      success_count: 10,
      failure_count: 0,
    });
    expect(choose([full], interactive, 1)).toEqual({
      ranked: [
        { instance: full, tier: 1, costUsd: 0, waitMs: 30_000, score: (0.01 * 30) / (19 / 20), isFull: true },
      ],
      excluded: [],
    });
  });

  it.each(excluded)('leaves out as %s: %j for %j', (verdict, instance, request) => {
    const one = anInstance('a', instance);
    expect(choose([one], aRequest(request), 1)).toEqual({
      ranked: [],
      excluded: [{ instance: one, verdict }],
    });
  });

  it.each(included)('keeps an instance %s', (_, instance, request) => {
    expect(orderOf([anInstance('a', instance)], aRequest(request))).toBe('a');
  });

  it.each(versions)('version %s in range %s: %s', (version, versionRange, isWanted) => {
    expect(orderOf([anInstance('a', { version })], aRequest({ versionRange }))).toBe(isWanted ? 'a' : '');
  });

  it('spreads equal instances over the seeds, the same each time for one seed', () => {
    const ids = ['ins_01', 'ins_02', 'ins_03'];
    const instances = ids.map((id, at) => remote(id, { duration_ms: 10_000 + at }));
    const firsts = Array.from({ length: 600 }, (_, seed) => orderOf(instances, standard, seed).slice(0, 6));
    for (const id of ids) expect(firsts.filter((first) => first === id).length).toBeGreaterThan(100);
    expect(Array.from({ length: 600 }, (_, seed) => orderOf(instances, standard, seed).slice(0, 6))).toEqual(
      firsts,
    );
  });
});

const anySnapshot: fc.Arbitrary<Partial<InstanceSnapshot>> = fc
  .record({
    cost: fc.constantFrom(
      { cost_type: 'free', rate_usd: 0 } as const,
      { cost_type: 'per_call', rate_usd: 0.1 } as const,
      { cost_type: 'per_second', rate_usd: 0.01 } as const,
    ),
    tags: fc.subarray(['local', 'gpu']),
    max_concurrency: fc.integer({ min: 1, max: 3 }),
    state: fc.constantFrom('up', 'up', 'up', 'suspect', 'down', 'quarantined', 'deregistered'),
    version: fc.constantFrom('1.0.0', '1.2.0', '2.0.0'),
    held: fc.nat(4),
    reported_extra: fc.nat(2),
    duration_ms: fc.option(fc.integer({ min: 990, max: 1_010 })),
    deviation_ms: fc.option(fc.nat(100)),
    failure_count: fc.nat(3),
  })
  .map(({ cost, ...rest }) => ({ ...cost, ...rest }));

const anyFleet = fc
  .array(anySnapshot, { maxLength: 30 })
  .map((fleet) => fleet.map((instance, at) => anInstance(`ins_${at}`, instance)));

const anyRequest = fc
  .record({
    priority: fc.constantFrom('interactive', 'standard', 'batch'),
    tags: fc.constantFrom([], [], ['gpu']),
    versionRange: fc.constantFrom(null, null, '^1.0.0'),
    ceilingUsd: fc.constantFrom(null, null, 0.05),
    tried: fc.constantFrom(new Set<string>(), new Set(['ins_0', 'ins_3'])),
  })
  .map((request) => aRequest(request));

describe('the order of candidates', () => {
  it('does not depend on the order in which instances are known', () => {
    const withShuffle = anyFleet.chain((fleet) =>
      fc.tuple(fc.constant(fleet), fc.shuffledSubarray(fleet, { minLength: fleet.length })),
    );
    fc.assert(
      fc.property(withShuffle, anyRequest, fc.integer(), ([fleet, shuffled], request, seed) => {
        expect(choose(shuffled, request, seed).ranked).toEqual(choose(fleet, request, seed).ranked);
      }),
    );
  });

  it('holds every instance once, as a candidate or with its verdict, by tier and then by score', () => {
    fc.assert(
      fc.property(anyFleet, anyRequest, fc.integer(), (fleet, request, seed) => {
        const { ranked, excluded: out } = choose(fleet, request, seed);
        const all = [...ranked, ...out].map(({ instance }) => instance.instance_id);
        expect(all.toSorted()).toEqual(fleet.map(({ instance_id }) => instance_id).toSorted());
        for (const [at, next] of ranked.slice(1).entries()) {
          const { tier, score } = ranked[at] as (typeof ranked)[number];
          expect(tier).toBeLessThanOrEqual(next.tier);
          if (tier === next.tier) expect(score).toBeLessThanOrEqual(next.score * 1.0101);
        }
      }),
    );
  });
});
