/** The rules as Prometheus reads them, and that each fires when it must and only then. Needs promtool of Prometheus. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type MetricName, metricTable } from '@capstan/core/telemetry/metric-table';
import { expect, type TestContext, test } from 'vitest';
import { alerts } from '../../scripts/docs/telemetry/alerts.ts';
import { dashboardFile, dashboardRows } from '../../scripts/docs/telemetry/dashboard.ts';
import { rulesFile, rulesTestFile } from '../../scripts/docs/telemetry/rules-files.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function findProgram(name: string): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}

function runPromtool(context: TestContext, ...args: string[]): string {
  const promtool = findProgram('promtool');
  const reason = 'promtool is not installed; on Debian it comes with the package prometheus';
  if (promtool === null) console.warn(`NOT TESTED: ${args.join(' ')}: ${reason}`);
  context.skip(promtool === null, reason);
  return execFileSync(promtool as string, args, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
}

test('promtool takes the rules', (context) => {
  expect(runPromtool(context, 'check', 'rules', rulesFile)).toContain(
    `SUCCESS: ${alerts.length} rules found`,
  );
});

test('each alert fires on its example, in the words that it promises, and on nothing calm', (context) => {
  expect(runPromtool(context, 'test', 'rules', rulesTestFile)).toContain('SUCCESS');
});

test('alerts and dashboard name metrics that there are', () => {
  const expressions = [
    ...alerts.map(({ query }) => query),
    ...dashboardRows.flatMap(({ panels }) => panels.flatMap(({ lines }) => lines.map(([expr]) => expr))),
  ];
  const named = expressions.flatMap((expression) => expression.match(/\bcapstan_\w+/g) ?? []);
  const unknown = named.filter((name) => {
    const plain = name.replace(/^capstan_/, '').replace(/_(bucket|count|sum)$/, '');
    const row = metricTable[plain as MetricName];
    return row === undefined || (row.type === 'histogram') !== /_(bucket|count|sum)$/.test(name);
  });
  expect(unknown).toEqual([]);
  expect(named.length).toBeGreaterThan(40);
});

test('every metric of Capstan is on the dashboard', () => {
  const text = readFileSync(join(root, dashboardFile), 'utf8');
  const missing = Object.keys(metricTable).filter((name) => !text.includes(`capstan_${name}`));
  expect(missing).toEqual([]);
});
