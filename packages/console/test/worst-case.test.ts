import type { Instance } from '@capstan/core/contracts/capability';
import { describe, expect, it } from 'vitest';
import { aPaid, aRequest } from '../../core/test/routing/a-snapshot.ts';
import { changeNothing, chooseWith, describeWhatIfHold, winnerOf } from '../src/decision/what-if-model.ts';
import { describeOverruns, describePrice } from '../src/fleet/instance-model.ts';

const cost_model = { type: 'per_call', rate_usd: 0.2 } as const;
const at = '2026-11-26T10:00:00.000Z';

function anInstance(over: Partial<Instance>): Instance {
  return { cost_model, ...over } as Instance;
}

describe('an instance with a price by the input', () => {
  it('shows its rate as the most', () => {
    const worst_case = '{{ input.n }}';
    expect(describePrice(anInstance({}))).toBe('$0.20 a call');
    expect(describePrice(anInstance({ cost_model: { ...cost_model, worst_case } }))).toBe(
      'by the input, at most $0.20 a call',
    );
  });

  it('shows its calls that cost more', () => {
    const described = (total: number) => describeOverruns(anInstance({ overruns: { total, last_at: at } }));
    expect(describeOverruns(anInstance({}))).toBeNull();
    expect(described(1)).toBe('1 call cost more than the declared worst case');
    expect(described(4)).toBe('4 calls cost more than the declared worst case');
  });
});

describe('another price in a decision that was made', () => {
  const instances = [aPaid('by-input', 1), aPaid('flat', 0.1)];
  const bounds = new Map([['by-input', { worstUsd: 0.05, expectedUsd: null }]]);
  const known = { instances, request: aRequest({ bounds }), seed: 1 };
  const change = {
    priority: 'standard',
    ceilingUsd: null,
    onBudget: 'refuse',
    roomUsd: null,
    prices: {},
    down: new Set<string>(),
    full: new Set<string>(),
  } as const;

  it('changes the cost by the input too', () => {
    expect(winnerOf(chooseWith(known, change).decision)).toBe('http://10.0.0.1/by-input');
    const dearer = { ...change, prices: { 'by-input': 4 } };
    expect(winnerOf(chooseWith(known, dearer).decision)).toBe('http://10.0.0.1/flat');
  });
});

describe('another fleet in a decision about what is loaded', () => {
  const instances = [aPaid('warm', 0.1, { tags: [] }), aPaid('cold', 0.1, { tags: [] })];
  const found = {
    key: 'sdxl',
    isListed: false,
    warmMs: 1_000,
    loadMs: 9_000,
    pace: 1,
    isLearnt: true,
    leftMs: 0,
  };
  const residency = new Map([
    ['warm', { ...found, isResident: true, usedAtMs: 1 }],
    ['cold', { ...found, isResident: false, usedAtMs: 2 }],
  ]);
  const known = { instances, request: aRequest({ residency }), seed: 1 };

  it('loads it elsewhere when the instance that has it is down', () => {
    expect(winnerOf(chooseWith(known, changeNothing(known)).decision)).toBe('http://10.0.0.1/warm');
    const gone = chooseWith(known, { ...changeNothing(known), down: new Set(['warm']) });
    expect(gone.decision.candidates[0]).toMatchObject({ resident: false, load_ms: 9_000 });
  });

  it('waits for a call of the instance that has it when that is full, or loads it sooner elsewhere', () => {
    const ifFull = (warmMs: number, loadMs: number) => {
      const times = { warmMs, loadMs };
      const slower = new Map([...residency].map(([id, one]) => [id, { ...one, ...times }]));
      const asked = { ...known, request: aRequest({ residency: slower }) };
      return winnerOf(chooseWith(asked, { ...changeNothing(asked), full: new Set(['warm']) }).decision);
    };
    expect(ifFull(1_000, 9_000)).toBe('http://10.0.0.1/warm');
    expect(ifFull(60_000, 30_000)).toBe('http://10.0.0.1/cold');
  });
});

describe('another end of the room in a decision that was made', () => {
  /** 0.001 USD, and 0.000 01 for each token; 150 are expected, 4,096 possible. */
  const bound = {
    worstUsd: 0.042,
    expectedUsd: null,
    growth: {
      unit: 'token',
      startUsd: 0.001,
      unitUsd: 0.000_01,
      expected: { meanUsd: 0.002_5, deviationUsd: 0.000_5 },
    },
  } as const;
  const instances = [aPaid('grows', 1)];
  const request = aRequest({ bounds: new Map([['grows', bound]]), onBudget: 'stop' });
  const known = { instances, request, seed: 1 };
  const change = changeNothing(known);

  it('begins with a first piece, and many fit in the room', () => {
    const { hold } = chooseWith(known, { ...change, roomUsd: 0.1 });
    expect(hold).toEqual({ firstUsd: 0.002_28, meanUsd: 0.002_5, atOnce: 36 });
    expect(hold && describeWhatIfHold(hold)).toBe(
      'It would hold $0.0023, growing to $0.0025 as expected. The room admits 36 such calls at once.',
    );
  });

  it('holds the most that it may cost for a caller that refuses', () => {
    const { hold } = chooseWith(known, { ...change, onBudget: 'refuse', roomUsd: 1 });
    expect(hold).toEqual({ firstUsd: 0.042, meanUsd: null, atOnce: 1 });
  });

  it.each([
    ['refuse', 0.041, null],
    ['stop', 0.041, 'http://10.0.0.1/grows'],
    ['pause', 0.003_9, null],
  ] as const)('on %s with a room of %d USD', (onBudget, roomUsd, endpoint) => {
    expect(winnerOf(chooseWith(known, { ...change, onBudget, roomUsd }).decision)).toBe(endpoint);
  });

  it('costs and holds more at another price', () => {
    const { hold } = chooseWith(known, { ...change, prices: { grows: 2 } });
    expect(hold).toEqual({ firstUsd: 0.004_56, meanUsd: 0.005, atOnce: null });
  });
});
