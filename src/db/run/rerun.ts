/**
 * A run that is repeated: what it did, and the copies that the new run begins with. Ends of whole steps and of items
 * are copied by value; a child run that continues is only named (`continued_run`), until its step starts the next one.
 */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject, Priority } from '@capstan/core/contracts/primitives';
import type { RunState } from '@capstan/core/contracts/run';
import type { StepState } from '@capstan/core/contracts/run-step';
import type { StepItemKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import type { RunKey } from './run-control.ts';

/** A run that can be repeated. */
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
  /** The schedule whose start was refused or missed, so that the run never began. */
  readonly failed_start_of: string | null;
  /** The versions of its child runs, by the reference that named them. */
  readonly versions: Readonly<Record<string, string>>;
}

export function readRepeatedRun(db: Db, { project_id, run_id }: RunKey): Promise<RepeatedRun | undefined> {
  return query<RepeatedRun>(db).first(
    `select r.run_id, r.project_id, r.state, r.job_id, j.body as job, r.pipeline, r.digest, d.body as definition,
       r.priority, r.budget_ceiling_usd, r.labels, ${versionsOf('r')} as versions,
       case when r.start_delivered_at is null and r.state = 'failed' then r.schedule_id end as failed_start_of
     from run r join definition d using (digest) join job j using (job_id) where r.run_id = ? and r.project_id = ?`,
    [run_id, project_id],
  );
}

/** Prevents the deletion of the run until the transaction ends. @returns false if it no longer exists */
export function keepRepeated(trx: Db, runId: string): Promise<boolean> {
  return query(trx).some('select from run where run_id = ? for key share', [runId]);
}

/** Admits one at a time of those who repeat a run that none has repeated. @returns the newest run that repeats it */
export async function lockSuperseded(trx: Db, runId: string): Promise<string | undefined> {
  await trx.raw('select from run where run_id = ? for no key update', [runId]);
  const row = await trx('run').where({ rerun_of: runId }).orderBy('run_id', 'desc').first('run_id');
  return row?.run_id;
}

/** A step of the old run that has begun, as a whole. */
export interface FormerStepRow {
  readonly step_id: string;
  readonly state: StepState;
  /** Number of items of a step with `for_each`. */
  readonly items: number | null;
}

export function listFormerSteps(db: Db, runId: string): Promise<readonly FormerStepRow[]> {
  return query<FormerStepRow>(db).all(
    'select step_id, state, items from step where run_id = ? and item = 0',
    [runId],
  );
}

/** Counts the items without a result, by step. A person may have skipped an item. */
export async function countFailedItems(db: Db, runId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ step_id: string; items: number }>(db).all(
    `select step_id, count(*)::int as items from step
     where run_id = ? and item > 0 and state not in ('succeeded', 'reused', 'skipped') group by step_id`,
    [runId],
  );
  return new Map(rows.map(({ step_id, items }) => [step_id, items]));
}

/** A unit of the old run: a step without items, or an item. */
export interface FormerUnitRow {
  readonly step_id: string;
  readonly item: number;
  readonly state: StepState;
  /** Its child run, or the one that its child run would have continued. */
  readonly sub_run_id: string | null;
}

/** An item whose condition was false, which is judged again; a person skips one that has begun. */
const leftOut = `s.state = 'skipped' and s.item > 0 and s.started_at is null and s.reused_from is null`;

/** Lists the units of some steps that have begun, or that have a child run to continue. */
export function listFormerUnits(
  db: Db,
  runId: string,
  stepIds: readonly string[],
): Promise<readonly FormerUnitRow[]> {
  return query<FormerUnitRow>(db).all(
    `select step_id, item, case when ${leftOut} then 'pending' else coalesce(s.state, 'pending') end as state,
       coalesce(s.sub_run_id, c.earlier_run_id) as sub_run_id
     from (select * from step where run_id = :runId and step_id = any (:stepIds)) s
     full join (select * from continued_run where run_id = :runId and step_id = any (:stepIds)) c using (step_id, item)
     order by step_id, item`,
    { runId, stepIds: [...stepIds] },
  );
}

export interface MentionedMedia {
  readonly step_id: string;
  readonly item: number;
  /** `media://…`, possibly not a valid reference. */
  readonly reference: string;
}

/** Lists distinct strings in the results of steps and items that consist of a media reference. */
export function listMentionedMedia(
  db: Db,
  runId: string,
  stepIds: readonly string[],
): Promise<readonly MentionedMedia[]> {
  return query<MentionedMedia>(db).all(
    `select distinct s.step_id, s.item, found.match[1] as reference
     from step s cross join lateral regexp_matches(s.output::text, '"(media://[A-Za-z0-9._/-]+)"', 'g') found (match)
     where s.run_id = ? and s.step_id = any (?) and s.output is not null order by 1, 2, 3`,
    [runId, [...stepIds]],
  );
}

