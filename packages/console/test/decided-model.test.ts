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
