import { describe, expect, it } from 'vitest';
import { choose } from '../../src/routing/choose.ts';
import { explainChoice } from '../../src/routing/explain.ts';
import type { InstanceSnapshot, RouteRequest } from '../../src/routing/types.ts';
import { anInstance, aPaid, aRequest, now } from './a-snapshot.ts';

interface Story {
  readonly fleet: readonly InstanceSnapshot[];
  readonly request?: RouteRequest;
  /** Whether the best took the call. */
  readonly chosen?: boolean;
}

function explain({ fleet, request = aRequest(), chosen = true }: Story) {
  return explainChoice(request, choose(fleet, request, 1), { decision_id: 'dec_1', chosen });
}

const full = anInstance('full', { held: 1 });
const paid = aPaid('paid', 0.123_456);
const gone = anInstance('gone', { state: 'down' });
function at(id: string): string {
  return `http://10.0.0.1/${id}`;
}

function aKey(length: number): RouteRequest {
  const times = { warmMs: 10_000, loadMs: 0, leftMs: 0, pace: 1, usedAtMs: null };
  const found = { key: 'k'.repeat(length), isResident: true, isListed: false, isLearnt: true, ...times };
  return aRequest({ residency: new Map([['a', found]]) });
}

const reasons: [rule: string, Story, reason: string][] = [
  ['the preferred instance', { fleet: [anInstance('a')] }, `${at('a')} is free, local and idle`],
  [
    'the only one',
    { fleet: [paid] },
    `${at('paid')} has the best price and time (about 0.123 USD, done in about 1.0 s)`,
  ],
  [
    'a key that is loaded',
    { fleet: [anInstance('a')], request: aKey(40) },
    `${at('a')} is free, local and idle; ${'k'.repeat(40)} is loaded there`,
  ],
  [
    'a long key, which is shortened',
    { fleet: [anInstance('a')], request: aKey(41) },
    `${at('a')} is free, local and idle; ${'k'.repeat(40)}… is loaded there`,
  ],
  [
    'one that is better than the next',
    { fleet: [full, paid] },
    `${at('full')} has the best price and time (free, done in about 20 s), ` +
      `before ${at('paid')} (about 0.123 USD, done in about 1.0 s)`,
  ],
  [
    'one of two that are equal',
    { fleet: [aPaid('a', 0.02), aPaid('b', 0.02, { duration_ms: 1_009 })] },
    `${at('b')} has the best price and time (about 0.02 USD, done in about 1.0 s), equal to those of ${at('a')}`,
  ],
  [
    'one that is a little faster than another of the same price',
    { fleet: [aPaid('a', 0.02), aPaid('b', 0.02, { duration_ms: 1_020 })] },
    `${at('a')} has the best price and time (about 0.02 USD, done in about 1.0 s), ` +
      `before ${at('b')} (about 0.02 USD, done in about 1.0 s)`,
  ],
  [
    'one that is free, before a faster one with a line',
    {
      fleet: [anInstance('a', { held: 1 }), aPaid('slow', 0, { duration_ms: 30_000 })],
      request: aRequest({ priority: 'batch', waiting: 1 }),
    },
    `${at('slow')} has the best price and time (free, done in about 30 s), ` +
      `before ${at('a')} (free, done in about 20 s), which is full`,
  ],
  [
    'an instance on a full host, where all are full',
    { fleet: [anInstance('a', { host: 'gpu-1', host_calls: 1, host_room: 0 })], chosen: false },
    `the only possible instance of upscale is full; ${at('a')} is waited for (free, done in about 20 s): ` +
      'its host gpu-1 is full',
  ],
  [
    'a full instance on a full host',
    { fleet: [anInstance('a', { held: 1, host: 'gpu-1', host_calls: 1, host_room: 0 })], chosen: false },
    `the only possible instance of upscale is full; ${at('a')} is waited for (free, done in about 20 s)`,
  ],
  [
    'an instance on a full host that is better than the next',
    { fleet: [anInstance('a', { host: 'gpu-1', host_calls: 2, host_room: 0 }), paid], chosen: false },
    `${at('a')} is full, and waiting for it (free, done in about 20 s) is better than ` +
      `${at('paid')} (about 0.123 USD, done in about 1.0 s): its host gpu-1 is full`,
  ],
  [
    'a suspect one',
    { fleet: [anInstance('a', { state: 'suspect' })] },
    `${at('a')} is the last resort (free, done in about 10 s): its heartbeat is late, and no other can take the call`,
  ],
  [
    'an instance that is up, before one with a late heartbeat',
    { fleet: [paid, anInstance('a', { state: 'suspect' })] },
    `${at('paid')} is the first choice (about 0.123 USD, done in about 1.0 s): ` +
      `${at('a')} (free, done in about 10 s) has a late heartbeat`,
  ],
  [
    'an instance that is up, before one with a breaker that has opened again',
    { fleet: [paid, anInstance('a', { breaker_until_ms: now })] },
    `${at('paid')} is the first choice (about 0.123 USD, done in about 1.0 s): ` +
      `${at('a')} (free, done in about 10 s) failed too often a moment ago`,
  ],
  [
    'one that has not failed this call',
    { fleet: [paid, anInstance('a')], request: aRequest({ failedBefore: new Map([['a', 1]]) }) },
    `${at('paid')} is the first choice (about 0.123 USD, done in about 1.0 s): ` +
      `${at('a')} (free, done in about 10 s) has already failed this call`,
  ],
  [
    'a full one, before one that has failed this call',
    {
      fleet: [full, anInstance('a')],
      request: aRequest({ failedBefore: new Map([['a', 1]]) }),
      chosen: false,
    },
    `${at('full')} is full and waited for (free, done in about 20 s): ` +
      `${at('a')} (free, done in about 10 s) has already failed this call`,
  ],
  [
    'one that has failed this call, when there is no other',
    { fleet: [anInstance('a'), gone], request: aRequest({ failedBefore: new Map([['a', 1]]) }) },
    `${at('a')} is tried once more (free, done in about 10 s): ` +
      'it has failed this call, and no other can take it; not possible: 1 down',
  ],
  [
    'a half-open one',
    { fleet: [anInstance('a', { breaker_until_ms: now })] },
    `${at('a')} gets one call (free, done in about 10 s) to see whether it works again: no other can take the call`,
  ],
  [
    'what is not possible',
    {
      fleet: [anInstance('a'), gone, { ...gone, instance_id: 'gone2' }, anInstance('t')],
      request: aRequest({ ruledOut: new Map([['t', 'already_tried']]) }),
    },
    `${at('a')} is free, local and idle; not possible: 2 down, 1 already tried`,
  ],
  [
    'a full one that is better than the next',
    { fleet: [full, paid], chosen: false },
    `${at('full')} is full, and waiting for it (free, done in about 20 s) is better than ` +
      `${at('paid')} (about 0.123 USD, done in about 1.0 s)`,
  ],
  [
    'no instance has room',
    { fleet: [full, { ...paid, held: 1 }], chosen: false },
    `each of 2 possible instances of upscale is full; ${at('full')} is waited for (free, done in about 20 s)`,
  ],
  [
    'the only one has no room',
    { fleet: [full, gone], chosen: false },
    `the only possible instance of upscale is full; ${at('full')} is waited for ` +
      '(free, done in about 20 s); not possible: 1 down',
  ],
  [
    'others wait as well',
    { fleet: [full, gone], request: aRequest({ waiting: 57 }), chosen: false },
    `the only possible instance of upscale is full; ${at('full')} is waited for ` +
      '(free, done in about 20 s); not possible: 1 down; 57 other calls wait in line',
  ],
  [
    'one other waits as well',
    { fleet: [full], request: aRequest({ waiting: 1 }), chosen: false },
    `the only possible instance of upscale is full; ${at('full')} is waited for ` +
      '(free, done in about 20 s); 1 other call waits in line',
  ],
  [
    'another call was faster',
    { fleet: [anInstance('a'), paid], chosen: false },
    `${at('a')} was full: other calls took each slot that became free`,
  ],
  [
    'a call takes minutes',
    { fleet: [anInstance('a', { state: 'suspect', duration_ms: 900_000 })] },
    `${at('a')} is the last resort (free, done in about 15 min): its heartbeat is late, and no other can take the call`,
  ],
  [
    'only one that warms up is left',
    { fleet: [anInstance('a', { state: 'warming' })] },
    `${at('a')} is the last resort (free, done in about 10 s): it is still warming up, and no other can take the call`,
  ],
  [
    'one that warms up comes later',
    { fleet: [paid, anInstance('a', { state: 'warming' })] },
    `${at('paid')} is the first choice (about 0.123 USD, done in about 1.0 s): ${at('a')} (free, done in about 10 s) is still warming up`,
  ],
  ['no instance is possible', { fleet: [gone] }, 'no instance of upscale is possible: 1 down'],
  ['no instance is known', { fleet: [] }, 'no instance of upscale is registered'],
  [
    'everybody is too dear',
    { fleet: [paid, aPaid('dear', 2)], request: aRequest({ ceilingUsd: 0.1 }) },
    'no instance of upscale is possible: 2 over the ceiling; the cheapest needs 0.123 USD, and 0.1 USD is allowed',
  ],
  [
    'a budget is overdrawn',
    { fleet: [paid], request: aRequest({ headroomUsd: -3, ceilingUsd: 1 }) },
    'no instance of upscale is possible: 1 over the budget; the cheapest needs 0.123 USD, and 0 USD is allowed',
  ],
  [
    'the day of all projects, whose figures are hidden, leaves too little',
    { fleet: [paid], request: aRequest({ headroomUsd: 0.05, hidesHeadroom: true, ceilingUsd: 1 }) },
    'no instance of upscale is possible: 1 over the budget; the cheapest needs 0.123 USD, and the day of all projects has less left',
  ],
  [
    'a ceiling is as low as what that day leaves',
    { fleet: [paid], request: aRequest({ headroomUsd: 0.1, hidesHeadroom: true, ceilingUsd: 0.1 }) },
    'no instance of upscale is possible: 1 over the ceiling; the cheapest needs 0.123 USD, and 0.1 USD is allowed',
  ],
  [
    'a ceiling is below what that day leaves',
    { fleet: [paid], request: aRequest({ headroomUsd: 3, hidesHeadroom: true, ceilingUsd: 0.1 }) },
    'no instance of upscale is possible: 1 over the ceiling; the cheapest needs 0.123 USD, and 0.1 USD is allowed',
  ],
  [
    'everybody failed too often',
    { fleet: [4_000, 2_999.5].map((after) => anInstance(`o${after}`, { breaker_until_ms: now + after })) },
    'no instance of upscale is possible: 2 resting after failures; the first that rests is tried again in 3.0 s',
  ],
];

