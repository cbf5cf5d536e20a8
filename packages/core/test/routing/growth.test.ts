/** Calls whose hold grows with them: what is learnt of an instance, and what a choice makes of it. */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { createCostOfInput } from '../../src/money/cost-expressions.ts';
import { addLength, expectCost, holdFor, type Lengths } from '../../src/money/holds.ts';
import { boundsOf, isDeclaring } from '../../src/routing/call-bound.ts';
import { choose } from '../../src/routing/choose.ts';
import {
  admittedCall,
  countAtOnce,
  growingCall,
  holdTerms,
  meteredCall,
  reservedUsd,
  usedUnits,
} from '../../src/routing/estimate.ts';
import { explainChoice } from '../../src/routing/explain.ts';
import type { CallBound, InstanceSnapshot, RouteRequest } from '../../src/routing/types.ts';
import { aPaid, aRequest, now } from './a-snapshot.ts';

/** 40 calls of 100 tokens, 40 of 300. */
const lengths: Lengths = [...Array(40).fill(100), ...Array(40).fill(300)].reduce(addLength, []);
const model = aPaid('model', 0.2, {
  worst_case: '{{ 0.001 + 4096 * 0.000015 }}',
  start_cost: '{{ 0.001 }}',
  token_cost: '{{ 0.000015 }}',
  settle: 'reported',
  stops: true,
  lengths,
});
const timed = aPaid('timed', 0.01, { cost_type: 'per_second', stops: true, lengths });
const worstNano = 62_440_000n;

function boundOf(
  part: Partial<InstanceSnapshot> = {},
  onBudget?: RouteRequest['onBudget'],
  input: JsonObject = {},
) {
  const instance = { ...model, ...part };
  const limits = { ceilingUsd: null, timeoutMs: 60_000 };
  const route = {
    ...limits,
    projectId: 'prj_1',
    versionRange: null,
    tags: [],
    ruledOut: new Map(),
    nowMs: now,
  };
  const asked = onBudget === undefined ? route : { ...route, onBudget };
  return boundsOf({ declaring: [instance] }, createCostOfInput(input), asked)?.get(instance.instance_id);
}

function limitsOf(bound: CallBound | undefined, onBudget: RouteRequest['onBudget'] = 'stop', id = 'model') {
  const bounds = new Map(bound === undefined ? [] : [[id, bound]]);
  return { ceilingUsd: null, timeoutMs: 60_000, bounds, onBudget };
}

