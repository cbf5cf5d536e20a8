import { expect, test } from 'vitest';
import { describeRounds, nodeOfStep } from '../src/graph/node-model.ts';
import { toRounds } from '../src/pages/run/drawer/round-list-model.ts';

const second = (at: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString();

test('rounds are lines with state, time and price, the last one first', () => {
  const rows = [
    { item: 1, state: 'succeeded', started_at: second(0), finished_at: second(3), cost_usd: 0.25 },
    { item: 2, state: 'running', started_at: second(9), finished_at: null, cost_usd: 0 },
  ] as const;
  expect(toRounds({ succeeded: 1, running: 1, pending: 1 }, rows)).toEqual([
    { item: 3, state: 'pending', took: '', money: '' },
    { item: 2, state: 'running', took: '', money: '' },
    { item: 1, state: 'succeeded', took: '3.0 s', money: '$0.25' },
  ]);
});

test.each([
  [{ succeeded: 2, waiting: 1 }, false, 'round 3 of at most 20'],
  [{ succeeded: 1 }, true, '1 round'],
  [{ succeeded: 4, failed: 1 }, true, '5 rounds'],
])('rounds %j are described', (items, isEnded, text) => {
  expect(describeRounds(items, 20, isEnded)).toBe(text);
});

test('the node of a step with rounds shows them, and what the next one waits for', () => {
  const step = {
    id: 'poll',
    capability: 'ask',
    state: 'running',
    max_rounds: 20,
    items: { succeeded: 2, waiting: 1 },
    attempts: 2,
    revision: 0,
    cost_usd: 0,
    started_at: second(0),
    finished_at: null,
  } as const;
  const node = nodeOfStep(step, Date.parse(second(5)), { awaiting: ['time'] });
  expect(node.note).toBe('round 3 of at most 20');
  expect(node.condition?.detail).toBe('round 3 of poll');
});
