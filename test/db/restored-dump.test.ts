import { mkdirSync, rmSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { pollInstances } from '../../src/db/instance/instance-list.ts';
import { migrate } from '../../src/db/migrate.ts';
import { adoptCluster } from '../../src/db/recovery.ts';
import { listEvents } from '../../src/db/run/event.ts';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { useDatabase } from '../support/database.ts';
import { anInstance, aRun } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';

const { db } = useDatabase();
let folder: string;
let supervisor: Supervisor;
let restored: Db;
let restoredUrl: string;

beforeAll(async () => {
  folder = createTemporaryFolder('capstan-restore-');
  supervisor = createSupervisor({ report: () => undefined, temporaryFolder: folder });
  const port = await choosePort([]);
  const options = { dataDir: folder, port, ephemeral: true, cacheDir: join(folder, 'cache') };
  const server = await startPostgres(
    supervisor,
    options,
    createPartReport(() => undefined, 'Postgres'),
  );
  restoredUrl = server.url;
  restored = connectDatabase(restoredUrl, 2);
});
afterAll(async () => {
  await restored?.destroy();
  await supervisor?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The result of a logical dump and its restore: every row as it is, and the positions of the sequences. */
async function restore(): Promise<void> {
  const copies = join(folder, 'copies');
  mkdirSync(copies);
  await chmod(folder, 0o777);
  await chmod(copies, 0o777);
  const tables: string[] = await db('pg_class')
    .whereRaw("relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition")
    .pluck('relname');
  await restored.transaction(async (trx) => {
    await trx.raw('set local session_replication_role = replica'); // no triggers, no foreign keys
    await trx.raw(`truncate ${tables.join(', ')}`);
    for (const table of tables) {
      await db.raw(`copy (select * from ${table}) to '${join(copies, table)}'`);
      await trx.raw(`copy ${table} from '${join(copies, table)}'`);
    }
    for (const [table, column] of [
      ['event', 'id'],
      ['ledger_entry', 'entry_id'],
    ] as const) {
      await trx.raw(`select setval(pg_get_serial_sequence(?, ?), (select max(${column}) from ${table}))`, [
        table,
        column,
      ]);
    }
  });
}

function write(on: Db, run_id: string, name: string): Promise<unknown> {
  return on('event').insert({ run_id, type: 'step.routed', step_id: name });
}

async function readLog(on: Db, runId: string): Promise<string[]> {
  const rows = await listEvents(on, runId, { before: null, after: 0, limit: 1_000 });
  return rows.map(({ seq, type, step_id }) => `${seq} ${step_id ?? type}`);
}

async function transactions(on: Db): Promise<bigint> {
  const { rows } = await on.raw<{ rows: [{ xid: string }] }>('select pg_current_xact_id()::text as xid');
  return BigInt(rows[0].xid);
}

/** Two runs whose events lie among one another; of one run the order of transactions is not that of numbers. */
async function writeRuns(): Promise<string[]> {
  const runs = [await aRun(db), await aRun(db)].map(({ run_id }) => run_id);
  for (const name of ['a', 'b', 'c']) for (const run_id of runs) await write(db, run_id, name);
  const [first, second] = [await db.transaction(), await db.transaction()];
  await first.raw('select pg_current_xact_id()');
  await write(second, runs[0] as string, 'later');
  await write(first, runs[0] as string, 'earlier');
  await Promise.all([first.commit(), second.commit()]);
  return runs;
}

test('a start on the cluster that it knows locks nothing and reads no event, whatever the role may read', async () => {
  expect(await adoptCluster(db)).toBeNull();
  await db.raw('vacuum (full, freeze) cluster');
  const asked: string[] = [];
  const note = ({ sql }: { readonly sql: string }): unknown => asked.push(sql);
  db.on('query', note);
  expect(await adoptCluster(db)).toBeNull();
  db.off('query', note);
  expect(asked.filter((sql) => /event|lock table|pg_control/.test(sql))).toEqual([]);
});

test('a dump restored into another cluster shows the same logs, and new events after them', async () => {
  await migrate(restoredUrl);
  const runs = await writeRuns();
  await anInstance(db);
  while ((await transactions(db)) < (await transactions(restored)) + 1_000n) {
    await db.raw('do $$ begin for i in 1..1000 loop perform pg_current_xact_id(); commit; end loop; end $$');
  }
  await write(db, runs[1] as string, 'last');
  await waitFor('all to be read', async () => (await readLog(db, runs[1] as string)).length === 5);
  const before = await Promise.all(runs.map((run) => readLog(db, run)));
  expect(before[0]).toEqual(['1 run.queued', '2 a', '3 b', '4 c', '5 earlier', '6 later']);

  await restore();
  expect(await readLog(restored, runs[0] as string)).toEqual([]);
  await migrate(restoredUrl);
  expect(await Promise.all(runs.map((run) => readLog(restored, run)))).toEqual(before);
  const { horizon, instances } = await pollInstances(restored, '0');
  expect(instances).toHaveLength(1);
  expect((await pollInstances(restored, horizon)).instances).toEqual([]);

  for (const run of runs) await write(restored, run, 'new');
  await migrate(restoredUrl);
  expect(await Promise.all(runs.map((run) => readLog(restored, run)))).toEqual(
    before.map((log) => [...log, `${log.length + 1} new`]),
  );
});
