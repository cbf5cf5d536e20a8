import { driveRun } from '@capstan/core/run/drive';
import { expect, test } from 'vitest';
import { createProgressTable } from '../../../src/workflows/web-ui.ts';

const input = {
  run_url: 'http://capstan.test/runs/1',
  dispatch_reasons: ['concat is inline: the definition says so'],
};

function aStep(id: string) {
  return { id, capability: 'concat', dependencies: [], total_timeout_ms: 1_000, escalates: true } as const;
}

function aTable() {
  const plan = { steps: [aStep('cut'), aStep('mix')], max_in_flight: 2 };
  const { run } = driveRun(plan, { isPaused: false });
  const table = createProgressTable(input);
  return {
    table,
    lineOf: (id: string) => linesOf(table.toMarkdown(run.state)).find((line) => line.includes(id)),
  };
}

function linesOf(text: string): string[] {
  return text.split('\n');
}

test('a step that ended gives the reason, in one cell of a table', () => {
  const { table, lineOf } = aTable();
  table.end(0, 'input_rejected: a | b\nsecond line');
  expect(lineOf('cut')).toContain(', input_rejected: a ¦ b second line |');
  table.end(1, `failed: ${'x'.repeat(5_000)}`);
  expect(lineOf('mix')?.length).toBeLessThan(400);
});

test('the reason of a wait is shown before an earlier end of the step', () => {
  const { table, lineOf } = aTable();
  table.end(0, 'corrected');
  table.remark(0, 'review until tomorrow');
  expect(lineOf('cut')).toContain('review until tomorrow');
  table.remark(0, null);
  expect(lineOf('cut')).toContain('corrected');
});

test('a step without a queue shows that', () => {
  const plan = { steps: [{ ...aStep('cut'), inline: true as const }, aStep('mix')], max_in_flight: 2 };
  const { run } = driveRun(plan, { isPaused: false });
  const lines = linesOf(createProgressTable(input).toMarkdown(run.state));
  expect(lines.find((line) => line.includes('cut'))).toContain(', inline |');
  expect(lines.find((line) => line.includes('mix'))).not.toContain('inline');
});

test('the table shows the state of the run, its page, and why its calls are inline or queued', () => {
  const plan = { steps: [aStep('cut'), aStep('mix')], max_in_flight: 2 };
  const { run } = driveRun(plan, { isPaused: true });
  const table = createProgressTable(input);
  const [first, ...lines] = linesOf(table.toMarkdown(run.state));
  expect(first).toBe('[Run](http://capstan.test/runs/1): paused');
  expect(lines.slice(-3)).toEqual(['- concat is inline: the definition says so', '', '\u00a0']);
  expect(linesOf(table.toMarkdown(run.state, 'failed'))[0]).toBe('[Run](http://capstan.test/runs/1): failed');
});
