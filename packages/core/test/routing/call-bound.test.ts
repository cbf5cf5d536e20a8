import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { ClaimSearch } from '../../src/call/claim-search.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { workLimits } from '../../src/expression/meter.ts';
import { createCostOfInput } from '../../src/money/cost-expressions.ts';
import { addLength } from '../../src/money/holds.ts';
import { toNanoUsd } from '../../src/money/nano-usd.ts';
import { boundsOf, isDeclaring } from '../../src/routing/call-bound.ts';
import { choose } from '../../src/routing/choose.ts';
import {
  expectedCost,
  growingCall,
  likelyCost,
  reservationOf,
  worstCaseNano,
  worstCaseUsd,
} from '../../src/routing/estimate.ts';
import { explainChoice } from '../../src/routing/explain.ts';
import { findPriceRange } from '../../src/routing/price-range.ts';
import type { InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance, aPaid, aRequest, now } from './a-snapshot.ts';

const worst_case =
  '{{ (input.messages | tokens) * 0.000003 + (input.max_output_tokens ?? 4096) * 0.000015 }}';
const model = aPaid('model', 0.2, { worst_case, settle: 'reported' });
const route = {
  projectId: 'prj_1',
  versionRange: null,
  tags: [],
  ruledOut: new Map(),
  nowMs: now,
  ceilingUsd: null,
  timeoutMs: 60_000,
} as const;
const ask = (content: string, max_output_tokens?: number): JsonObject => ({
  messages: [{ role: 'user', content }],
  ...(max_output_tokens === undefined ? {} : { max_output_tokens }),
});

function boundsFor(input: JsonObject, ...declaring: InstanceSnapshot[]) {
  return boundsOf({ declaring }, createCostOfInput(input), route);
}

function boundOf(input: JsonObject, instance: Partial<InstanceSnapshot>) {
  return boundsFor(input, { ...model, ...instance })?.get('model');
}

