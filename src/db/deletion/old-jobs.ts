/**
 * Jobs without runs whose files are no longer in use: no open run, stored pipeline or schedule refers to them. A job is
 * also kept while it is in use itself: an added or announced file extends its life like its own creation.
 *
 * No foreign key refers to files, so ids of jobs are searched in the texts of a project's open runs, stored pipelines
 * and schedules. A project may have any amount of text: it is read in pages limited by bytes, and later texts are read
 * again by their time.
 */
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import { lineOf } from './deleted-tables.ts';

interface Source {
  readonly keys: readonly string[];
  /** A value below every key. */
  readonly least: readonly string[];
  readonly from: string;
  /** Selects rows from `:since` on. */
  readonly isNew: string;
  readonly body: string;
}

const openRuns = 'from run r';
const isOpen = 'r.project_id = :projectId and r.finished_at is null';

const sources: readonly Source[] = [
  {
    keys: ['r.run_id'],
    least: [''],
    from: `${openRuns} join job j using (job_id) where ${isOpen}`,
    isNew: 'r.created_at >= :since',
    body: 'j.body',
  },
  {
    keys: ['s.run_id', 's.step_id', 's.item'],
    least: ['', '', '-1'],
    from: `${openRuns} join step s using (run_id) where ${isOpen} and r.run_id >= :key_0 and s.output is not null`,
    isNew: '(r.created_at >= :since or s.finished_at >= :since)',
    body: 's.output',
  },
  {
    keys: ['d.digest'],
    least: [''],
    from: `from definition d where d.digest in (select r.digest ${openRuns} where ${isOpen} and :new)`,
    isNew: 'r.created_at >= :since',
    body: 'd.body',
  },
  {
    keys: ['d.digest'],
    least: [''],
    from: `from definition d where d.digest in
      (select v.digest from pipeline_version v where v.project_id = :projectId and :new)`,
    isNew: 'v.created_at >= :since',
    body: 'd.body',
  },
  {
    keys: ['c.schedule_id'],
    least: [''],
    from: 'from schedule c where c.project_id = :projectId and c.deleted_at is null',
    isNew: 'c.updated_at >= :since',
    body: 'c.body',
  },
];

/** The start of the next page. */
interface NamesPlace {
  readonly source: number;
  readonly keys: readonly string[];
}

interface NamesPage {
  readonly jobIds: readonly string[];
  /** Null: this was the last page. */
  readonly next: NamesPlace | null;
}

interface NamesOrder {
  readonly projectId: string;
  /** Only texts since then; null: all. */
  readonly since: Date | null;
}

const rowsOfPage = 1_000;
/**
 * Stored, compressed bytes. A page is completed with the text that reaches the limit, so a single text may be larger.
 */
const bytesOfPage = 4 * 1_048_576;

export const firstNames: NamesPlace = { source: 0, keys: sources[0]?.least ?? [] };

/** Every row but the last has a key less than that of the next. */
function statementOf({ keys, from, isNew, body }: Source, { since }: NamesOrder): string {
  const condition = since === null ? 'true' : isNew;
  const where = from.includes(':new') ? from.replace(':new', condition) : `${from} and ${condition}`;
  const place = keys.map((key, n) => (key === 's.item' ? `:key_${n}::int` : `:key_${n}`));
  const order = keys.join(', ');
  return `with read as materialized (
      select key, body, row_number() over () as n from (
        select array[${keys.map((key) => `${key}::text`).join(', ')}] as key, ${body} as body
        ${where} and (${order}) > (${place.join(', ')}) order by ${order} limit :rows) t
    ), weighed as (
      select *, sum(pg_column_size(body)) over (order by n) - pg_column_size(body) as bytes_before from read
    ), page as materialized (select * from weighed where bytes_before < :bytes)
    select array(select distinct lower(found.match[1]) from page
        cross join lateral regexp_matches(body::text, 'media://(job_[0-9a-f-]+)', 'gi') found (match)) as job_ids,
      (select key from page order by n desc limit 1) as last,
      (select count(*) from page)::int < (select count(*) from read)::int or (select count(*) from read) = :rows as is_more`;
}

interface PageRow {
  readonly job_ids: string[];
  readonly last: string[] | null;
  readonly is_more: boolean;
}

export async function readNames(db: Db, order: NamesOrder, place: NamesPlace): Promise<NamesPage> {
  const source = sources[place.source];
  if (source === undefined) return { jobIds: [], next: null };
  const { rows } = await db.raw<{ rows: [PageRow] }>(statementOf(source, order), {
    projectId: order.projectId,
    rows: rowsOfPage,
    bytes: bytesOfPage,
    ...(order.since === null ? {} : { since: order.since }),
    ...Object.fromEntries(place.keys.map((key, n) => [`key_${n}`, key])),
  });
  const [{ job_ids: jobIds, last, is_more }] = rows;
  if (is_more && last !== null) return { jobIds, next: { source: place.source, keys: last } };
  const following = sources[place.source + 1];
  return {
    jobIds,
    next: following === undefined ? null : { source: place.source + 1, keys: following.least },
  };
}

/** Reads all pages. @returns null if it was stopped before the last one */
export async function listNames(
  db: Db,
  order: NamesOrder,
  isStopping: () => boolean = () => false,
): Promise<ReadonlySet<string> | null> {
  const named = new Set<string>();
  let place: NamesPlace | null = firstNames;
  while (place !== null) {
    if (isStopping()) return null;
    const page: NamesPage = await readNames(db, order, place);
    for (const id of page.jobIds) named.add(id);
    place = page.next;
  }
  return named;
}

