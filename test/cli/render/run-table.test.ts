import type { RunStep, StepState } from '@capstan/core/contracts/run-step';
import { expect, it } from 'vitest';
import { createStyle } from '../../../src/cli/render/print.ts';
import { renderSteps } from '../../../src/cli/render/run.ts';

function aStep(id: string, state: StepState): RunStep {
  return {
    id,
    state,
    capability: 'echo',
    attempts: 0,
    revision: 0,
    cost_usd: 0,
    started_at: null,
    finished_at: null,
  };
}

const steps = [
  ...Array.from({ length: 20 }, (_, index) => aStep(`done${index}`, 'succeeded')),
  aStep('busy', 'running'),
  aStep('later', 'pending'),
  aStep('broken', 'failed'),
];
const layout = { style: createStyle(false), width: 80, now: 0 };

it('shows what failed and what runs when not every step fits, and counts the rest', () => {
  const lines = renderSteps(steps, { ...layout, height: 5 });
  expect(lines.length).toBeLessThanOrEqual(5);
  expect(lines.slice(1).map((line) => line.split(/\s+/)[0])).toEqual(['done0', 'busy', 'broken', '…']);
  expect(lines.at(-1)).toBe('… 20 more: 19 succeeded, 1 pending');
});

it('shows every step in the order of the definition when there is room', () => {
  const lines = renderSteps(steps, { ...layout, height: Infinity });
  expect(lines.slice(1).map((line) => line.split(/\s+/)[0])).toEqual(steps.map(({ id }) => id));
});

it('shows that no instance was called, of a step and of items', () => {
  const cached = { ...aStep('a', 'succeeded'), endpoint: 'http://x', attempts: 1, cached: 1 };
  const items = { ...aStep('b', 'succeeded'), items: { succeeded: 3 }, attempts: 3, cached: 2 };
  const [, one, many] = renderSteps([cached, items], { ...layout, height: Infinity });
  expect(one).toMatch(/succeeded {2}cached/);
  expect(many).toContain('3 of 3 items done, 2 cached');
});

it('shows the cost of a step that is a child run, though it makes no attempt', () => {
  const sub = { ...aStep('a', 'succeeded'), sub_run_id: 'run_2', cost_usd: 0.25 };
  const [, line, free] = renderSteps([sub, aStep('b', 'succeeded')], { ...layout, height: Infinity });
  expect(line).toContain('$0.25');
  expect(free).not.toContain('$');
});