describe('the cost of an input', () => {
  it.each<[text: string, input: JsonObject, usd: number]>([
    [worst_case, ask('x'.repeat(40), 10), 0.000_366],
    [worst_case, ask('x'), 0.061_539],
    ['{{ input.n }}', { n: 0 }, 1e-9],
    ['{{ 0.01 }}', {}, 0.01],
  ])('of %s is an amount', (text, input, usd) => {
    expect(createCostOfInput(input)(text)).toBeCloseTo(usd, 12);
  });

  it.each<[text: string, input: JsonObject, fault: string]>([
    ['{{ input.n }}', { n: '1' }, 'it is no number'],
    ['{{ input.n }}', { n: -1 }, 'it is below 0'],
    ['{{ input.n }}', {}, 'input.n does not exist: input is an object without keys'],
    ['{{ 1 / input.n }}', { n: 0 }, 'a number is divided by 0'],
    ['{{ input.n * 1e308 }}', { n: 1e9 }, 'the result of * is too large for a number'],
    ['{{ input.n |', { n: 1 }, '{{ is never closed: expected the name of a filter after |'],
  ])('of %s is a fault', (text, input, fault) => {
    expect(createCostOfInput(input)(text)).toEqual({ fault });
    expect(boundOf(input, { worst_case: text })).toEqual({ worstUsd: null, expectedUsd: null, fault });
  });

  it('stays within the work limit of the language', () => {
    const input = { messages: Array.from({ length: 20 }, () => 'x'.repeat(1_000_000)) };
    expect(createCostOfInput(input)('{{ input | tokens }}')).toEqual({
      fault: `it takes more than ${workLimits.price} units of work for this input`,
    });
  });

  it('counts for those that the route leaves in alone', () => {
    const priced = (id: string, over: Partial<InstanceSnapshot> = {}) =>
      aPaid(id, 1, { worst_case: `{{ 0.${id.length} }}`, ...over });
    const declaring = [
      priced('up'),
      priced('down', { state: 'down' }),
      priced('quarantined', { state: 'quarantined' }),
      priced('draining', { state: 'draining' }),
      priced('unvetted', { spec_digest: null }),
      priced('old', { version: '0.9.0' }),
      priced('tagless', { tags: [] }),
      priced('ruled out'),
    ];
    const texts: string[] = [];
    const costOf = (text: string) => {
      texts.push(text);
      return 0.5;
    };
    const ruledOut = new Map([['ruled out', 'already_tried']] as const);
    const bounds = boundsOf({ declaring }, costOf, {
      ...route,
      versionRange: '^1.0.0',
      tags: ['cloud'],
      ruledOut,
    });
    expect([[...(bounds?.keys() ?? [])], texts]).toEqual([['up'], ['{{ 0.2 }}']]);
  });

  it('draws with all others of a choice on one meter, and names the limit that it passed', () => {
    const input = { text: 'x'.repeat(workLimits.price * 3) };
    const notes: number[] = [];
    const costOf = createCostOfInput(input, { note: (units) => notes.push(units) });
    const price = (at: number) => costOf(`{{ ${at} + (input.text | tokens) * 0 + 1 }}`);
    const prices = Array.from({ length: 20 }, (_, at) => price(at));
    expect(notes).toHaveLength(prices.length);
    const counted = prices.filter((one) => typeof one === 'number').length;
    expect(counted).toBeGreaterThan(1);
    expect(prices.slice(counted)).toEqual(
      prices.slice(counted).map(() => ({ fault: 'the prices of this choice take too much work together' })),
    );
    expect(notes.reduce((sum, units) => sum + Math.min(units, workLimits.price), 0)).toBeLessThanOrEqual(
      2 * workLimits.choice,
    );
    expect(price(0)).toBe(1);
  });

  it('has as many decimals as a rate, so that no error of a double is reserved', () => {
    expect(createCostOfInput({})('{{ 1.0000000000004 }}')).toBe(1);
    expect(createCostOfInput({})('{{ 0.1 + 0.2 }}')).toBe(0.3);
  });

  it('of a text that was never seen before is found, and of one that is none, the fault', () => {
    const text = `{{ ${Math.random()} * 0 + 2 }}`;
    expect([createCostOfInput({})(text), createCostOfInput({})(text)]).toEqual([2, 2]);
    expect(createCostOfInput({})(`${Math.random()}`)).toEqual({
      fault: 'it is no number',
    });
  });

  it('of an input that is read late is found when it is asked for', () => {
    let reads = 0;
    const costOf = createCostOfInput(() => {
      reads++;
      return { n: 3 };
    });
    expect([reads, costOf('{{ input.n }}'), reads]).toEqual([0, 3, 1]);
  });

  it('fails with the errors that are not of the language', () => {
    const input = {
      get n(): number {
        throw new RangeError('no n');
      },
    };
    expect(() => createCostOfInput(input)('{{ input.n }}')).toThrow(RangeError);
  });

  it('is evaluated once for a call, however many instances and choices', () => {
    let reads = 0;
    const input = {
      get messages() {
        reads++;
        return 'x';
      },
    };
    const declaring = ['a', 'b', 'c'].map((id) =>
      aPaid(id, 1, { worst_case: '{{ input.messages | tokens }}' }),
    );
    const fleet = { of: () => ({ instances: declaring, priorMs: 1, declaring }), nowMs: () => now };
    const search = new ClaimSearch({
      seed: 1,
      route: aRequest(),
      tried: [],
      costOf: createCostOfInput(input),
    });
    for (let n = 0; n < 3; n++) search.choose(fleet, { waiting: 0 });
    expect(reads).toBe(1);
  });
});

