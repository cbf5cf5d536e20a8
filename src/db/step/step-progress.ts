/** What a run decided about its steps without an attempt: several at once, by one statement, each told once. */
import type { Failure } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';
import { toJsonb } from '../jsonb.ts';
import { openSteps, waitOver } from './step.ts';

/** What is decided of a step that is due: it does not happen, happens once per item, or cannot be said. */
export type StepDecision =
  | { readonly step_id: string; readonly state: 'skipped' }
  | { readonly step_id: string; readonly state: 'running'; readonly items: number }
  | { readonly step_id: string; readonly state: 'failed'; readonly error: Failure };

/** A step that has a row stays as it is. */
export async function recordDecisions(
  db: Db,
  runId: string,
  decisions: readonly StepDecision[],
): Promise<void> {
  await db.raw(
    `with due as materialized (
       select * from rows from (jsonb_to_recordset(cast(:decisions as jsonb))
         as (step_id text, state text, items int, error jsonb)) with ordinality
     ), decided as (
       insert into step (run_id, step_id, item, state, items, error, started_at, finished_at)
       select :runId, step_id, 0, state, items, error, case state when 'running' then clock_timestamp() end,
         case when state <> 'running' then clock_timestamp() end
       from due order by ordinality on conflict do nothing returning step_id
     )
     insert into event (run_id, type, step_id, data)
     select :runId, 'step.' || case state when 'running' then 'started' else state end, step_id,
       case state when 'running' then jsonb_build_object('items', items)
         when 'skipped' then '{"reason": "when"}' else jsonb_build_object('error', error) end
     from due join decided using (step_id) order by ordinality`,
    { runId, decisions: toJsonb(decisions) },
  );
}

export interface StepChange {
  readonly step_id: string;
  /** 0 = the step as a whole. */
  readonly item: number;
  readonly state: 'skipped' | 'succeeded' | 'failed' | 'cancelled';
  /** Absent = the one that the row has. */
  readonly error?: Failure | undefined;
}

const endAll = `with due as materialized (
   select * from rows from (jsonb_to_recordset(cast(:changes as jsonb))
     as (step_id text, item int, state text, error jsonb)) with ordinality
 ), locked as materialized (
   select s.step_id, s.item, s.state, s.awaiting, s.sub_run_id from due d join step s
     on s.run_id = :runId and s.step_id = d.step_id and s.item = d.item
   where s.state in ${openSteps} order by s.step_id, s.item for update of s
 ), held as (
   select * from locked where state in ('waiting', 'in_review', 'retrying')
 ), stopped as (
   update run r set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_mode = 'graceful',
     cancel_reason = 'the step that started it was given up'
   from held h where h.awaiting = 'run' and r.run_id = h.sub_run_id and r.state in ('queued', 'running', 'paused')
   returning r.run_id, r.cancel_reason
 ), withdrawn as (
   update review r set state = 'cancelled', decided_at = clock_timestamp(), version = r.version + 1,
     claim_expires_at = null
   from held h where r.run_id = :runId and r.step_id = h.step_id and r.item = h.item
     and r.state in ('open', 'claimed')
 ), climbed as (
   update escalation e set state = 'cancelled', finished_at = clock_timestamp(), transition = e.transition + 1,
     error = coalesce(e.error, '{"code": "escalation_cancelled", "message": "the step was given up"}')
   from held h where e.run_id = :runId and e.step_id = h.step_id and e.item = h.item
     and e.state in ('running', 'in_review')
 ), ended as (
   insert into step (run_id, step_id, item, state, error, finished_at)
   select :runId, step_id, item, state, error, clock_timestamp() from due
   where (select count(*) from locked) >= 0 order by step_id, item
   on conflict (run_id, step_id, item) do update
     set state = excluded.state, finished_at = excluded.finished_at, ${waitOver},
       error = case when excluded.state in ('failed', 'cancelled') then coalesce(excluded.error, step.error) end
     where step.state in ${openSteps}
   returning step_id, item, error
 )
 insert into event (run_id, type, step_id, item, data)
 select run_id, 'run.cancelling', null, null, jsonb_build_object('reason', cancel_reason) from stopped
 union all
 (select :runId, 'step.' || state, step_id, nullif(item, 0), case when ended.error is not null
     then jsonb_build_object('error', ended.error) when state = 'skipped' then '{"reason": "dependencies"}' else '{}' end
  from due join ended using (step_id, item) order by ordinality)`;

/**
 * Ends that no attempt writes. A step that ended stays. What it waited for is over: its question is withdrawn, its ladder
 * ends, and the run that it has started is asked to cancel.
 */
export async function recordChanges(db: Db, runId: string, changes: readonly StepChange[]): Promise<void> {
  await db.raw(endAll, { runId, changes: toJsonb(changes) });
}
