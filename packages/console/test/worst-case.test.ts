import type { Instance } from '@capstan/core/contracts/capability';
import { describe, expect, it } from 'vitest';
import { aPaid, aRequest } from '../../core/test/routing/a-snapshot.ts';
import { chooseWith, winnerOf } from '../src/decision/what-if-model.ts';
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
    prices: {},
    down: new Set<string>(),
    full: new Set<string>(),
  } as const;

  it('changes the cost by the input too', () => {
    expect(winnerOf(chooseWith(known, change))).toBe('http://10.0.0.1/by-input');
    const dearer = { ...change, prices: { 'by-input': 4 } };
    expect(winnerOf(chooseWith(known, dearer))).toBe('http://10.0.0.1/flat');
  });
});
