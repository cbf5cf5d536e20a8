import { describe, expect, it } from 'vitest';
import type { ScopeAndPeriod } from '../../src/contracts/money.ts';
import { findExcess, mostScopedBudgets, nameRefusing, scopesOfCall } from '../../src/money/scoped-budget.ts';

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
