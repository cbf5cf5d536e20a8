/** The graph of a definition before a run: what a step does beside its edges, and the runs behind a budget. */
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { expect, test } from 'vitest';
import { labelOfScope } from '../src/budget/budget-model.ts';
import { toGraph } from '../src/graph/definition-graph.ts';

const branches = ['a', 'b', 'c'].map((id): StepDefinition => ({ id, capability: 'x' }));
const depends_on = ['a', 'b', 'c'];

test.each<[Partial<StepDefinition>, string]>([
  [{ depends_on }, ''],
  [{ depends_on, first: 1 }, 'after the first of 3'],
  [{ depends_on, first: 2 }, 'after the first 2 of 3'],
  [{ for_each: { items: [1, 2] } }, 'for each item'],
  [{ for_each: { items: [1, 2], enough: 1 } }, 'for each item, 1 is enough'],
  [
    { for_each: { items: [1, 2, 3], enough: { count: 2, if: 'output.good' } } },
    'for each item, 2 are enough',
  ],
  [{ repeat: { until: 'output.done', max: 9 } }, 'repeats, at most 9 rounds'],
  [
    { depends_on: ['a', 'b'], first: 1, repeat: { until: 'output.done', max: 2 } },
    'after the first of 2, repeats, at most 2 rounds',
  ],
])('a step with %j is marked: %j', (step, note) => {
  const definition = {
    pipeline: 'p',
    version: '1',
    steps: [...branches, { id: 'z', capability: 'x', ...step }],
  };
  const { nodes } = toGraph(definition);
  expect(nodes.map((node) => node.note)).toEqual(['', '', '', note]);
});

test.each([
  ['label:batch=bat_01', 'batch=bat_01'],
  ['label:team=a=b', 'team=a=b'],
  ['capability:x', null],
  ['key:key_label:x', null],
])('the budget %s is of runs with the label %j', (scope, label) => {
  expect(labelOfScope(scope)).toBe(label);
});
