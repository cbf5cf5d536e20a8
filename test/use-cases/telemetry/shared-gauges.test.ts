import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { createPrometheus } from '../../../src/telemetry/metrics.ts';
import { exportSharedGauges } from '../../../src/use-cases/telemetry/shared-gauges.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { anInstance, aProject, aRun } from '../../support/factories.ts';

let database: TestDatabase;
let db: Db;
beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 4);
});
afterAll(async () => {
  await db.destroy();
  await database.drop();
});

function exported(from: Db, isHolder: () => boolean, withinMs = 60_000) {
  const faults: unknown[] = [];
  const metrics = createPrometheus((fault) => faults.push(fault));
  exportSharedGauges({ db: from, telemetry: { ...noTelemetry, metrics } }, isHolder, withinMs);
  const read = async (): Promise<string[]> => {
    const lines = (await metrics.text()).split('\n');
    return lines.filter((line) => line.startsWith('capstan_'));
  };
  return { read, faults };
}

test('the holder of maintenance exports the shared gauges; other processes export none of them', async () => {
  const { project_id } = await aProject(db, { daily_limit_nano: 5_000_000_000n });
  await aRun(db, { project_id });
  const { endpoint } = await anInstance(db, { owner_project: project_id, name: 'scale', max_concurrency: 3 });
  let isHolder = true;
  const { read } = exported(db, () => isHolder);
  expect(await read()).toEqual(
    expect.arrayContaining([
      'capstan_maintenance_holder 1',
      'capstan_runs{state="queued"} 1',
      'capstan_runs{state="paused"} 0',
      'capstan_instance_slots{capability="scale"} 3',
      'capstan_instance_slots_held{capability="scale"} 0',
      `capstan_breaker_open{capability="scale",endpoint="${endpoint}"} 0`,
      `capstan_budget_limit_usd{scope="project",project_id="${project_id}"} 5`,
      'capstan_reviews_oldest_seconds{kind="budget"} 0',
    ]),
  );
  const late = (await read()).find((line) => line.startsWith('capstan_deliveries_oldest_seconds '));
  expect(Number(late?.split(' ')[1])).toBeGreaterThan(0);

  isHolder = false;
  const shared = /^capstan_(runs\{|instance|breaker|budget_limit|reviews|deliveries|event_horizon)/;
  const after = await read();
  expect(after).toContain('capstan_maintenance_holder 0');
  expect(after.filter((line) => shared.test(line))).toEqual([]);
});

test('an open transaction anywhere is the lag that delays events', async () => {
  const { read } = exported(db, () => true);
  const lagOf = async (): Promise<number> => {
    const line = (await read()).find((text) => text.startsWith('capstan_event_horizon_lag_seconds '));
    return Number(line?.split(' ')[1]);
  };
  await db.transaction(async (trx) => {
    const age = 'extract(epoch from clock_timestamp() - now())::float8 as age';
    const { rows } = await trx.raw<{ rows: [{ age: number }] }>(`select pg_current_xact_id(), ${age}`);
    // Older ones may be open beside it, of other databases too.
    expect(await lagOf()).toBeGreaterThanOrEqual(rows[0].age);
  });
});

test("a database that does not answer leaves the process's own values in a scrape", async () => {
  const silent = { raw: () => new Promise(() => undefined) } as unknown as Db;
  const { read, faults } = exported(silent, () => true, 100);
  const lines = await read();
  expect(lines).toContain('capstan_maintenance_holder 1');
  expect(lines.some((line) => line.startsWith('capstan_runs{'))).toBe(false);
  expect(faults).toEqual([new Error('the database has not answered within 100 ms')]);
});
