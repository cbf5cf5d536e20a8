import { expect, it } from 'vitest';
import type { OnBudget } from '../../src/contracts/decision.ts';
import { resolveStepSettings, routeOfStep } from '../../src/definition/step-settings.ts';
import { aDefinition } from './checks/a-definition.ts';

type Choice = OnBudget | undefined;

it.each<[Choice, Choice, OnBudget | null, OnBudget]>([
  ['stop', 'refuse', 'pause', 'stop'],
  [undefined, 'refuse', 'stop', 'refuse'],
  [undefined, undefined, 'stop', 'stop'],
  [undefined, undefined, null, 'pause'],
  ['pause', undefined, 'refuse', 'pause'],
])('the end of a step without room: step %s, defaults %s, project %s', (own, defaults, project, chosen) => {
  const step = { id: 'a', capability: 'a', ...(own === undefined ? {} : { on_budget: own }) };
  const definition = aDefinition({
    steps: [step],
    ...(defaults === undefined ? {} : { defaults: { on_budget: defaults } }),
  });
  const route = routeOfStep(step, resolveStepSettings(definition, step), {
    priority: 'standard',
    ceilingUsd: null,
    onBudget: project,
    remainingMs: 1_000,
  });
  expect(route.onBudget).toBe(chosen);
});
