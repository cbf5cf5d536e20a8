/** Queries on steps. A step has a row from its first claim on; before that it is pending. */
import type { Failure, Json } from '../contracts/primitives.ts';
import type { StepState } from '../contracts/run.ts';
import type { StepKey } from './attempt.ts';
import type { Db } from './connect.ts';
import { toJsonb } from './jsonb.ts';

export interface StepResultRow {
  readonly step_id: string;
  readonly state: StepState;
  readonly output: Json;
  readonly error: Failure | null;
  readonly cost_nano: string;
}

/** Results of some steps of a run, with what they cost. */
export const listStepResults = async (
  db: Db,
  runId: string,
  stepIds: readonly string[],
): Promise<readonly StepResultRow[]> => {
  const { rows } = await db.raw<{ rows: StepResultRow[] }>(
    `select s.step_id, s.state, s.output, s.error,
       (select coalesce(sum(a.settled_nano), 0) from attempt a
        where a.run_id = s.run_id and a.step_id = s.step_id and a.item = s.item) as cost_nano
     from step s where s.run_id = ? and s.step_id = any (?) and s.item = 0`,
    [runId, [...stepIds]],
  );
  return rows;
};

/** Ends a step that no attempt ends: nothing could be claimed, or its time is over. A step that ended stays. */
export const endStep = async (
  db: Db,
  step: StepKey,
  state: 'failed' | 'cancelled',
  error: Failure,
): Promise<void> => {
  await db.raw(
    `with ended as (
       insert into step (run_id, step_id, item, revision, state, error, finished_at)
       values (:run_id, :step_id, :item, :revision, :state, :error, clock_timestamp())
       on conflict (run_id, step_id, item) do update
         set state = excluded.state, error = excluded.error, finished_at = excluded.finished_at
         where step.state in ('ready', 'running', 'retrying', 'in_review')
       returning run_id, step_id
     )
     insert into event (run_id, type, step_id, data)
     select run_id, 'step.' || :state, step_id, jsonb_build_object('error', :error::jsonb) from ended`,
    { ...step, state, error: toJsonb(error) },
  );
};

/** Size of stored outputs as JSON text, in bytes, without reading them. */
export const sumOutputBytes = async (db: Db, runId: string, stepIds: readonly string[]): Promise<number> => {
  const { rows } = await db.raw<{ rows: { bytes: string }[] }>(
    `select coalesce(sum(octet_length(output::text)), 0) as bytes from step
     where run_id = ? and step_id = any (?) and item = 0`,
    [runId, [...stepIds]],
  );
  return Number(rows[0]?.bytes ?? 0);
};

export interface RunStepRow {
  readonly step_id: string;
  readonly state: StepState;
  readonly revision: number;
  readonly error: Failure | null;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly endpoint: string | null;
  readonly attempts: number;
  readonly cost_nano: string;
  /** Of its last ladder. */
  readonly escalation_id: string | null;
  readonly review_id: string | null;
  /** That it succeeded by; not one that was made of its success. */
  readonly skill_id: string | null;
}

/** Every step of a run that has begun, with its attempts summed up. */
export const listRunSteps = async (db: Db, runId: string): Promise<readonly RunStepRow[]> => {
  const { rows } = await db.raw<{ rows: RunStepRow[] }>(
    `select s.step_id, s.state, s.revision, s.error, s.started_at, s.finished_at,
       a.endpoint, coalesce(a.attempts, 0) as attempts, coalesce(a.cost_nano, 0) as cost_nano,
       e.escalation_id, e.review_id, case when e.skill_id is not null and not exists (
         select 1 from skill k where k.skill_id = e.skill_id and k.escalation_id = e.escalation_id
       ) then e.skill_id end as skill_id
     from step s
     left join (
       select step_id, item, count(*)::int as attempts, sum(coalesce(settled_nano, 0)) as cost_nano,
         (array_agg(endpoint order by started_at desc))[1] as endpoint
       from attempt where run_id = :runId group by step_id, item
     ) a using (step_id, item)
     left join (
       select distinct on (step_id, item) step_id, item, escalation_id, review_id, skill_id
       from escalation where run_id = :runId order by step_id, item, escalation_id desc
     ) e using (step_id, item)
     where s.run_id = :runId and s.item = 0`,
    { runId },
  );
  return rows;
};

export const readStepOutput = async (db: Db, runId: string, stepId: string): Promise<Json | undefined> => {
  const row = await db('step').where({ run_id: runId, step_id: stepId, item: 0 }).first('output');
  return row?.output ?? undefined;
};
