import { expect, test } from 'vitest';
import {
  aloneWorkflowId,
  ladderWorkflowId,
  runWorkflowId,
  scheduleWorkflowId,
} from '../../src/workflow-names.ts';

const run = { pipeline: 'trailer', run_id: 'run_1' };

test('names show what a workflow is, and a ladder begins with the name of its run', () => {
  expect([
    runWorkflowId(run),
    ladderWorkflowId(run, { step_id: 'cut', item: 0, round: 1 }),
    ladderWorkflowId(run, { step_id: 'cut', item: 0, round: 2 }),
    ladderWorkflowId(run, { step_id: 'cut', item: 3, round: 1 }),
    aloneWorkflowId('esc_1'),
    scheduleWorkflowId('trailer', 'sch_1'),
  ]).toEqual([
    'trailer/run_1',
    'trailer/run_1/cut/ladder',
    'trailer/run_1/cut/ladder/r2',
    'trailer/run_1/cut/3/ladder',
    'ladder/esc_1',
    'trailer/sch_1',
  ]);
});

test('the longest names are within the 1,000 bytes that Temporal takes', () => {
  const long = { pipeline: 'p'.repeat(64), run_id: `run_${'0'.repeat(36)}` };
  const id = ladderWorkflowId(long, { step_id: 's'.repeat(64), item: 10_000, round: 999 });
  expect(Buffer.byteLength(id)).toBeLessThan(1_000);
});
