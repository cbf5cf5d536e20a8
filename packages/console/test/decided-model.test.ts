import type { RunEvent } from '@capstan/core/contracts/event';
import { expect, test } from 'vitest';
import { describeEvent } from '../src/pages/run/log-model.ts';

test('the line of a decided repair names the people whose decisions it follows', () => {
  const data = { level: 0, skill_id: 'skl_1', as_decided: { by: ['ana', 'ben'], times: 3 } };
  const event: RunEvent = {
    seq: 1,
    at: '2026-01-01T00:00:00Z',
    run_id: 'run_1',
    type: 'step.escalated',
    data,
  };
  expect(describeEvent(event)).toBe('level 0 · skill id skl_1 · as decided by ana, ben (3 times)');
});

test.each([
  [
    { awaiting: 'callback', until: '2026-03-01T10:00:00.000Z' },
    /^for a later answer · until \S*.*\d\d:00:00/,
  ],
  [{ awaiting: 'slot', until: null }, /^for a free slot$/],
  [{ awaiting: 'of a newer server' }, /^for of a newer server$/],
])('the log shows what a step waits for, and until when: %j', (data, shown) => {
  const event = {
    seq: 1,
    at: '2026-03-01T09:00:00.000Z',
    run_id: 'run_1',
    type: 'step.waiting',
    data,
  } as const;
  expect(describeEvent(event)).toMatch(shown);
});
