import { describe, expect, it } from 'vitest';
import type { ScopeAndPeriod } from '../../src/contracts/money.ts';
import {
  findExcess,
  isInBatch,
  mostScopedBudgets,
  nameRefusing,
  scopeOfBatch,
  scopesOfCall,
} from '../../src/money/scoped-budget.ts';

const bothPeriods = (scope: string): ScopeAndPeriod[] => [
  { scope, period: 'day' },
  { scope, period: 'month' },
];

describe('the budgets of a project', () => {
  const eight = ['key:k', 'capability:c', 'user:u', 'label:team=ads'].flatMap(bothPeriods);

  it('may match one call eight times, and values of one label never meet in a call', () => {
    const others = ['label:team=web', 'label:team=a=b', 'key:l', 'user:a:b'].flatMap(bothPeriods);
    expect(findExcess([...eight, ...others])).toBeNull();
  });

  it('may not match it nine times', () => {
    expect(findExcess([...eight.toReversed(), { scope: 'label:env=prod', period: 'day' }])).toBe(
      'one call could match 9 budgets (day capability, day key, day label:env, day label:team, day user, ' +
        'month capability, month key, month label:team, month user); at most 8 are allowed',
    );
  });

  it('are at most a hundred', () => {
    const keys = Array.from({ length: mostScopedBudgets }, (_, at) => ({
      scope: `key:${at}`,
      period: 'day' as const,
    }));
    expect(findExcess(keys)).toBeNull();
    expect(findExcess([...keys, { scope: 'key:x', period: 'day' }])).toMatch(/101 budgets; at most 100/);
  });

  it('by total may each match a call, too', () => {
    const total = (scope: string): ScopeAndPeriod => ({ scope, period: 'total' });
    expect(findExcess([...eight.slice(1), total('key:k'), total('key:l')])).toBeNull();
    expect(findExcess([...eight, total('key:k')])).toMatch(/could match 9 budgets .*total key/);
  });

  it('of batches do not count among the hundred, and are at most a thousand', () => {
    const batch = (at: number): ScopeAndPeriod => ({ scope: scopeOfBatch(`bat_${at}`), period: 'total' });
    const others = Array.from(
      { length: mostScopedBudgets },
      (_, at): ScopeAndPeriod => ({ scope: `key:${at}`, period: 'day' }),
    );
    const batches = Array.from({ length: 1_000 }, (_, at) => batch(at));
    expect(findExcess([...others, ...batches])).toBeNull();
    expect(findExcess([...batches, batch(1_000)])).toMatch(/1001 budgets of batches; at most 1000/);
    for (const like of ['label:batch=7', 'label:batch=', 'label:team=bat_1', 'user:bat_1'])
      expect(findExcess([...others, { scope: like, period: 'total' }])).toMatch(/101 budgets/);
    expect(findExcess([...others, { ...batch(1), period: 'day' }])).toMatch(/101 budgets/);
  });
});

it('a call has the scopes of its key, its user and its labels', () => {
  expect(scopesOfCall({ keyId: 'k', user: 'u', labels: { team: 'ads', env: '' } })).toEqual([
    'key:k',
    'user:u',
    'label:team=ads',
    'label:env=',
  ]);
  expect(scopesOfCall({ keyId: 'k', user: '' })).toEqual(['key:k']);
});

it('a refusing budget is named for people', () => {
  expect(nameRefusing({ scope: 'call' })).toBe('the call');
  expect(nameRefusing({ scope: 'run' })).toBe('the run');
  expect(nameRefusing({ scope: 'capability' })).toBe('capability');
  expect(nameRefusing({ scope: 'label', budget: 'label:team=ads', period: 'month' })).toBe(
    'label:team=ads by month',
  );
});

it('a refusing budget by total is named by what it limits', () => {
  const refusal = { scope: 'user', budget: 'user:ann', period: 'total' } as const;
  expect(nameRefusing(refusal)).toBe('user:ann in total');
});

it.each([
  ['batch', 'bat_1', true],
  ['batch', '7', false],
  ['bulk', 'bat_1', false],
])('the label %s=%s is of a batch: %s', (name, value, isOne) => {
  expect(isInBatch(name, value)).toBe(isOne);
});
