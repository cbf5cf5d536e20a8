import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { expect, test } from 'vitest';
import { routeQuestionOf } from '../src/decision/route-question.ts';

const definition: PipelineDefinition = {
  pipeline: 'a',
  version: '1',
  defaults: { timeout: '20s', priority: 'batch' },
  steps: [
    { id: 'cut', capability: 'trim', capability_version: '^1.2', tags: ['gpu'], budget_ceiling_usd: 5 },
    { id: 'ask', review: { title: 'May it?' } },
  ],
};
const run = {
  priority: 'standard',
  budget_ceiling_usd: 1,
  cost_usd: 0.25,
  reserved_usd: 0.5,
  on_budget: null,
} as const;
const waiting = { id: 'cut', state: 'waiting', awaiting: 'capability', input: { clip: 1 } } as const;

test('a waiting step asks what its worker would ask, with what the run has left', () => {
  expect(routeQuestionOf(run, definition, waiting)).toEqual({
    capability: 'trim',
    priority: 'standard',
    timeout_ms: 20_000,
    tags: ['gpu'],
    on_budget: 'pause',
    version: '^1.2',
    budget_ceiling_usd: 0.25,
    input: { clip: 1 },
  });
});

test('the corrected input is asked about, and an overspent run has nothing left', () => {
  const revisions = [
    { revision: 1, input: { clip: 2 }, source: 'repair', escalation_id: 'esc_1', created_at: '' },
  ];
  const spent = { ...run, cost_usd: 2 };
  expect(routeQuestionOf(spent, definition, { ...waiting, revisions })).toMatchObject({
    input: { clip: 2 },
    budget_ceiling_usd: 0,
  });
});

test('a step that is retried because no instance accepts it asks too', () => {
  const retrying = { id: 'cut', state: 'retrying', error: { code: 'no_instance', message: 'none' } } as const;
  expect(routeQuestionOf(run, definition, retrying)?.capability).toBe('trim');
  const failing = { ...retrying, error: { code: 'unavailable', message: 'it answers 503' } } as const;
  expect(routeQuestionOf(run, definition, failing)).toBeNull();
});

test.each([
  ['of a step that runs', { ...waiting, state: 'running' }],
  ['of one that waits for a review', { id: 'ask', state: 'in_review' }],
  ['of one that sleeps for a moment', { ...waiting, awaiting: 'time' }],
] as const)('nothing is asked %s', (_, step) => expect(routeQuestionOf(run, definition, step)).toBeNull());

test('the end of its room is that of the step, of the defaults, or of the project', () => {
  const refusing = { ...run, on_budget: 'refuse' } as const;
  const choosing = (on_budget: 'stop') => ({
    ...definition,
    defaults: { ...definition.defaults, on_budget },
  });
  expect(routeQuestionOf(refusing, definition, waiting)).toMatchObject({ on_budget: 'refuse' });
  expect(routeQuestionOf(refusing, choosing('stop'), waiting)).toMatchObject({ on_budget: 'stop' });
});
