import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  firstNames,
  listNames,
  lockUnneededJobs,
  readClock,
  readNames,
} from '../../../src/db/deletion/old-jobs.ts';
import { insertJob, lockJobs } from '../../../src/db/run/job.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject, aRun } from '../../support/factories.ts';

const { db } = useDatabase();

async function aJob(project_id: string): Promise<string> {
  const job_id = newId('job');
  await insertJob(db, { project_id, job_id }, {});
  return job_id;
}

/** @param output text of it */
async function addResult(runId: string, step_id: string, output: string): Promise<void> {
  const finished_at = db.fn.now();
  await db('step').insert({ run_id: runId, step_id, state: 'succeeded', output, finished_at });
}

/** No shorter when it is compressed. */
function aLongText(): string {
  return JSON.stringify(randomBytes(1_000_000).toString('base64'));
}

test('names are read in pages that are bounded, over any number of open runs, and each is found', async () => {
  const { project_id } = await aProject(db);
  const named = [await aJob(project_id), await aJob(project_id)];
  const runs = [];
  for (let n = 0; n < 4; n++) runs.push((await aRun(db, { project_id })).run_id);
  await addResult(runs[0] ?? '', 'first', JSON.stringify({ a: `media://${named[0]}/a` }));
  const long = aLongText();
  for (const run of runs) for (let n = 0; n < 3; n++) await addResult(run, `long_${n}`, long);
  await addResult(runs[3] ?? '', 'zzz', JSON.stringify({ 'see MEDIA://': `MEDIA://${named[1]}/b` }));
  const order = { projectId: project_id, since: null };
  let pages = 0;
  for (let place: typeof firstNames | null = firstNames; place !== null; pages++)
    place = (await readNames(db, order, place)).next;
  expect(pages).toBeGreaterThan(6); // one for each kind of text, and more for the results
  expect(await listNames(db, order)).toEqual(new Set(named));
  expect(await listNames(db, order, () => pages-- < 3)).toBeNull();
});

test('a result since the names were read keeps its job, and so does one that is being written', async () => {
  const { project_id } = await aProject(db);
  const jobs = await Promise.all(Array.from({ length: 4 }, () => aJob(project_id)));
  const [free = '', early = '', late = '', held = ''] = jobs;
  const { run_id } = await aRun(db, { project_id });
  await addResult(run_id, 'early', JSON.stringify(`media://${early}/a`));
  const since = await readClock(db);
  const named = (await listNames(db, { projectId: project_id, since: null })) ?? expect.fail();
  await addResult(run_id, 'late', JSON.stringify(`media://${late}/a`));
  const submission = await db.transaction();
  expect(await lockJobs(submission, project_id, [held])).toEqual(new Set([held]));
  const all = jobs.map((job_id) => ({ job_id, project_id }));
  const selection = {
    isTrial: false,
    createdBefore: new Date(0),
    known: new Map([[project_id, { named, since }]]),
  };
  expect(await db.transaction((trx) => lockUnneededJobs(trx, all, selection))).toEqual([free]);
  await submission.rollback();
  const unknown = { ...selection, known: new Map() };
  expect(await db.transaction((trx) => lockUnneededJobs(trx, all, unknown))).toEqual([]);
});
