import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { choose } from '../../src/routing/choose.ts';
import { tieHash } from '../../src/routing/ranking.ts';
import type { InstanceSnapshot, RouteRequest } from '../../src/routing/types.ts';
import { alikeFleet, anyFleet, anyRequest } from './a-fleet.ts';
import { anInstance, aPaid, aRequest, now } from './a-snapshot.ts';

function idOf({ instance }: { readonly instance: InstanceSnapshot }): string {
  return instance.instance_id;
}

/** The shown instances: the best, then the others. */
function orderOf(instances: readonly InstanceSnapshot[], request: RouteRequest, seed = 1): string {
  return choose(instances, request, seed).shown.map(idOf).join(' ');
}

function busy(id: string, instance: Partial<InstanceSnapshot> = {}): InstanceSnapshot {
  return anInstance(id, { held: 1, ...instance });
}
function remote(id: string, instance: Partial<InstanceSnapshot> = {}): InstanceSnapshot {
  return anInstance(id, { is_local: false, ...instance });
}

const interactive = aRequest({ priority: 'interactive' });
const standard = aRequest();
const batch = aRequest({ priority: 'batch' });
function ruling(why: 'already_tried' | 'input_invalid' | 'lost_claim', ...ids: string[]) {
  return {
    ruledOut: new Map(ids.map((id) => [id, why])),
  };
}

