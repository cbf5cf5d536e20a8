/** Ends a step with the cached result of an equal call: its attempt has the state `cached` and costs nothing. */
import type { Decision } from '@capstan/core/contracts/decision';
import type { Json } from '@capstan/core/contracts/primitives';
import type { CachedFrom } from '@capstan/core/contracts/run-step';
import type { Db } from '../connect.ts';
import { runPrepared, toJson, toJsonb } from '../statements.ts';
import { openSteps, waitOver } from '../step/step.ts';
import type { StepKey } from './attempt.ts';

export interface CachedStep {
  readonly step: StepKey;
  readonly project_id: string;
  readonly capability: string;
  readonly attempt_id: string;
  /** The instance that produced the result. */
  readonly instance_id: string;
  readonly endpoint: string;
  readonly output: Json;
  readonly cached_from: CachedFrom;
  readonly saved_nano: string;
  readonly duration_ms: number;
  readonly decision: Decision;
  /** Data of the step's event. */
  readonly data: Json;
}

const end = `with asked as materialized (
   select clock_timestamp() as now, exists (select 1 from step where run_id = $1 and step_id = $2 and item = $3
     and started_at is not null) as has_begun
   where not exists (select 1 from run where run_id = $1 and finished_at is not null)
     and not exists (select 1 from step where run_id = $1 and step_id = $2 and item = 0 and $3 > 0
       and finished_at is not null)
 ), ended as (
   insert into step (run_id, step_id, item, revision, state, output, started_at, finished_at)
   select $1, $2, $3, $4, 'succeeded', $5, now, now from asked
   on conflict (run_id, step_id, item) do update set state = 'succeeded', output = excluded.output, error = null,
     started_at = coalesce(step.started_at, excluded.started_at), finished_at = excluded.finished_at, ${waitOver}
     where step.state in ${openSteps}
   returning run_id, step_id, item
 ), made as (
   insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id, endpoint,
     state, token, lease_until, cost_type, rate_usd, reserved_nano, settled_nano, certainty, cached_from, saved_nano,
     duration_ms, started_at, finished_at, scopes)
   select $6, $7, $8, 1 + (select count(*) from attempt where key = $8), run_id, step_id, item, $9, $10, $11,
     'cached', gen_random_uuid(), now, 'free', 0, 0, 0, 'exact', $12, $13, $14, now, now, run_scopes(run_id)
   from ended, asked
   returning attempt_id, run_id, step_id, item, number
 ), chosen as (
   insert into attempt_choice (attempt_id, decision) select attempt_id, $15 from made
 ), logged as (
   insert into event (run_id, type, step_id, item, attempt, data)
   select run_id, 'step.' || told.what, step_id, nullif(item, 0), case told.what when 'started' then null else number end,
     case told.what when 'cached' then $12::jsonb when 'succeeded' then $16::jsonb else '{}' end
   from made, asked cross join lateral (values (1, 'started'), (2, 'cached'), (3, 'succeeded')) told (at, what)
   where told.at > 1 or not has_begun order by told.at
 )
 select number from made`;

/** @returns the attempt's number; undefined if the step or its run has ended */
export async function endCachedStep(db: Db, cached: CachedStep): Promise<number | undefined> {
  const { run_id, step_id, item, revision } = cached.step;
  const { rows } = await runPrepared<{ number: number }>(db, {
    name: 'end_cached_step',
    text: end,
    values: [
      ...[run_id, step_id, item, revision, toJson(cached.output), cached.attempt_id],
      ...[cached.project_id, `${run_id}.${step_id}.${item}.${revision}`, cached.capability],
      ...[cached.instance_id, cached.endpoint, toJsonb({ ...cached.cached_from }), cached.saved_nano],
      ...[cached.duration_ms, toJson(cached.decision), toJsonb(cached.data)],
    ],
  });
  return rows[0]?.number;
}
