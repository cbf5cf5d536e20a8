import type { StepDetail } from '@capstan/core/contracts/run-step';
import { expect, it } from 'vitest';
import { createStyle } from '../../../src/cli/render/print.ts';
import { renderStepDetail } from '../../../src/cli/render/run.ts';
import { formatEvent } from '../../../src/cli/watch/events.ts';
import { aCachedAttempt } from '../../support/a-cached-attempt.ts';

const step: StepDetail = {
  id: 'each',
  state: 'succeeded',
  capability: 'x',
  attempts: [],
  revision: 0,
  cost_usd: 0,
  started_at: null,
  finished_at: null,
  run_id: 'run_1',
  depends_on: [],
  output: [1, 2],
};
const layout = { width: Infinity, style: createStyle(false), now: 0 };
const more = '  … and those of more items: --item shows any of them';

it.each<[StepDetail['next_cursor'], boolean]>([
  ['Mg', true],
  [null, false],
  [undefined, false],
])('notes that more items have outputs: %s', (next_cursor, isSaid) => {
  const paged = next_cursor === undefined ? step : { ...step, next_cursor };
  expect(renderStepDetail(paged, layout).includes(more)).toBe(isSaid);
});

it('shows how it was carried out, and why', () => {
  const dispatch = { how: 'queued', code: 'slow', message: 'its calls take long' } as const;
  expect(renderStepDetail({ ...step, dispatch }, layout)).toContain('queued: its calls take long');
});

it.each([
  [null, 'waits for the event since 2026-01-01T00:00:00Z, without a limit'],
  ['2026-01-02T00:00:00Z', 'waits for the event since 2026-01-01T00:00:00Z, until 2026-01-02T00:00:00Z'],
])('shows its event and its wait until %s', (until, line) => {
  const { capability: _, ...rest } = step;
  const open_wait = { since: '2026-01-01T00:00:00Z', until, event_key: '7' };
  const waiting = { ...rest, state: 'waiting', event: 'paid', awaiting: 'event', open_wait } as const;
  const lines = renderStepDetail(waiting, layout);
  expect(lines[0]).toContain('paid with key "7"');
  expect(lines).toContain(line);
});

it('names the step whose result a cached attempt has used', () => {
  const attempt = aCachedAttempt({ run_id: 'run_0', step_id: 'a' });
  const lines = renderStepDetail({ ...step, attempts: [attempt] }, layout);
  expect(lines.some((line) => line.includes('from step a[3] of run_0, saved $0.25'))).toBe(true);
});

it('names the skill that has corrected it, and the people whose decisions that follows', () => {
  const corrected = { ...step, skill_id: 'skl_1' };
  expect(renderStepDetail(corrected, layout)).toContain('corrected by skl_1');
  const as_decided = { by: ['ana', 'ben'], times: 3 };
  const line = 'corrected by skl_1, as decided by ana, ben (3 times)';
  expect(renderStepDetail({ ...corrected, as_decided }, layout)).toContain(line);
});

it('names in the line of an event the people whose decisions were followed', () => {
  const data = { level: 0, state: 'succeeded', as_decided: { by: ['ana'], times: 4 } };
  const event = {
    seq: 1,
    at: '2026-01-01T00:00:00Z',
    run_id: 'run_1',
    type: 'step.escalated',
    data,
  } as const;
  expect(formatEvent(event, createStyle(false))).toBe(
    '00:00:00.000Z  step.escalated  level=0 state=succeeded as decided by ana (4 times)',
  );
});