/** What a new run takes from the one that it repeats. */
export interface TakenOver {
  readonly from: string;
  readonly to: string;
  /** Steps with all their items. */
  readonly reused: readonly string[];
  readonly skipped: readonly string[];
  /** Items of steps that happen again: item `items[n]` gets the result of item `former_items[n]`. */
  readonly parts: readonly {
    readonly step_id: string;
    readonly items: readonly number[];
    readonly former_items: readonly number[];
  }[];
  /** Child runs that continue. */
  readonly continued: readonly {
    readonly step_id: string;
    readonly item: number;
    readonly earlier_run_id: string;
  }[];
}

const kept = `s.revision, case s.state when 'succeeded' then 'reused' else s.state end, s.output, s.error,
  clock_timestamp()`;
const columns =
  'run_id, step_id, item, revision, state, output, error, finished_at, items, sub_run_id, reused_from';

export async function takeOver(trx: Db, taken: TakenOver): Promise<void> {
  if (taken.reused.length + taken.skipped.length > 0) await copySteps(trx, taken);
  for (const part of taken.parts) await copyItems(trx, taken, part);
  if (taken.continued.length > 0) await nameContinued(trx, taken);
}

/** Copies steps with their items, and logs each as a whole. */
async function copySteps(trx: Db, { from, to, reused, skipped }: TakenOver): Promise<void> {
  await trx.raw(
    `with copied as (
       insert into step (${columns})
       select :to, s.step_id, s.item, ${kept}, s.items, s.sub_run_id,
         case when s.state <> 'skipped' or s.item > 0 and not (${leftOut}) then coalesce(s.reused_from, s.run_id) end
       from unnest(:step_ids::text[]) with ordinality c (step_id, at)
       join step s on s.run_id = :from and s.step_id = c.step_id order by c.at, s.item
       returning step_id, item, state, reused_from
     )
     insert into event (run_id, type, step_id, data)
     select :to, 'step.' || state, step_id,
       case state when 'skipped' then '{"reason": "before"}' else jsonb_build_object('reused_from', reused_from) end
     from copied where item = 0`,
    { from, to, step_ids: [...reused, ...skipped] },
  );
}

async function copyItems(
  trx: Db,
  { from, to }: TakenOver,
  { step_id, items, former_items }: TakenOver['parts'][number],
): Promise<void> {
  await trx.raw(
    `insert into step (${columns})
     select :to, s.step_id, c.item, ${kept}, null, s.sub_run_id, coalesce(s.reused_from, s.run_id)
     from unnest(:items::int[], :former_items::int[]) c (item, former)
     join step s on s.run_id = :from and s.step_id = :step_id and s.item = c.former`,
    { from, to, step_id, items: [...items], former_items: [...former_items] },
  );
}

async function nameContinued(trx: Db, { to, continued }: TakenOver): Promise<void> {
  await trx.raw(
    `insert into continued_run (run_id, step_id, item, earlier_run_id)
     select :to, step_id, item, earlier_run_id
     from unnest(:step_ids::text[], :items::int[], :run_ids::text[]) c (step_id, item, earlier_run_id)`,
    {
      to,
      step_ids: continued.map(({ step_id }) => step_id),
      items: continued.map(({ item }) => item),
      run_ids: continued.map(({ earlier_run_id }) => earlier_run_id),
    },
  );
}

/** Finds the earlier child run that the one of this unit continues. */
export async function findContinued(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
): Promise<string | undefined> {
  const row = await db('continued_run').where({ run_id, step_id, item }).first('earlier_run_id');
  return row?.earlier_run_id;
}

/** An item with an end from an earlier run. */
interface KeptItemRow {
  readonly item: number;
  readonly state: 'reused' | 'skipped';
}

export function listKeptItems(db: Db, runId: string, stepId: string): Promise<readonly KeptItemRow[]> {
  return query<KeptItemRow>(db).all(
    'select item, state from step where run_id = ? and step_id = ? and item > 0 and reused_from is not null',
    [runId, stepId],
  );
}

// The versions that aliases named, looked up once for a run and all runs below it: they are stored with the run at the
// top.

/** @param run alias of the run in the statement */
export function versionsOf(run: string): string {
  return `coalesce((select t.versions from run t where t.run_id = coalesce(${run}.ancestors[1], ${run}.run_id)), '{}')`;
}

/** @returns undefined: it was not looked up */
export async function readVersion(db: Db, runId: string, reference: string): Promise<string | undefined> {
  const row = await query<{ version: string | null }>(db).first(
    `select ${versionsOf('r')} ->> :reference::text as version from run r where r.run_id = :runId`,
    { runId, reference },
  );
  return row?.version ?? undefined;
}

/** Stores the version that a reference names. The first one counts. */
export async function keepVersion(
  db: Db,
  runId: string,
  { reference, version }: { readonly reference: string; readonly version: string },
): Promise<void> {
  await db.raw(
    `update run t set versions = coalesce(t.versions, '{}') || jsonb_build_object(:reference::text, :version::text)
     from run r where r.run_id = :runId and t.run_id = coalesce(r.ancestors[1], r.run_id)
       and not jsonb_exists(coalesce(t.versions, '{}'), :reference)`,
    { runId, reference, version },
  );
}
