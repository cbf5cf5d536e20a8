import { mostNames } from '@capstan/core/telemetry/metric-table';
import { expect, test } from 'vitest';
import { createPrometheus } from '../../src/telemetry/metrics.ts';

function linesOf(text: string, name: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(name));
}

test('the last two hundred pipelines have names of their own; the counts of others are in other', async () => {
  const metrics = createPrometheus(() => undefined);
  const count = (pipeline: string): void => {
    metrics.add('runs_total', { pipeline, state: 'succeeded' });
    metrics.observe('run_duration_seconds', { pipeline }, 1);
  };
  count('used');
  for (let n = 0; n < mostNames + 50; n += 1) {
    count(`invented${n}`);
    if (n % 100 === 0) count('used');
  }
  count('new');
  await metrics.text();
  const text = await metrics.text();
  const lines = linesOf(text, 'capstan_runs_total{');
  expect(lines).toHaveLength(mostNames + 1);
  expect(lines).toContain('capstan_runs_total{pipeline="other",state="succeeded"} 52');
  expect(lines).toContain('capstan_runs_total{pipeline="used",state="succeeded"} 4');
  expect(lines).toContain('capstan_runs_total{pipeline="new",state="succeeded"} 1');
  const durations = linesOf(text, 'capstan_run_duration_seconds_count{');
  expect(durations).toHaveLength(mostNames);
});

test('a gauge that is replaced forgets what it had and adds up what became equal', async () => {
  const metrics = createPrometheus(() => undefined);
  const held = (names: readonly string[]) =>
    names.map((capability) => ({ labels: { capability }, value: 2 }));
  metrics.replace('instance_slots', held(['gone', 'stays']));
  metrics.replace('instance_slots', held(['stays', ...Array.from({ length: mostNames }, (_, n) => `c${n}`)]));
  const lines = linesOf(await metrics.text(), 'capstan_instance_slots{');
  expect(lines).toContain('capstan_instance_slots{capability="stays"} 2');
  expect(lines).toContain('capstan_instance_slots{capability="other"} 2');
  expect(lines.join()).not.toContain('gone');
});

test('a value of the holder of maintenance appears with the first report, and not any more after the last', async () => {
  const metrics = createPrometheus(() => undefined);
  const name = 'capstan_deliveries_oldest_seconds';
  expect(linesOf(await metrics.text(), name)).toEqual([]);
  metrics.replace('deliveries_oldest_seconds', [{ labels: {}, value: 0 }]);
  expect(linesOf(await metrics.text(), name)).toEqual([`${name} 0`]);
  metrics.replace('deliveries_oldest_seconds', []);
  expect(linesOf(await metrics.text(), name)).toEqual([]);
});

test('a refresh that fails is reported, and the other values are read', async () => {
  const faults: unknown[] = [];
  const metrics = createPrometheus((fault) => faults.push(fault));
  metrics.onScrape(() => Promise.reject(new Error('the database is away')));
  metrics.onScrape(() => metrics.set('maintenance_holder', {}, 1));
  expect(linesOf(await metrics.text(), 'capstan_maintenance_holder')).toEqual([
    'capstan_maintenance_holder 1',
  ]);
  expect(faults).toHaveLength(1);
});

test('two processes in one have registries of their own', async () => {
  const [one, other] = [createPrometheus(() => undefined), createPrometheus(() => undefined)];
  one.add('budget_refusals_total', {}, 3);
  expect(linesOf(await other.text(), 'capstan_budget_refusals_total')).toEqual([
    'capstan_budget_refusals_total 0',
  ]);
});