describe('the growth of a call', () => {
  const growth = { unit: 'token', startUsd: 0.001, unitUsd: 0.000_015 } as const;
  const terms = holdTerms(growth, worstNano, model);
  const { mean, variance } = expectCost(terms, lengths, 0);

  it('has its price by tokens, and what is expected of it', () => {
    expect(terms).toEqual({ startNano: 1_000_000, unitNano: 15_000, mostNano: 62_440_000, ahead: 94 });
    expect(boundOf({}, 'stop')).toEqual({
      worstUsd: 0.062_44,
      expectedUsd: mean / 1e9,
      growth: { ...growth, expected: { meanUsd: mean / 1e9, deviationUsd: Math.sqrt(variance) / 1e9 } },
    });
    expect(mean).toBeGreaterThan(1_000_000 + 200 * 15_000);
    expect(variance).toBeGreaterThan(0);
  });

  it('counts as the expected cost where its hold grows and nothing else is declared', () => {
    expect(
      [boundOf({}, 'pause'), boundOf({}, 'refuse'), boundOf()].map((bound) => bound?.expectedUsd),
    ).toEqual([mean / 1e9, null, null]);
    expect(boundOf({ expected_cost: '{{ 0.002 }}' }, 'stop')?.expectedUsd).toBe(0.002);
    expect(boundOf({}, 'refuse')?.growth?.expected).toBeDefined();
  });

  it('of a price per second is its time', () => {
    expect(boundOf(timed, 'stop')?.growth).toMatchObject({ unit: 'ms', startUsd: 0, unitUsd: 0.000_01 });
    expect(holdTerms({ unit: 'ms', startUsd: 0, unitUsd: 0.000_01 }, 1n, timed).ahead).toBe(1_000);
  });

  it.each<[string, Partial<InstanceSnapshot>]>([
    ['it does not stop', { stops: false }],
    ['it may not stop', { stops: undefined as never }],
    ['its cost is not reported', { settle: 'computed' }],
    ['it has no price by tokens', { token_cost: null }],
    ['its price by tokens is none for this input', { token_cost: '{{ input.none }}' }],
    ['its start is none for this input', { start_cost: '{{ input.none }}' }],
    ['its worst case is none for this input', { worst_case: '{{ input.none }}' }],
  ])('is none where %s', (_, part) => {
    const bound = boundOf(part, 'stop');
    expect(bound).not.toHaveProperty('growth');
    expect(bound).toMatchObject({ expectedUsd: null });
  });

  it('begins at nothing where no start is declared', () => {
    expect(boundOf({ start_cost: null }, 'stop')?.growth?.startUsd).toBe(0);
  });

  it.each<[string, Partial<InstanceSnapshot>]>([
    ['nothing is learnt', { lengths: null }],
    ['too few calls are', { lengths: [1] }],
    ['its worst case is hardly more', { worst_case: '{{ 0.009 }}' }],
  ])('is not foreseen where %s', (_, part) => {
    expect(boundOf(part, 'stop')?.growth).toEqual(growth);
  });

  it('makes the cost of an instance depend on the input', () => {
    const plain = { worst_case: null, expected_cost: null };
    const declares = [
      { ...model, ...plain },
      { ...timed, ...plain },
      { ...model, ...plain, stops: false },
      { ...model, ...plain, token_cost: null },
      { ...model, ...plain, settle: 'computed' as const },
    ].map(isDeclaring);
    expect(declares).toEqual([true, true, false, false, false]);
  });

  it('of a call in the protocol of its client has the cost of that form, where the instance speaks it', () => {
    const native = { protocol: 'openai.chat', costOf: createCostOfInput({ n: 2 }) };
    const priced = (protocols: readonly string[]) => {
      const instance = aPaid('model', 1, { worst_case: '{{ input.n }}', protocols });
      const route = {
        projectId: null,
        versionRange: null,
        tags: [],
        ruledOut: new Map(),
        nowMs: now,
        native,
      };
      const limits = { ceilingUsd: null, timeoutMs: 60_000 };
      return boundsOf({ declaring: [instance] }, createCostOfInput({ n: 1 }), { ...route, ...limits })?.get(
        'model',
      )?.worstUsd;
    };
    expect([priced(['openai.chat']), priced(['anthropic.messages']), priced([])]).toEqual([2, 1, 1]);
  });
});

