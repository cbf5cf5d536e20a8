import { describe, expect, it } from 'vitest';
import type { ScopeAndPeriod } from '../../../src/contracts/money.ts';
import {
  findExcess,
  mostScopedBudgets,
  nameRefusing,
  scopesOfCall,
} from '../../../src/core/money/scoped-budget.ts';

const bothPeriods = (scope: string): ScopeAndPeriod[] => [
  { scope, period: 'day' },
  { scope, period: 'month' },
];

describe('the budgets of a project', () => {
  const eight = ['key:k', 'capability:c', 'user:u', 'label:team=ads'].flatMap(bothPeriods);

  it('may match one call eight times, and values of one label never meet in a call', () => {
    expect(findExcess([...eight, ...bothPeriods('label:team=web'), ...bothPeriods('key:l')])).toBeNull();
  });

  it('may not match it nine times', () => {
    expect(findExcess([...eight, { scope: 'label:env=prod', period: 'day' }])).toMatch(
      /one call could match 9 budgets .*day label:env/,
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
  expect(nameRefusing({ scope: 'run' })).toBe('the run');
  expect(nameRefusing({ scope: 'label', budget: 'label:team=ads', period: 'month' })).toBe(
    'label:team=ads by month',
  );
});