describe('a choice by the input', () => {
  it('takes a small call under a ceiling that the rate exceeds', () => {
    const request = aRequest({ ceilingUsd: 0.05, bounds: boundsFor(ask('x'.repeat(40), 100), model) });
    expect(choose([model], request, 1).best?.instance).toBe(model);
    const large = aRequest({ ceilingUsd: 0.05, bounds: boundsFor(ask('x', 10_000), model) });
    const refused = choose([model], large, 1);
    expect([refused.best, refused.verdicts.get('over_ceiling')]).toEqual([null, 1]);
    expect(refused.minimumUsd).toBeCloseTo(0.150_099, 9);
    expect(choose([model], aRequest({ ceilingUsd: 0.05 }), 1).best).toBeNull();
  });

  it('refuses none for its price before it is vetted: until then no price by the input is reckoned', () => {
    const unvetted = { ...model, spec_digest: null };
    const { best, verdicts } = choose([unvetted], aRequest({ ceilingUsd: 0.05 }), 1);
    expect([best?.instance, verdicts.get('over_ceiling')]).toEqual([unvetted, undefined]);
  });

  it('takes the cheaper of two for this input', () => {
    const short = aPaid('short', 1, { worst_case: '{{ (input | tokens) * 0.001 }}' });
    const flat = aPaid('flat', 0.1);
    const chosen = (text: string) =>
      choose([short, flat], aRequest({ bounds: boundsFor({ text }, short) }), 1).best?.instance.instance_id;
    expect([chosen('x'), chosen('x'.repeat(1_000))]).toEqual(['short', 'flat']);
  });

  it('explains the bound, and the fault that makes the rate hold', () => {
    const explainWith = (input: JsonObject, ceilingUsd: number | null) => {
      const request = aRequest({ bounds: boundsFor(input, model), ceilingUsd });
      const { reason, candidates } = explainChoice(request, choose([model], request, 1), {
        decision_id: 'd',
        chosen: true,
      });
      return [reason, candidates[0]?.worst_case_usd, candidates[0]?.worst_case_fault];
    };
    const known = aRequest({ bounds: boundsFor(ask('x'), model) });
    const [shown] = explainChoice(known, choose([model], known, 1), {
      decision_id: 'd',
      chosen: true,
    }).candidates;
    expect(shown).not.toHaveProperty('worst_case_fault');
    expect(explainWith(ask('x', 1_000), null)).toEqual([
      'http://10.0.0.1/model has the best price and time (about 0.0151 USD, done in about 1.0 s); this input costs at most 0.0151 USD',
      0.015_099,
      undefined,
    ]);
    const fault = 'input.messages does not exist: input is an object without keys';
    expect(explainWith({}, null)).toEqual([
      `http://10.0.0.1/model has the best price and time (about 0.2 USD, done in about 1.0 s); its price by the rate is reserved, since its worst case does not count: ${fault}`,
      0.2,
      fault,
    ]);
    expect(explainWith({}, 0.1).slice(1)).toEqual([0.2, fault]);
  });

  it('reserves the rate again after three overruns of the same project, until their time is over', () => {
    const often = [now - 1, now - 2, now - 3];
    expect(boundOf(ask('x'), { overran: { [route.projectId]: often } })).toMatchObject({
      worstUsd: null,
      fault: expect.stringContaining('three'),
    });
    const others = { prj_other: often, [route.projectId]: [now - 1, now - 2, null] };
    expect(boundOf(ask('x'), { overran: others })).not.toHaveProperty('fault');
    expect(boundOf(ask('x'), { overran: { [route.projectId]: [] } })).not.toHaveProperty('fault');
  });
});

describe('the expected cost', () => {
  const expected = (instance: Partial<InstanceSnapshot>, input = ask('x', 100)) => {
    const one = { ...model, ...instance };
    const request = aRequest({ bounds: boundsFor(input, one) });
    const costUsd = expectedCost(one, request);
    expect(likelyCost(one, request, costUsd)).toBe(costUsd);
    return costUsd;
  };

  it('is the declared one, else the mean of what was reported, else the worst case', () => {
    expect(expected({ expected_cost: '{{ 0.0001 }}', mean_cost_usd: 0.0002 })).toBe(0.0001);
    expect(expected({ mean_cost_usd: 0.0002 })).toBe(0.0002);
    expect(expected({ settle: 'computed', mean_cost_usd: 0.0002 })).toBeCloseTo(0.001_599, 12);
    expect(expected({ expected_cost: '{{ input.none }}' })).toBeCloseTo(0.001_599, 12);
  });

  it('of a price per second may exceed the rate of one second', () => {
    const slow = { cost_type: 'per_second', rate_usd: 0.001, worst_case: null } as const;
    expect(expected({ ...slow, expected_cost: '{{ 0.05 }}' })).toBe(0.05);
  });

  it('evaluates the declared texts only', () => {
    const texts: string[] = [];
    const costOf = (text: string) => {
      texts.push(text);
      return 0.5;
    };
    const declaring = [
      aPaid('worst', 1, { worst_case: 'w' }),
      aPaid('expected', 1, { expected_cost: 'e', worst_case: null }),
      aPaid('none', 1, { worst_case: null, expected_cost: null }),
    ];
    expect([...(boundsOf({ declaring }, costOf, route) ?? [])]).toEqual([
      ['worst', { worstUsd: 0.5, expectedUsd: null }],
      ['expected', { worstUsd: null, expectedUsd: 0.5 }],
      ['none', { worstUsd: null, expectedUsd: null }],
    ]);
    expect(texts).toEqual(['w', 'e']);
  });

  it('is the worst case at most, and the rate at most', () => {
    expect(expected({ expected_cost: '{{ 0.1 }}' })).toBeCloseTo(0.001_599, 12);
    expect(expected({ worst_case: null, expected_cost: '{{ 5 }}' })).toBe(0.2);
    expect(expected({ worst_case: '{{ 5 }}', mean_cost_usd: 3 })).toBe(0.2);
  });

  it('of a plan lies between 0 and the worst case, for an instance that reports', () => {
    const request = aRequest({ bounds: boundsFor(ask('x', 100), model) });
    const range = findPriceRange([{ ...model, mean_cost_usd: 0.0002 }], request);
    expect(range).toMatchObject({ leastUsd: 0, mostNano: 1_599_000n });
  });
});

