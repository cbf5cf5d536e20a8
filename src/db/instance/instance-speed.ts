import type { Db } from '../connect.ts';

/** What a process saw of an instance since its last report, as weights for the stored moving averages. */
export interface SpeedReport {
  readonly instance_id: string;
  /** Durations of successful calls in order, ms. */
  readonly durations: readonly number[];
  /** What each of them cost, USD. */
  readonly costs: readonly number[];
  /** Weight of each call in the new averages. */
  readonly weights: readonly number[];
  /** Weight that the stored average keeps. */
  readonly kept: number;
  /** Factor by which the stored counts decay, and what is added to them. */
  readonly decay: number;
  readonly successes: number;
  readonly failures: number;
}

/**
 * Folds reports into the stored averages, by one statement. The first call of all stands in for an average that
 * does not exist yet. Rows are locked in order of their ids, so that two processes cannot deadlock.
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
         successes float8, failures float8)
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
       failure_count = i.failure_count * r.decay + r.failures
     from report r join locked l using (instance_id) left join speed s using (instance_id)
     where i.instance_id = r.instance_id`,
    [
      JSON.stringify(reports.map(({ durations, costs, weights, ...report }) => report)),
      JSON.stringify(calls),
    ],
  );
}