/** Busy free: 20 s until the call ends, which count twice. Paid: 1 s and its price. */
const orders: [rule: string, InstanceSnapshot[], RouteRequest, order: string][] = [
  [
    'a free idle local instance comes before a faster one',
    [aPaid('paid', 0.000_001), remote('remote', { duration_ms: 1 }), anInstance('idle')],
    interactive,
    'idle remote paid',
  ],
  ['interactive buys its way out of a queue', [busy('free'), aPaid('paid', 0.38)], interactive, 'paid free'],
  ['but not at any price', [busy('free'), aPaid('paid', 0.4)], interactive, 'free paid'],
  ['standard pays a tenth of that', [busy('free'), aPaid('paid', 0.038)], standard, 'paid free'],
  ['and no more', [busy('free'), aPaid('paid', 0.04)], standard, 'free paid'],
  [
    'but more the more calls wait',
    [busy('free'), aPaid('paid', 0.058)],
    aRequest({ waiting: 1 }),
    'paid free',
  ],
  [
    'an idle instance on a full host waits like a full one',
    [anInstance('shared', { host: 'gpu-1', host_calls: 1, host_room: 0 }), aPaid('paid', 0.38)],
    interactive,
    'paid shared',
  ],
  [
    'an idle instance on a host with room is idle',
    [aPaid('paid', 0.000_001), anInstance('shared', { host: 'gpu-1', host_calls: 4, host_room: 1 })],
    interactive,
    'shared paid',
  ],
  [
    'batch waits for what is free however many wait',
    [busy('free'), aPaid('paid', 1e-6)],
    aRequest({ priority: 'batch', waiting: 1_000 }),
    'free paid',
  ],
  [
    'batch waits for what costs less than half, while few wait for it',
    [busy('cheap', { cost_type: 'per_call', rate_usd: 0.1 }), aPaid('dear', 0.21)],
    batch,
    'cheap dear',
  ],
  [
    'and not when more wait',
    [busy('cheap', { cost_type: 'per_call', rate_usd: 0.1 }), aPaid('dear', 0.21)],
    aRequest({ priority: 'batch', waiting: 1 }),
    'dear cheap',
  ],
  [
    'no call waits for an instance that is a little faster than an idle one',
    [remote('faster', { held: 1, duration_ms: 3_000 }), remote('idle', { duration_ms: 10_000 })],
    interactive,
    'idle faster',
  ],
  [
    'what succeeded often is no better than what was never called',
    [remote('known', { success_count: 50, duration_ms: 10_000 }), remote('new', { duration_ms: 9_800 })],
    standard,
    'new known',
  ],
  [
    'a half-open instance that may be tried counts as if its breaker was closed',
    [anInstance('open', { breaker_until_ms: now }), remote('up', { duration_ms: 1 })],
    aRequest({ trials: new Set(['open']) }),
    'open up',
  ],
  ['batch stays on the free queue', [aPaid('paid', 1e-9), busy('free', { held: 1 })], batch, 'free paid'],
  [
    'batch does not queue beside an instance that is as cheap and has room',
    [busy('full'), remote('room'), busy('part', { max_concurrency: 4, duration_ms: 10_500 })],
    batch,
    'room part full',
  ],
  [
    'and waits for a much faster one as long as no other call does',
    [remote('full', { held: 1, duration_ms: 2_000 }), remote('slow', { duration_ms: 10_000 })],
    batch,
    'full slow',
  ],
  [
    'but not in a line',
    [remote('full', { held: 1, duration_ms: 2_000 }), remote('slow', { duration_ms: 10_000 })],
    aRequest({ priority: 'batch', waiting: 1 }),
    'slow full',
  ],
  [
    'within 1 % of the least score the shorter wait is better',
    [aPaid('slower', 0.1, { duration_ms: 2_000 }), aPaid('sooner', 0.100_5, { duration_ms: 1_000 })],
    batch,
    'sooner slower',
  ],
  [
    'and beyond it the score',
    [aPaid('slower', 0.1, { duration_ms: 2_000 }), aPaid('sooner', 0.101_1, { duration_ms: 1_000 })],
    batch,
    'slower sooner',
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
    'an instance with a half-open breaker even more so',
    [anInstance('open', { breaker_until_ms: now }), anInstance('suspect', { state: 'suspect' })],
    batch,
    'suspect open',
  ],
  [
    'what has failed this call comes after whatever can take it, full, suspect, half-open or dear',
    [
      anInstance('failed'),
      aPaid('dear', 1_000),
      busy('full'),
      anInstance('suspect', { state: 'suspect' }),
      anInstance('open', { breaker_until_ms: now }),
    ],
    aRequest({ failedBefore: new Map([['failed', 0]]), priority: 'batch' }),
    'full dear suspect open failed',
  ],
  [
    'and what has failed it more often after what has failed it less often',
    [anInstance('twice'), anInstance('once', { state: 'suspect' }), anInstance('refused', { held: 1 })],
    aRequest({
      failedBefore: new Map([
        ['twice', 2],
        ['once', 1],
        ['refused', 0],
      ]),
    }),
    'refused once twice',
  ],
  [
    'an instance that is known to be busy is not chosen as idle',
    [anInstance('seems'), anInstance('idle', { duration_ms: 90_000 })],
    aRequest({ busy: new Map([['seems', 1]]) }),
    'idle seems',
  ],
  [
    'an instance that often fails counts as more expensive',
    [aPaid('flaky', 0.1, { success_count: 41, failure_count: 49 }), aPaid('sound', 0.15)],
    batch,
    'sound flaky',
  ],
  [
    'an instance without a call of its own takes as long as is assumed',
    [
      remote('slow', { duration_ms: 9_000 }),
      remote('new', { duration_ms: null }),
      remote('fast', { duration_ms: 2_000 }),
    ],
    aRequest({ priorMs: 4_000 }),
    'fast new slow',
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

function perSecond(rate_usd: number, instance: Partial<InstanceSnapshot> = {}): Partial<InstanceSnapshot> {
  return {
    cost_type: 'per_second',
    rate_usd,
    ...instance,
  };
}
function perCall(rate_usd: number): Partial<InstanceSnapshot> {
  return { cost_type: 'per_call', rate_usd };
}

const excluded: [verdict: string, Partial<InstanceSnapshot>, Partial<RouteRequest>][] = [
  ['draining', { state: 'deregistered' }, {}],
  ['draining', { state: 'draining' }, {}],
  ['down', { state: 'down' }, {}],
  ['quarantined', { state: 'quarantined' }, {}],
  ['wrong_version', {}, { versionRange: '^2.0.0' }],
  ['tag_mismatch', { tags: ['local', 'gpu'] }, { tags: ['gpu', 'eu'] }],
  ['secret_not_allowed', {}, { mayReceive: () => false }],
  ['already_tried', {}, ruling('already_tried', 'a')],
  ['input_invalid', {}, ruling('input_invalid', 'a')],
  ['lost_claim', {}, ruling('lost_claim', 'a')],
  ['over_ceiling', perCall(0.5), { ceilingUsd: 0.49 }],
  ['over_ceiling', perSecond(0.05, { deviation_ms: 10 }), { ceilingUsd: 0.5 }],
  // A millisecond is the least that it can be allowed.
  ['over_ceiling', perSecond(10, { duration_ms: 0 }), { ceilingUsd: 0.009 }],
  ['over_budget', perCall(0.5), { headroomUsd: 0.49 }],
  ['over_budget', perSecond(0.01), { headroomUsd: 2.999 }],
  ['breaker_open', { breaker_until_ms: now + 1 }, {}],
  ['down', { state: 'down', version: '9.0.0' }, { versionRange: '^1', ...ruling('already_tried', 'a') }],
  ['over_ceiling', { ...perCall(1), breaker_until_ms: now + 1 }, { ceilingUsd: 0.5, headroomUsd: 0.5 }],
];

const included: [rule: string, Partial<InstanceSnapshot>, Partial<RouteRequest>][] = [
  ['that carries more tags than asked for', { tags: ['gpu', 'eu', 'x'] }, { tags: ['eu', 'gpu'] }],
  ['that costs exactly the ceiling', perCall(0.5), { ceilingUsd: 0.5 }],
  ['that is free, under a ceiling of 0', {}, { ceilingUsd: 0 }],
  ['that is free, when the budget is overdrawn', {}, { headroomUsd: -1 }],
  ['at a rate of 0, when the budget is gone', perSecond(0), { headroomUsd: 0, ceilingUsd: 0 }],
  ['that can reserve exactly what is left', perSecond(0.01), { headroomUsd: 3 }],
  ['that three tenths are enough for', perSecond(0.1), { timeoutMs: 3_000, headroomUsd: 0.3 }],
  ['that reserves no more than the ceiling', perSecond(0.01), { ceilingUsd: 0.2, headroomUsd: 0.2 }],
  ['that others have tried', {}, ruling('already_tried', 'b')],
  ['that is suspect', { state: 'suspect' }, {}],
  ['that is full', { held: 5 }, {}],
  ['whose breaker is due for a trial', { breaker_until_ms: now }, {}],
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

  it('gives the cost and wait of a call, and counts possible and full instances', () => {
    const full = busy('free', {
      max_concurrency: 2,
      held: 3,
      reported_extra: 2,
      success_count: 10,
      failure_count: 0,
    });
    const best = {
      instance: full,
      tier: 1,
      place: 1,
      costUsd: 0,
      waitMs: 30_000,
      countedMs: 60_000,
      score: (0.3 / 0.9) * 2,
      isFull: true,
      isTranslated: false,
    };
    expect(choose([full], interactive, 1)).toEqual({
      best,
      shown: [best],
      possible: 1,
      full: 1,
      excluded: [],
      verdicts: new Map(),
      minimumUsd: null,
      reopensAtMs: null,
    });
  });

  it.each(excluded)('leaves out as %s: %j for %j', (verdict, instance, request) => {
    const one = anInstance('a', instance);
    expect(choose([one], aRequest(request), 1)).toMatchObject({
      best: null,
      shown: [],
      possible: 0,
      full: 0,
      excluded: [{ instance: one, verdict }],
      verdicts: new Map([[verdict, 1]]),
    });
  });

  it('counts what it leaves out, with the least price that would do and the first breaker to close', () => {
    const fleet = [
      ...Array.from({ length: 30 }, (_, at) =>
        anInstance(`down${at}`, { state: 'down', breaker_until_ms: now + 1 }),
      ),
      ...[aPaid('dear', 3), aPaid('less', 2), aPaid('cheap', 0.5)],
      ...[3, 2].map((after) => anInstance(`open${after}`, { breaker_until_ms: now + after })),
    ];
    const { excluded, verdicts, minimumUsd, reopensAtMs } = choose(
      fleet,
      aRequest({ ceilingUsd: 2.5, headroomUsd: 0.1, ...ruling('already_tried', 'cheap') }),
      1,
    );
    expect({ excluded: excluded.map(idOf), verdicts, minimumUsd, reopensAtMs }).toEqual({
      excluded: fleet.slice(0, 20).map(({ instance_id }) => instance_id),
      verdicts: new Map([
        ...([['down', 30]] as const),
        ...([
          ['over_ceiling', 1],
          ['over_budget', 1],
        ] as const),
        ...([
          ['already_tried', 1],
          ['breaker_open', 2],
        ] as const),
      ]),
      minimumUsd: 2,
      reopensAtMs: now + 2,
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
    const draw = () => Array.from({ length: 600 }, (_, seed) => choose(instances, standard, seed).best);
    const winners = draw().map((best) => best?.instance.instance_id);
    for (const id of ids) expect(winners.filter((one) => one === id).length).toBeGreaterThan(150);
    expect(draw().map((best) => best?.instance.instance_id)).toEqual(winners);
  });

  it('lets the least number of seed and id win among equals, and the least id where two have the same', () => {
    const ids = ['one', 'two', 'three', 'four', 'b-12345678', 'a-12345678'];
    const numbers = new Set<string>();
    for (let seed = 0; seed < 40; seed++) {
      const [least] = ids.toSorted((a, b) => tieHash(seed, a) - tieHash(seed, b) || (a < b ? -1 : 1));
      for (const fleet of [ids, ids.toReversed()]) {
        expect(
          choose(
            fleet.map((id) => remote(id)),
            standard,
            seed,
          ).best?.instance.instance_id,
        ).toBe(least);
      }
      numbers.add(String(least));
    }
    expect([...numbers]).toContain('a-12345678');
  });

  it('ties with the least score alone, not with one that is tied with it', () => {
    const fleet = [
      aPaid('middle', 0.1),
      aPaid('dear', 0.100_9, { duration_ms: 100 }),
      aPaid('cheap', 0.099_5),
    ];
    for (const known of [fleet, fleet.toReversed()]) {
      for (let seed = 0; seed < 10; seed++) expect(orderOf(known, batch, seed)).toMatch(/^(middle|cheap) /);
    }
  });

  it('gives the lowest price limit: for the expected time, or for the longest call', () => {
    const one = anInstance('a', perSecond(0.05, { deviation_ms: 10 }));
    expect(choose([one], aRequest({ ceilingUsd: 0.5 }), 1).minimumUsd).toBeCloseTo(0.5008, 12);
    const short = aRequest({ headroomUsd: 0.04, timeoutMs: 1_000 });
    expect(choose([one], short, 1).minimumUsd).toBe(0.05);
  });

  it('shows equal instances by their ids, behind the winner', () => {
    const fleet = ['d', 'b', 'a', 'c'].map((id) => remote(id));
    for (let seed = 0; seed < 10; seed++) {
      const [winner, ...others] = orderOf(fleet, standard, seed).split(' ');
      expect(others).toEqual(['a', 'b', 'c', 'd'].filter((id) => id !== winner));
    }
  });

  it('shows the instance with the least wait of a tie, also where 20 others cost less', () => {
    const slow = Array.from({ length: 20 }, (_, at) =>
      aPaid(`slow${at}`, 0.1 + at / 1e6, { duration_ms: 9_000 }),
    );
    const soon = ['soon2', 'soon1', 'soon3'].map((id) => aPaid(id, 0.100_5));
    const winners = new Set<string>();
    for (let seed = 0; seed < 10; seed++) {
      for (const fleet of [[...slow, ...soon], [...soon, ...slow].toReversed()]) {
        const shown = choose(fleet, batch, seed).shown.map(idOf);
        const [winner] = shown as [string];
        winners.add(winner);
        const kept = slow.slice(0, winner === 'soon1' ? 19 : 18).map(({ instance_id }) => instance_id);
        expect(shown).toEqual([winner, ...kept, ...(winner === 'soon1' ? [] : ['soon1'])]);
      }
    }
    expect([...winners].toSorted()).toEqual(['soon1', 'soon2', 'soon3']);
  });
});

function shuffled(fleets: fc.Arbitrary<InstanceSnapshot[]>) {
  return fleets.chain((fleet) =>
    fc.tuple(fc.constant(fleet), fc.shuffledSubarray(fleet, { minLength: fleet.length })),
  );
}
const fleets = fc.oneof(anyFleet, alikeFleet);

describe('the choice', () => {
  it('does not depend on the order in which instances are known', () => {
    fc.assert(
      fc.property(shuffled(fleets), anyRequest, fc.integer(), ([fleet, other], request, seed) => {
        const { best, shown } = choose(fleet, request, seed);
        expect(choose(other, request, seed)).toMatchObject({ best, shown });
      }),
    );
  });

  it('counts every instance once, shows at most 20, and the best first; the others by place and score', () => {
    fc.assert(
      fc.property(fleets, anyRequest, fc.integer(), (fleet, request, seed) => {
        const { best, shown, possible, full, excluded, verdicts } = choose(fleet, request, seed);
        const out = [...verdicts.values()].reduce((sum, count) => sum + count, 0);
        expect(possible + out).toBe(fleet.length);
        expect(full).toBeLessThanOrEqual(possible);
        expect([shown.length, excluded.length]).toEqual([Math.min(20, possible), Math.min(20, out)]);
        expect(new Set([...shown, ...excluded].map(idOf)).size).toBe(shown.length + excluded.length);
        expect(shown[0] ?? null).toBe(best);
        for (const [at, next] of shown.slice(2).entries()) {
          const { place, score } = shown[at + 1] as (typeof shown)[number];
          expect(place < next.place || (place === next.place && score <= next.score)).toBe(true);
        }
      }),
    );
  });

  it('is within 1 % of the least score of the best place', () => {
    fc.assert(
      fc.property(fleets, anyRequest, fc.integer(), (fleet, request, seed) => {
        const alone = fleet.flatMap((one) => choose([one], request, seed).best ?? []);
        const place = Math.min(...alone.map((one) => one.place));
        const score = Math.min(...alone.filter((one) => one.place === place).map((one) => one.score));
        const { best } = choose(fleet, request, seed);
        expect(best?.place ?? Number.POSITIVE_INFINITY).toBe(place);
        expect(best?.score ?? 0).toBeLessThanOrEqual(score * 1.01);
      }),
    );
  });

  it('stays when a worse instance comes', () => {
    const worse: Partial<InstanceSnapshot>[] = [
      { state: 'suspect', breaker_until_ms: now - 5 },
      { failure_count: 20, duration_ms: 60_000, is_local: false },
    ];
    fc.assert(
      fc.property(
        fleets,
        anyRequest,
        fc.integer(),
        fc.constantFrom(...worse),
        (fleet, request, seed, how) => {
          const { best } = choose(fleet, request, seed);
          fc.pre(best !== null && best.place < 2);
          const other = { ...best.instance, ...how, instance_id: 'ins_worse' };
          const held = request.busy.get(best.instance.instance_id) ?? 0; // else a free slot would be better
          const busy = new Map(request.busy).set(other.instance_id, held);
          expect(choose([...fleet, other], { ...request, busy }, seed).best).toEqual(best);
        },
      ),
    );
  });

  it('R6: has failed this call only when all that can take it have, and none of them less often', () => {
    const counts = fc.array(fc.option(fc.nat(3), { nil: null }), { minLength: 60, maxLength: 60 });
    fc.assert(
      fc.property(fleets, anyRequest, counts, fc.integer(), (fleet, wish, failures, seed) => {
        const failedBefore = new Map(failures.flatMap((n, at) => (n === null ? [] : [[`ins_${at}`, n]])));
        const request = { ...wish, failedBefore };
        const failuresOf = ({ instance_id }: InstanceSnapshot): number => failedBefore.get(instance_id) ?? -1;
        const { best } = choose(fleet, request, seed);
        const possible = fleet.filter((one) => choose([one], request, seed).best !== null);
        const fewest = Math.min(...possible.map(failuresOf));
        expect(best === null ? Number.POSITIVE_INFINITY : failuresOf(best.instance)).toBe(fewest);
      }),
    );
  });

  it('is a free, local and idle instance whenever one is possible', () => {
    fc.assert(
      fc.property(anyFleet, anyRequest, fc.integer(), (fleet, request, seed) => {
        const idle = anInstance('ins_idle', {
          version: '1.0.0',
          tags: ['gpu'],
          protocols: ['openai.chat', 'anthropic.messages'],
          duration_ms: 1e9,
        });
        const { best } = choose([...fleet, idle], request, seed);
        expect([best?.tier, best?.costUsd, best?.isFull]).toEqual([0, 0, false]);
      }),
    );
  });
});