describe('the reservation', () => {
  const usd = fc.double({ min: 1e-9, max: 100, noNaN: true });
  const price = fc.record({
    cost_type: fc.constantFrom('per_call' as const, 'per_second' as const),
    rate_usd: usd,
  });

  it('is the lower of worst case and declared price, and both forms agree', () => {
    fc.assert(
      fc.property(price, usd, fc.integer({ min: 1, max: 1_000_000 }), (own, worstUsd, timeoutMs) => {
        const instance = anInstance('a', own);
        const bounds = new Map([['a', { worstUsd, expectedUsd: null }]]);
        const limits = { ceilingUsd: null, timeoutMs, bounds };
        const nano = worstCaseNano(instance, limits);
        const declared = worstCaseNano(instance, { ...limits, bounds: undefined });
        const wanted = toNanoUsd(worstUsd);
        expect(nano).toBe(wanted < declared ? wanted : declared);
        expect(reservationOf(instance, limits, 0)).toEqual({ reserved: nano, risk: declared - nano });
        expect(Math.abs(worstCaseUsd(instance, limits) * 1e9 - Number(nano))).toBeLessThanOrEqual(
          1 + Number(nano) * 1e-12,
        );
      }),
      { numRuns: runs(300) },
    );
  });

  it('that grows has half a second of tokens ahead of a quick model, and 64 of any other', () => {
    const lengths = Array(40).fill(300).reduce(addLength, []);
    const growth = {
      unit: 'token',
      startUsd: 0,
      unitUsd: 0.000_015,
      expected: { meanUsd: 0.01, deviationUsd: 0 },
    } as const;
    const aheadOf = (duration_ms: number | null): number | undefined => {
      const bounds = new Map([['model', { worstUsd: 0.06, expectedUsd: null, growth }]]);
      return growingCall(
        { ...model, lengths, duration_ms },
        { ceilingUsd: null, timeoutMs: 60_000, onBudget: 'stop', bounds },
      )?.terms.ahead;
    };
    expect([aheadOf(null), aheadOf(10_000)]).toEqual([64, 64]);
    expect(aheadOf(2_000)).toBeGreaterThan(64);
    expect(aheadOf(1_000)).toBeGreaterThan(120);
    expect(aheadOf(1)).toBe(256);
  });

  it('is that of the rate where an instance declares nothing', () => {
    const plain = aPaid('plain', 0.2);
    expect([isDeclaring(plain), isDeclaring(model), isDeclaring({ ...model, rate_usd: 0 })]).toEqual([
      false,
      true,
      false,
    ]);
    const request = aRequest({ bounds: boundsFor(ask('x'), model) });
    expect(worstCaseNano(plain, request)).toBe(200_000_000n);
    expect(expectedCost(plain, request)).toBe(0.2);
    expect(boundsOf({}, createCostOfInput({}), route)).toBeUndefined();
    expect(boundsOf({ declaring: [model] }, null, route)).toBeUndefined();
  });
});
