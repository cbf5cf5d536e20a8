import { expect, test } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { noSuchRun } from '../../../src/use-cases/runs/run-view.ts';
import { aShell } from '../../cli/support/shell.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';

const { db, url } = useDatabase();

test('by hand it works on the database alone, by the settings of a server', async () => {
  const run = await aRun(db);
  const old_id = run.run_id.replace(/_.{13}/, '_01000000-0000');
  await db('event').delete();
  await db('run')
    .where({ run_id: run.run_id })
    .update({
      run_id: old_id,
      state: 'succeeded',
      finished_at: db.raw(`now() - interval '30 days'`),
    });
  const capstan = async (words: readonly string[], days: string) => {
    const { shell, seen } = aShell({ environment: { DATABASE_URL: url, RUN_RETENTION_DAYS: days } });
    await runCapstan(['purge', ...words], shell);
    return seen;
  };
  expect((await capstan([], 'never')).stdout).toBe('nothing is older than it is kept\n');
  expect((await capstan(['--dry-run'], '29')).stdout).toBe('would be deleted:\n  1  runs\n');
  expect((await capstan(['--json'], '29')).stdout).toContain('"run":1');
  expect(await db('run')).toEqual([]);
  expect((await capstan([], '3')).stderr).toMatch(
    /^error usage: configuration: .*>=7[\s\S]*RUN_RETENTION_DAYS/,
  );
});

test('the error for a missing run explains its deletion where the id is old, and only there', () => {
  const { message } = noSuchRun('run_01000000-0000-7000-8000-000000000000');
  expect(message).toMatch(/there is no run run_0100.*; its id is \d+ days old, and runs are deleted/);
  expect(noSuchRun('run_x').message).toBe('there is no run run_x');
});