export async function readClock(db: Db): Promise<Date> {
  const row = await query<{ now: Date }>(db).one('select clock_timestamp() as now');
  return row.now;
}

interface JobPage {
  readonly createdBefore: Date;
  /** Jobs with later ids are not examined. */
  readonly upTo: string;
  /** Continues after this id. */
  readonly after: string;
  readonly limit: number;
}

/** With `isTrial`, runs that ended earlier count as deleted. */
interface JobSelection extends JobPage {
  readonly isTrial: boolean;
}

/** An announced file may be uploaded directly to the store, unnoticed by us. */
const hasYoungFile = `exists (select from media_object o where o.job_id = j.job_id and o.created_at >= :createdBefore)`;

export interface OwnedJob {
  readonly job_id: string;
  readonly project_id: string;
}

/** Neither locked yet nor checked for references. */
export function listRunlessJobs(
  db: Db,
  { createdBefore, upTo, after, limit, isTrial }: JobSelection,
): Promise<readonly OwnedJob[]> {
  return query<OwnedJob>(db).all(
    `select job_id, project_id from job j
     where job_id > :after and job_id < :upTo and created_at < :createdBefore
       and not exists (select from run r where r.job_id = j.job_id
         and (not :isTrial or r.finished_at is null or r.finished_at >= :createdBefore))
       and not ${hasYoungFile}
     order by job_id limit :limit`,
    { createdBefore, upTo, after, limit, isTrial },
  );
}

/** Jobs that have received runs or files since. Read after the locks, so that all commits before them are visible. */
async function listUsed(
  trx: Db,
  jobIds: readonly string[],
  { isTrial, createdBefore }: Pick<JobSelection, 'isTrial' | 'createdBefore'>,
): Promise<ReadonlySet<string>> {
  const rows = await query<{ job_id: string }>(trx).all(
    `select job_id from job j where job_id = any (:jobIds)
       and (not :isTrial and exists (select from run r where r.job_id = j.job_id) or ${hasYoungFile})`,
    { jobIds: [...jobIds], isTrial, createdBefore },
  );
  return new Set(rows.map(({ job_id }) => job_id));
}

/** Names found earlier, and the time after which there may be others. */
export interface KnownNames {
  readonly named: ReadonlySet<string>;
  readonly since: Date;
}

/**
 * Prevents new runs, references (db/run/job.ts) and files of these jobs until the transaction ends.
 *
 * @param known by project
 * @returns the jobs that may be deleted
 */
export async function lockUnneededJobs(
  trx: Db,
  jobs: readonly OwnedJob[],
  {
    known,
    ...selection
  }: Pick<JobSelection, 'isTrial' | 'createdBefore'> & { readonly known: ReadonlyMap<string, KnownNames> },
): Promise<readonly string[]> {
  const rows = await query<OwnedJob>(trx).all(
    'select job_id, project_id from job where job_id = any (?) order by job_id for update skip locked',
    [jobs.map(({ job_id }) => job_id)],
  );
  const named = new Set<string>();
  for (const projectId of new Set(rows.map(({ project_id }) => project_id))) {
    const names = known.get(projectId);
    if (names === undefined) continue;
    for (const id of names.named) named.add(id);
    for (const id of (await listNames(trx, { projectId, since: names.since })) ?? []) named.add(id);
  }
  const locked = rows.filter(({ project_id }) => known.has(project_id)).map(({ job_id }) => job_id);
  const used = await listUsed(trx, locked, selection);
  return locked.filter((id) => !named.has(id) && !used.has(id));
}

/** Lists a line of JSON for each job, in the format of run rows, and for each known file. */
export async function listJobLines(trx: Db, jobIds: readonly string[]): Promise<readonly string[]> {
  const rows = await query<{ line: string }>(trx).all(
    `select ${lineOf('job', 'j')} from job j where job_id = any (:jobIds)
     union all select ${lineOf('media_object', 'o')} from media_object o where job_id = any (:jobIds)`,
    { jobIds: [...jobIds] },
  );
  return rows.map(({ line }) => line);
}

/** Deletes the rows of jobs, and notes that their files are still to be deleted. @returns how many */
export async function leaveJobs(trx: Db, jobIds: readonly string[]): Promise<number> {
  const bindings = { jobIds: [...jobIds] };
  await trx.raw('delete from media_object where job_id = any (:jobIds)', bindings);
  return query(trx).written(
    `with gone as (delete from job where job_id = any (:jobIds) returning job_id, project_id)
     insert into leaving_job (job_id, project_id) select job_id, project_id from gone`,
    bindings,
  );
}

/** Jobs whose files are to be deleted, by id. @param projectId only those of this project */
export async function listLeavingJobs(
  db: Db,
  { after, limit, projectId = null }: { after: string; limit: number; projectId?: string | null },
): Promise<readonly string[]> {
  const rows = await query<{ job_id: string }>(db).all(
    `select job_id from leaving_job
     where job_id > :after and project_id = coalesce(:projectId, project_id) order by job_id limit :limit`,
    { after, limit, projectId },
  );
  return rows.map(({ job_id }) => job_id);
}

/** Call this after their files are deleted. */
export async function forgetLeavingJobs(db: Db, jobIds: readonly string[]): Promise<void> {
  await db('leaving_job')
    .whereIn('job_id', [...jobIds])
    .delete();
}

export async function deleteJobs(trx: Db, jobIds: readonly string[]): Promise<number> {
  return trx('job').whereIn('job_id', jobIds).delete();
}
