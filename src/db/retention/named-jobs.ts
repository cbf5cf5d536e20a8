/**
 * Whose files something may still read: ids of jobs in the texts of a project's open runs, stored pipelines and schedules.
 * Files stand in no table's foreign keys, so their names are looked for. A project may have any amount of text: it is read
 * in pages that are bounded by bytes, and what comes meanwhile is read again by its time.
 */
import type { Db } from '../connect.ts';

interface Source {
  readonly keys: readonly string[];
  /** What is less than every key. */
  readonly least: readonly string[];
  readonly from: string;
  /** `:since` or later. */
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

/** Where the next page begins. */
export interface NamesPlace {
  readonly source: number;
  readonly keys: readonly string[];
}

export interface NamesPage {
  readonly jobIds: readonly string[];
  /** Null: it was the last one. */
  readonly next: NamesPlace | null;
}

export interface NamesOrder {
  readonly projectId: string;
  /** Only what came since; null: everything. */
  readonly since: Date | null;
}

const rowsOfPage = 1_000;
/** As they are stored, which is compressed. What one page begins it also ends, so one text may be larger. */
const bytesOfPage = 4 * 1_048_576;

export const firstNames: NamesPlace = { source: 0, keys: sources[0]?.least ?? [] };

/** A row that is not the last one has a key less than the next one's. */
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

/** All pages. @returns null when it was stopped before the last one */
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
  const { rows } = await db.raw<{ rows: [{ now: Date }] }>('select clock_timestamp() as now');
  return rows[0].now;
}