const left = { tier: null, cost_usd: null, wait_ms: null, score: null };

describe('explainChoice', () => {
  it.each(reasons)('gives the reason: %s', (_, story, reason) => {
    expect(explain(story).reason).toBe(reason);
  });

  it.each([
    ['lost_claim', 'changed a moment ago'],
    ['wrong_version', 'of another version'],
    ['tag_mismatch', 'without the tags'],
    ['secret_not_allowed', 'that may not receive the secrets of the step'],
    ['draining', 'draining'],
    ['quarantined', 'quarantined'],
    ['input_invalid', 'that refuse the input'],
  ] as const)('calls an instance with the verdict %s %s', (verdict, words) => {
    const choice = { ...choose([], aRequest(), 1), verdicts: new Map([[verdict, 3]]) };
    const { reason } = explainChoice(aRequest(), choice, { decision_id: 'dec_1', chosen: false });
    expect(reason).toBe(`no instance of upscale is possible: 3 ${words}`);
  });

  it('shows every candidate with its figures, and what was left out with its verdict', () => {
    expect(explain({ fleet: [full, gone, paid] })).toMatchObject({
      decision_id: 'dec_1',
      chosen: at('full'),
      candidates: [
        { endpoint: at('full'), tier: 1, cost_usd: 0, wait_ms: 20_000, score: 0.04 / 0.9, verdict: 'chosen' },
        {
          endpoint: at('paid'),
          tier: 1,
          cost_usd: 0.123_456,
          wait_ms: 1_000,
          score: 0.124_456 / 0.9,
          verdict: 'worse',
        },
        { endpoint: at('gone'), ...left, verdict: 'down' },
      ],
      reserved_usd: 0,
      settled_usd: null,
    });
  });

  it('shows an instance that has failed this call as already tried', () => {
    const request = aRequest({ failedBefore: new Map([['paid', 1]]) });
    const { candidates } = explain({ fleet: [aPaid('paid', 0), full], request });
    expect(candidates.map(({ endpoint, tier, verdict }) => [endpoint, tier, verdict])).toEqual([
      [at('full'), 1, 'chosen'],
      [at('paid'), 1, 'already_tried'],
    ]);
  });

  it('distinguishes the instance that is waited for, and the one that refused the call, from a chosen one', () => {
    const verdicts = [full, anInstance('a')].map((one) => {
      const { chosen, candidates } = explain({ fleet: [one, paid], chosen: false });
      return [chosen, ...candidates.map(({ verdict }) => verdict)];
    });
    expect(verdicts).toEqual([
      [null, 'wait', 'worse'],
      [null, 'lost_claim', 'worse'],
    ]);
  });

  it('shows at most 20, possible ones first', () => {
    const fleet = [
      ...Array.from({ length: 15 }, (_, id) => ({ ...gone, instance_id: `g${id}` })),
      ...Array.from({ length: 15 }, (_, id) => aPaid(`p${id}`, 0.1 + id / 10)),
    ];
    const { candidates } = explain({ fleet });
    expect(candidates.map(({ verdict }) => verdict)).toEqual([
      ...['chosen', ...Array(14).fill('worse')],
      ...Array(5).fill('down'),
    ]);
  });
});

describe('the time that is left', () => {
  const slow = (part: Partial<InstanceSnapshot> = {}) =>
    anInstance('slow', { duration_ms: 10_000, success_count: 2, ...part });

  it('rules out an instance that takes longer, as soon as two of its calls are known', () => {
    const decision = explain({ fleet: [slow()], request: aRequest({ leftMs: 9_000 }) });
    expect(decision.chosen).toBeNull();
    expect(decision.reason).toContain('1 whose calls take longer than the time left');
    expect(decision.reason).toContain('; 9.0 s are left');
  });

  it.each<[string, Partial<InstanceSnapshot>, number | null]>([
    ['as much time is left as it takes', {}, 10_000],
    ['one call alone was seen', { success_count: 1 }, 1],
    ['no limit is known', {}, null],
  ])('rules out none where %s', (_, part, leftMs) => {
    const decision = explain({ fleet: [slow(part)], request: aRequest({ leftMs }) });
    expect(decision.chosen).not.toBeNull();
    expect(decision.reason).not.toContain('left');
  });

  it('is not named where it rules out none', () => {
    const decision = explain({ fleet: [gone], request: aRequest({ leftMs: 5_000 }) });
    expect(decision.reason).not.toContain('are left');
  });
});
