import { expect, it } from 'vitest';
import { createStyle } from '../../../src/cli/render/print.ts';
import { renderStepDetail } from '../../../src/cli/render/run.ts';
import type { StepDetail } from '../../../src/contracts/run-step.ts';
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
])('says whether the outputs of its items go on: %s', (next_cursor, isSaid) => {
  const paged = next_cursor === undefined ? step : { ...step, next_cursor };
  expect(renderStepDetail(paged, layout).includes(more)).toBe(isSaid);
});

it('says how it was carried out, and why', () => {
  const dispatch = { how: 'queued', code: 'slow', message: 'its calls take long' } as const;
  expect(renderStepDetail({ ...step, dispatch }, layout)).toContain('queued: its calls take long');
});

it('says whose result a cached attempt has taken', () => {
  const attempt = aCachedAttempt({ run_id: 'run_0', step_id: 'a' });
  const lines = renderStepDetail({ ...step, attempts: [attempt] }, layout);
  expect(lines.some((line) => line.includes('from step a[3] of run_0, saved $0.25'))).toBe(true);
});
