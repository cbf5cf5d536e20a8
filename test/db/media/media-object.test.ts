import pg from 'pg';
import { expect, test } from 'vitest';
import { keepFacts, sumBytes } from '../../../src/db/media.ts';
import { insertJob } from '../../../src/db/run/job.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';
import { untilLocked } from '../../support/locks.ts';
import { waitFor } from '../../support/wait.ts';

const { db, url } = useDatabase();

const facts = { size: 1, sha256: '00'.repeat(32), content_type: 'text/plain', etag: 'one' };

test('nothing is kept of a job that is deleted at that moment', async () => {
  const { project_id } = await aProject(db);
  await insertJob(db, { project_id, job_id: 'job_going' }, {});
  const trx = await db.transaction();
  await trx('job').where({ job_id: 'job_going' }).delete();
  const keeping = keepFacts(db, { job_id: 'job_going', file: 'a' }, facts);
  await untilLocked(db, 'insert into media_object');
  await trx.commit();
  expect(await keeping).toBe(false);
  expect(await keepFacts(db, { job_id: 'job_going', file: 'a' }, facts)).toBe(false);
});

/** How the database does what `work` asks of it, with the same values. */
async function explain(work: () => Promise<unknown>): Promise<string> {
  const asked: { sql: string; bindings: unknown[] }[] = [];
  const note = (query: { sql: string; bindings: unknown[] }) => void asked.push(query);
  db.on('query', note);
  await work();
  db.off('query', note);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const plans: string[] = [];
  for (const { sql, bindings } of asked) {
    const { rows } = await client.query(`explain ${sql}`, bindings);
    plans.push(...rows.map((row) => String(row['QUERY PLAN'])));
  }
  await client.end();
  return plans.join('\n');
}

test('the bytes of a project are summed without a look at the rows of its files', async () => {
  const jobs: string[] = [];
  for (const job_id of ['job_one', 'job_two', 'job_three']) {
    const { project_id } = await aProject(db);
    await insertJob(db, { project_id, job_id }, {});
    jobs.push(job_id);
  }
  await db.raw(
    `insert into media_object (project_id, job_id, file, size, sha256, content_type, state, etag)
     select project_id, job_id, 'file-' || n, n, sha256(n::text::bytea), 'video/mp4', 'stored', md5(n::text)
       from job, generate_series(1, 2000) n where job_id = any (?)`,
    [jobs],
  );
  await waitFor('pages that every transaction sees', async () => {
    await db.raw('vacuum analyze media_object');
    const { rows } = await db.raw<{ rows: { is_seen: boolean }[] }>(
      `select relallvisible > 0.9 * relpages as is_seen from pg_class where oid = 'media_object'::regclass`,
    );
    return rows[0]?.is_seen;
  });
  const place = { job_id: 'job_one', file: 'file-1' };
  expect(await sumBytes(db, place)).toBe((2_000 * 2_001) / 2 - 1);
  expect(await sumBytes(db, { job_id: 'job_none', file: 'a' })).toBe(0);
  const plan = await explain(() => sumBytes(db, place));
  expect(plan).toContain('Index Only Scan using media_object_by_project');
});
