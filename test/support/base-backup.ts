/** A physical backup of a running Postgres, made like that of `pg_basebackup`: files first, log last. */
import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';

const run = promisify(execFile);

/** @param dataFolder of the server @param copy must not exist */
export async function takeBaseBackup(url: string, dataFolder: string, copy: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`select pg_backup_start('copy', true)`);
    // Files change and vanish during the copy; the log repairs that.
    await run('cp', ['-a', dataFolder, copy]).catch(() => undefined);
    const { rows } = await client.query('select labelfile from pg_backup_stop(wait_for_archive => false)');
    await rm(join(copy, 'pg_wal'), { recursive: true });
    await run('cp', ['-a', join(dataFolder, 'pg_wal'), join(copy, 'pg_wal')]);
    await rm(join(copy, 'postmaster.pid'), { force: true });
    await writeFile(join(copy, 'backup_label'), rows[0].labelfile);
    await run('chown', ['--reference', join(copy, 'PG_VERSION'), join(copy, 'backup_label')]);
  } finally {
    await client.end();
  }
}
