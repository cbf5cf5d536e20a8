/** What a run takes over from the one that it repeats. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { JsonObject, Priority } from '../../contracts/primitives.ts';
import type { RunState, StepState } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';
import type { RunKey } from './run-control.ts';

/** A run as it is repeated. */
export interface RepeatedRun extends RunKey {
  readonly state: RunState;
  readonly job_id: string;
  readonly job: JsonObject;
  readonly pipeline: string;
  readonly digest: string;
  readonly definition: PipelineDefinition;
  readonly priority: Priority;
  /** numeric as text */
  readonly budget_ceiling_usd: string | null;
  readonly labels: Readonly<Record<string, string>>;
}

export async function readRepeatedRun(
  db: Db,
  { project_id, run_id }: RunKey,
): Promise<RepeatedRun | undefined> {
  const { rows } = await db.raw<{ rows: RepeatedRun[] }>(
    `select r.run_id, r.project_id, r.state, r.job_id, j.body as job, r.pipeline, r.digest, d.body as definition,
       r.priority, r.budget_ceiling_usd, r.labels
     from run r join definition d using (digest) join job j using (job_id) where r.run_id = ? and r.project_id = ?`,
    [run_id, project_id],
  );
  return rows[0];
}

/** Keeps the run from being deleted until the transaction ends. @returns false when there is none any more */
export async function keepRepeated(trx: Db, runId: string): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: unknown[] }>('select from run where run_id = ? for key share', [
    runId,
  ]);
  return rows.length > 0;
}

/** Reads the state of every step that has begun, as a whole. */
export async function readStepStates(db: Db, runId: string): Promise<ReadonlyMap<string, StepState>> {
  const { rows } = await db.raw<{ rows: { step_id: string; state: StepState }[] }>(
    'select step_id, state from step where run_id = ? and item = 0',
    [runId],
  );
  return new Map(rows.map(({ step_id, state }) => [step_id, state]));
}

export interface MentionedMedia {
  readonly step_id: string;
  /** `media://…`, perhaps no reference that a store could know. */
  readonly reference: string;
}

/** Texts in the results of steps and their items that are media references as a whole, each once. */
export async function listMentionedMedia(
  db: Db,
  runId: string,
  stepIds: readonly string[],
): Promise<readonly MentionedMedia[]> {
  const { rows } = await db.raw<{ rows: MentionedMedia[] }>(
    `select distinct s.step_id, found.match[1] as reference
     from step s cross join lateral regexp_matches(s.output::text, '"(media://[A-Za-z0-9._/-]+)"', 'g') found (match)
     where s.run_id = ? and s.step_id = any (?) and s.output is not null order by 1, 2`,
    [runId, [...stepIds]],
  );
  return rows;
}

/** Steps with their items; what succeeded is told as reused from the run that really made it. */
export async function copySteps(
  trx: Db,
  {
    from,
    to,
    step_ids,
  }: { readonly from: string; readonly to: string; readonly step_ids: readonly string[] },
): Promise<void> {
  await trx.raw(
    `with copied as (
       insert into step (run_id, step_id, item, revision, state, output, error, finished_at, items, sub_run_id,
         reused_from)
       select :to, s.step_id, s.item, s.revision, case s.state when 'succeeded' then 'reused' else s.state end, s.output,
         s.error, clock_timestamp(), s.items, s.sub_run_id, coalesce(s.reused_from, s.run_id)
       from unnest(:step_ids::text[]) with ordinality c (step_id, at)
       join step s on s.run_id = :from and s.step_id = c.step_id order by c.at, s.item
       returning step_id, item, reused_from
     )
     insert into event (run_id, type, step_id, data)
     select :to, 'step.reused', step_id, jsonb_build_object('reused_from', reused_from) from copied where item = 0`,
    { from, to, step_ids: [...step_ids] },
  );
}
