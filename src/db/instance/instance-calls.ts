/**
 * Results of an instance's calls: its breaker (null `breaker_until` = closed), its speed, and calls above their worst
 * case; and the uptime of its process.
 */
import { overrunSpanMs } from '@capstan/core/contracts/limits';
import type { Db } from '../connect.ts';
import { query, toJsonb } from '../statements.ts';

/** Consecutive faults; a failed trial call through a half-open breaker; a half-open instance whose `/health` fails. */
export type OpeningReason = 'faults' | 'trial' | 'health';

/**
 * Opens a breaker: `faults` a closed one, `trial` any, `health` a half-open one. A breaker that another process opened
 * meanwhile stays unchanged.
 * @param openMs duration, from the number of consecutive openings before
 * @returns the duration in ms; null: it was not opened
 */
export function openBreaker(
  db: Db,
  instanceId: string,
  { because, openMs }: { readonly because: OpeningReason; readonly openMs: (openings: number) => number },
): Promise<number | null> {
  return db.transaction(async (trx) => {
    const rows = await query<{ breaker_openings: number; reasons: readonly OpeningReason[] }>(trx).all(
      `select breaker_openings, case when breaker_until is null then array['faults', 'trial']
         when breaker_until <= clock_timestamp() then array['trial', 'health'] else array['trial'] end as reasons
       from instance where instance_id = ? for no key update`,
      [instanceId],
    );
    const [row] = rows;
    if (row === undefined || !row.reasons.includes(because)) return null;
    const ms = Math.round(openMs(row.breaker_openings));
    await trx.raw(
      `update instance set breaker_openings = breaker_openings + 1,
         breaker_until = clock_timestamp() + ? * interval '1 millisecond' where instance_id = ?`,
      [ms, instanceId],
    );
    return ms;
  });
}

export async function closeBreaker(db: Db, instanceId: string): Promise<void> {
  await db.raw('update instance set breaker_until = null, breaker_openings = 0 where instance_id = ?', [
    instanceId,
  ]);
}

/** Counts a call that cost more than the worst case that its instance declared. Projects without one for an hour go. */
export async function recordOverrun(db: Db, instanceId: string, projectId: string): Promise<void> {
  await db.raw(
    `update instance set overruns = overruns + 1, overran = jsonb_build_object(:projectId::text,
         jsonb_build_array(m.ms, overran -> :projectId::text -> 0, overran -> :projectId::text -> 1))
       || (select coalesce(jsonb_object_agg(o.key, o.value), '{}') from jsonb_each(overran) o
         where o.key <> :projectId and (o.value ->> 0)::float8 > m.ms - :spanMs::float8)
     from (select round(extract(epoch from clock_timestamp()) * 1000) as ms) m where instance_id = :instanceId`,
    { instanceId, projectId, spanMs: overrunSpanMs },
  );
}

/** From so many calls on, earlier ones count half. */
const mostLengths = 4_000;

/** Of the instance `i` and its report `r`. */
const addedLengths = `case when r.lengths is null then i.lengths else (
  select array_agg((coalesce(o.old, 0) + coalesce(o.new, 0)) / case when o.total > ${mostLengths} then 2 else 1 end
    order by o.ordinality)
  from (select u.*, sum(u.old) over () as total from unnest(i.lengths, r.lengths) with ordinality u (old, new)) o) end`;

/** Calls that a process saw of an instance since its last report, as weights for the stored moving averages. */
interface SpeedReport {
  readonly instance_id: string;
  /** Durations of successful calls in order, ms. */
  readonly durations: readonly number[];
  /** Cost of each of them, USD. */
  readonly costs: readonly number[];
  /** How many of them used so many units, by `lengthBucket`; null: their cost does not grow. */
  readonly lengths: readonly number[] | null;
  /** Weight of each call in the new averages. */
  readonly weights: readonly number[];
  /** Weight that the stored average keeps. */
  readonly kept: number;
  /** Factor by which the stored counts decay before the new ones are added. */
  readonly decay: number;
  readonly successes: number;
  readonly failures: number;
}

/**
 * Merges reports into the stored averages, in one statement. The first call initialises an average that does not exist
 * yet. Rows are locked in order of their ids, so that two processes cannot deadlock.
 */
export async function foldSpeedReports(db: Db, reports: readonly SpeedReport[]): Promise<void> {
  const calls = reports.flatMap(({ instance_id, durations, costs, weights }) =>
    durations.map((duration, at) => ({
      instance_id,
      duration,
      cost: costs[at],
      weight: weights[at],
      first: durations[0],
      first_cost: costs[0],
    })),
  );
  await db.raw(
    `with report as (
       select * from json_to_recordset(?::json) as r (instance_id text, kept float8, decay float8,
         successes float8, failures float8, lengths int[])
     ), locked as (
       select instance_id, duration_ms, deviation_ms, mean_cost_usd from instance
       where instance_id in (select instance_id from report) order by instance_id for no key update
     ), speed as (
       select c.instance_id, sum(c.weight * c.duration) as duration, min(c.first) as first,
         sum(c.weight * c.cost) as cost, min(c.first_cost) as first_cost,
         sum(c.weight * abs(c.duration - coalesce(l.duration_ms, c.first))) as deviation
       from json_to_recordset(?::json) as c (instance_id text, duration float8, cost float8, weight float8,
         first float8, first_cost float8)
       join locked l using (instance_id) group by 1
     )
     update instance i set
       duration_ms = coalesce(r.kept * coalesce(l.duration_ms, s.first) + s.duration, l.duration_ms),
       deviation_ms = coalesce(r.kept * coalesce(l.deviation_ms, 0) + s.deviation, l.deviation_ms),
       mean_cost_usd = coalesce(r.kept * coalesce(l.mean_cost_usd, s.first_cost) + s.cost, l.mean_cost_usd),
       success_count = i.success_count * r.decay + r.successes,
       failure_count = i.failure_count * r.decay + r.failures,
       lengths = ${addedLengths}, last_call_at = case when r.successes > 0 then now() else i.last_call_at end
     from report r join locked l using (instance_id) left join speed s using (instance_id)
     where i.instance_id = r.instance_id`,
    [toJsonb(reports.map(({ durations, costs, weights, ...report }) => report)), toJsonb(calls)],
  );
}

export async function recordUptime(db: Db, instanceId: string, uptimeMs: number): Promise<void> {
  await db.raw('update instance set uptime_ms = ?, uptime_at = now() where instance_id = ?', [
    uptimeMs,
    instanceId,
  ]);
}

/** Resets breaker and speed to those of an instance that was never called. */
export async function forgetCalls(db: Db, instanceId: string): Promise<void> {
  await db.raw(
    `update instance set breaker_until = null, breaker_openings = 0, duration_ms = null, deviation_ms = null,
       mean_cost_usd = null, success_count = 0, failure_count = 0, lengths = null, resident = '{}', most_reported = 1,
       distrusted = '{}', pace = null, last_call_at = null
     where instance_id = ?`,
    [instanceId],
  );
}
