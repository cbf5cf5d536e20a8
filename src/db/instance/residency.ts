/** What instances have loaded, and how long calls take by it (core/residency/residency.ts). */
import { mostResident, mostTimed, timedMs } from '@capstan/core/contracts/limits';
import type { Db } from '../connect.ts';
import { query, toJsonb } from '../statements.ts';

const mostReported = 'greatest(i.most_reported, cardinality(r.keys))';
const reportedKeys = `merge_keys(array(select k from unnest(i.resident) with ordinality u (k, at)
  where k = any (r.keys) or at = 1 and exists (select from attempt a where a.instance_id = i.instance_id
    and a.state in ('reserved', 'dispatched')) order by at), r.keys, ${mostResident})`;

/**
 * Replaces the list of an instance by its report; the keys that it has served keep their order. A report that changes
 * nothing locks no row: instances repeat theirs with each answer.
 */
export async function recordResident(db: Db, instanceId: string, keys: readonly string[]): Promise<void> {
  const reported = [...new Set(keys)];
  await db.raw(
    `update instance i set most_reported = ${mostReported}, resident = ${reportedKeys}
     from (select cast(:reported as text[]) as keys) r where i.instance_id = :instanceId
       and (i.most_reported, i.resident) is distinct from (${mostReported}, ${reportedKeys})`,
    { reported, instanceId },
  );
}

export interface ServedKeys {
  readonly instance_id: string;
  /** The latest first. */
  readonly keys: readonly string[];
}

/** Notes the keys of calls that begin. Rows are locked in order of their ids, as by foldSpeedReports. */
export async function serveKeys(db: Db, served: readonly ServedKeys[]): Promise<void> {
  await db.raw(
    `with served as (select * from json_to_recordset(?::json) as s (instance_id text, keys text[])),
     locked as (select instance_id from instance where instance_id in (select instance_id from served)
       order by instance_id for no key update)
     update instance i set resident = merge_keys(s.keys, i.resident,
       least(${mostResident}, coalesce(i.max_resident, i.most_reported)))
     from served s join locked l using (instance_id) where i.instance_id = s.instance_id`,
    [toJsonb(served)],
  );
}

/** Takes keys off the lists of instances, whose calls have failed to load them. */
export async function dropKeys(db: Db, lost: readonly ServedKeys[]): Promise<void> {
  await db.raw(
    `with lost as (select * from json_to_recordset(?::json) as s (instance_id text, keys text[])),
     locked as (select instance_id from instance join lost l using (instance_id) where resident && l.keys
       order by instance_id for no key update of instance)
     update instance i set resident = array(
       select k from unnest(i.resident) with ordinality u (k, at) where k <> all (s.keys) order by at)
     from lost s join locked l using (instance_id) where i.instance_id = s.instance_id`,
    [toJsonb(lost)],
  );
}

/** Several calls folded: new average = kept × old + sum; `first` stands for an average that is not there yet. */
interface FoldedCalls {
  readonly kept: number;
  readonly sum: number;
  readonly first: number;
}

/** Calls that a process saw with a key since its last report. */
export interface LoadReport {
  readonly owner_project: string;
  readonly name: string;
  readonly key: string;
  readonly warm: FoldedCalls | undefined;
  readonly cold: FoldedCalls | undefined;
}

function folded(side: 'warm' | 'cold', known: string): string {
  return `case when r.${side} is null then ${known} else (r.${side} ->> 'kept')::float8
    * coalesce(${known}, (r.${side} ->> 'first')::float8) + (r.${side} ->> 'sum')::float8 end`;
}

/** Merges reports into the averages. The keys are written in order, so that processes never deadlock. */
export async function foldLoadTimes(db: Db, reports: readonly LoadReport[]): Promise<void> {
  await db.raw(
    `with report as (
       select r.*, t.warm_ms, t.cold_ms from json_to_recordset(?::json) as
         r (owner_project text, name text, key text, warm jsonb, cold jsonb)
       left join load_time t using (owner_project, name, key)
       where exists (select from project p where p.project_id = r.owner_project and p.erasing_since is null)
     )
     insert into load_time as t (owner_project, name, key, warm_ms, cold_ms)
     select owner_project, name, key, ${folded('warm', 'r.warm_ms')}, ${folded('cold', 'r.cold_ms')} from report r
     order by owner_project, name, key
     on conflict (owner_project, name, key) do update set warm_ms = excluded.warm_ms, cold_ms = excluded.cold_ms,
       seen_at = now(), changed_xid = pg_current_xact_id()`,
    [toJsonb(reports)],
  );
  await forgetKeys(db, reports);
}

/** Deletes the times of all but the newest keys. A key that another process writes now stays. */
async function forgetKeys(db: Db, capabilities: readonly Pick<LoadReport, 'name' | 'owner_project'>[]) {
  await db.raw(
    `with old as (select owner_project, name, key, seen_at from (
       select t.*, row_number() over (partition by owner_project, name order by seen_at desc) as place from load_time t
       where key <> '' and (owner_project, name) in (
         select owner_project, name from json_to_recordset(?::json) as r (owner_project text, name text))) t
       where place > ${mostTimed}),
     locked as (select owner_project, name, key from load_time where (owner_project, name, key, seen_at) in (select * from old)
       for update skip locked)
     delete from load_time where (owner_project, name, key) in (select * from locked)`,
    [toJsonb(capabilities.map(({ owner_project, name }) => ({ owner_project, name })))],
  );
}

/** What calls have shown of an instance since the last report of this process. */
export interface InstanceLesson {
  readonly instance_id: string;
  readonly pace: FoldedCalls;
  /** Keys that it reported wrongly, and until when they are not believed, Unix ms. */
  readonly distrusted: Readonly<Record<string, number>>;
}

export async function foldLessons(db: Db, lessons: readonly InstanceLesson[]): Promise<void> {
  await db.raw(
    `with lesson as (select * from json_to_recordset(?::json) as l (instance_id text, pace jsonb, distrusted jsonb)),
     locked as (select instance_id from instance where instance_id in (select instance_id from lesson)
       order by instance_id for no key update)
     update instance i set
       pace = (r.pace ->> 'kept')::float8 * coalesce(i.pace, 1) + (r.pace ->> 'sum')::float8,
       distrusted = (select coalesce(jsonb_object_agg(key, value), '{}') from (
         select key, value from jsonb_each(i.distrusted || r.distrusted)
         where value::float8 > extract(epoch from now()) * 1000 order by value::float8 desc limit ${mostResident}) d)
     from lesson r join locked l using (instance_id) where i.instance_id = r.instance_id`,
    [toJsonb(lessons)],
  );
}

/** Deletes the times of keys without a call for a day; those of all keys stay for a week. @returns how many */
export function purgeLoadTimes(db: Db): Promise<number> {
  return query(db).written(
    `delete from load_time where seen_at < now() - interval '${timedMs} milliseconds'
       and (key <> '' or seen_at < now() - interval '7 days')`,
  );
}