describe('a call whose hold grows', () => {
  const bound = boundOf({}, 'stop');
  const [meanUsd, deviationUsd] = [
    bound?.growth?.expected?.meanUsd ?? 0,
    bound?.growth?.expected?.deviationUsd ?? 0,
  ];

  it('is seen on its way, and grows unless its caller or what is learnt forbids that', () => {
    const call = {
      terms: { startNano: 1_000_000, unitNano: 15_000, mostNano: 62_440_000, ahead: 94 },
      lengths,
    };
    expect(growingCall(model, limitsOf(bound))).toEqual(call);
    expect(growingCall(model, limitsOf(bound, 'refuse'))).toBeNull();
    expect(growingCall(model, { ...limitsOf(bound), onBudget: undefined })).toBeNull();
    expect(meteredCall(model, limitsOf(bound, 'refuse'))).toEqual(call);
    const unknown = boundOf({ lengths: null }, 'stop');
    expect(growingCall(model, limitsOf(unknown))).toBeNull();
    expect(meteredCall({ ...model, lengths: null }, limitsOf(unknown))).toMatchObject({ lengths: [] });
    expect(meteredCall(model, limitsOf(undefined))).toBeNull();
  });

  it('needs what it is expected to hold, with three deviations', () => {
    expect(reservedUsd(model, limitsOf(bound), 0)).toBeCloseTo(meanUsd + 3 * deviationUsd, 12);
    expect(reservedUsd(model, limitsOf(bound, 'refuse'), 0)).toBe(0.062_44);
  });

  it('is admitted with its first piece, any other with its reservation and its risk', () => {
    const call = meteredCall(model, limitsOf(bound));
    expect(admittedCall(model, limitsOf(bound), 0)).toEqual({
      firstNano: holdFor(call?.terms as never, { units: 0, heldNano: 0, roomNano: 0 }),
      riskNano: 0,
      expected: { mean: meanUsd * 1e9, variance: (deviationUsd * 1e9) ** 2 },
    });
    expect(admittedCall(model, limitsOf(bound, 'refuse'), 0)).toEqual({
      firstNano: 62_440_000,
      riskNano: 200_000_000 - 62_440_000,
      expected: null,
    });
  });

  it('shares its room with more of its like', () => {
    const count = (onBudget: RouteRequest['onBudget'], roomUsd: number | null, of = model) =>
      countAtOnce(of, limitsOf(bound, onBudget), { costUsd: 0, roomUsd });
    expect([count('refuse', 0.5), count('refuse', 0.062_44), count('refuse', 0.06)]).toEqual([3, 1, 0]);
    expect(count('stop', 0.5)).toBeGreaterThan(50);
    expect([count('stop', null), count('stop', 1, { ...model, rate_usd: 0 })]).toEqual([null, null]);
  });

  it('has used the tokens that its cost shows, or its time', () => {
    const used = (instance: InstanceSnapshot, of: CallBound | undefined, costUsd: number) =>
      usedUnits(instance, limitsOf(of, 'stop', instance.instance_id), { costUsd, durationMs: 7 });
    expect(used(model, bound, 0.002_5)).toBeCloseTo(100, 9);
    expect(used(model, bound, 0.000_5)).toBe(0);
    expect(used(timed, boundOf(timed, 'stop'), 0.5)).toBe(7);
    expect(used(model, undefined, 0.5)).toBeNull();
    expect(
      used(model, { worstUsd: 1, expectedUsd: 1, growth: { unit: 'token', startUsd: 0, unitUsd: 0 } }, 1),
    ).toBeNull();
  });

  it('begins with whole nano-USD, without the error of a double', () => {
    const startOf = (startUsd: number) =>
      holdTerms({ unit: 'token', startUsd, unitUsd: 1 }, 1n, { lengths: null, duration_ms: null }).startNano;
    expect([startOf(0.3), startOf(0.1 + 0.2), startOf(1.5e-9)]).toEqual([300_000_000, 300_000_000, 2]);
  });

  it.each<[string, CallBound | undefined, RouteRequest['onBudget'], string]>([
    [
      'it grows',
      bound,
      'stop',
      `; its hold grows with it, to ${Number(meanUsd.toPrecision(3))} USD as expected`,
    ],
    [
      'it cannot be stopped',
      { worstUsd: 0.01, expectedUsd: null },
      'stop',
      '; that is held, since it cannot be stopped on its way',
    ],
    [
      'too little is learnt',
      boundOf({ lengths: null }, 'stop'),
      'pause',
      '; that is held, since too few of its calls are known',
    ],
    ['its caller wants the worst case held', bound, 'refuse', ' USD'],
  ])('has the reason of a decision: %s', (_, of, onBudget, words) => {
    const request = aRequest(limitsOf(of, onBudget));
    const { reason } = explainChoice(request, choose([model], request, 1), {
      decision_id: 'd',
      chosen: true,
    });
    expect(reason.endsWith(words)).toBe(true);
  });

  it('is not held at all where it is free', () => {
    const request = aRequest({ onBudget: 'stop' });
    const free = { ...model, rate_usd: 0 };
    const { reason } = explainChoice(request, choose([free], request, 1), { decision_id: 'd', chosen: true });
    expect(reason).not.toContain('held');
  });

  it('shows where its price comes from', () => {
    const request = aRequest(limitsOf(bound));
    const shown = (price_source: string | null) =>
      explainChoice(request, choose([{ ...model, price_source } as InstanceSnapshot], request, 1), {
        decision_id: 'd',
        chosen: true,
      }).candidates[0];
    expect(shown('prices of 2026-11-01')).toMatchObject({ price_source: 'prices of 2026-11-01' });
    expect(shown(null)).not.toHaveProperty('price_source');
  });
});
