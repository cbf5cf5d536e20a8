/** Why a run `r` stands where it stands, as columns of any query over runs; each reads by an index of its run alone. */
import type { Awaiting, RunFollows, StepState } from '../../contracts/run.ts';

/** What a step or item `s` waits for; one that is tried again because nobody takes it waits for an instance or money. */
export const awaitedByStep = `case s.state when 'in_review' then 'review' when 'waiting' then s.awaiting
   when 'retrying' then case s.error ->> 'code' when 'no_instance' then 'capability' when 'budget_reserved' then 'budget' end
   end`;

/** Ids of the run and of all below it. */
export const runsWithin = `case when exists (select from run b where b.parent_run_id = r.run_id)
   then with_runs_below(r.run_id) else array[r.run_id] end`;

/** What some of its steps and items, and of the runs below it, wait for, each once; empty when it has ended. */
export const awaitingOfRun = `case when r.finished_at is not null then '{}' else array(
   select distinct w.awaited from step s cross join lateral (select ${awaitedByStep} as awaited) w
   where s.run_id = any (${runsWithin}) and s.state in ('waiting', 'in_review', 'retrying') and w.awaited is not null
   order by 1) end`;

/** How many of its steps are in which state, of those that have a row. */
export const stepsOfRun = `(select coalesce(json_object_agg(state, steps), '{}') from (
   select state, count(*)::int as steps from step where run_id = r.run_id and item = 0 group by state) t)`;

/**
 * The ladder with the same failure that one of its own waits for before it asks anybody (L9). One that has given the
 * wait up asks at once, and is then known by its own advice.
 */
export const followsOfRun = `case when r.finished_at is null then (
   select json_strip_nulls(json_build_object('escalation_id', l.escalation_id, 'run_id', l.run_id, 'step_id', l.step_id,
     'review_id', case l.state when 'in_review' then l.review_id end))
   from escalation e join escalation l on l.escalation_id = e.leader_id
   where e.run_id = r.run_id and e.state = 'running' and e.escalation_advice = '[]'
     and l.state in ('running', 'in_review')
   order by e.escalation_id limit 1) end`;

export interface RunStandingColumns {
  readonly awaiting: readonly Awaiting[];
  readonly follows: RunFollows | null;
}

export interface StepCountColumns {
  readonly digest: string;
  readonly step_counts: Readonly<Partial<Record<StepState, number>>>;
}
