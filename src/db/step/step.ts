/**
 * Queries on steps and on the outputs of their items. A step has a row from its first claim on; before that it is
 * pending.
 */
import type { Failure, Json } from '@capstan/core/contracts/primitives';
import type { Awaiting, StepState } from '@capstan/core/contracts/run-step';
import type { AsDecided } from '@capstan/core/contracts/skill';
import type { StepItemKey, StepKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { asDecidedBy } from '../review/repair-decision.ts';
import { asksForMoney } from '../review/review.ts';
import { query, toJson, toJsonb } from '../statements.ts';

/** The states of a step that has not ended. */
export const openSteps = `('ready', 'running', 'retrying', 'waiting', 'in_review')`;

/** The columns of a step that no longer waits. */
export const waitOver = `awaiting = null, wait_since = null, wait_until = null, wake_requested_at = null,
  budget_scope = null, awaited_capability = null, awaited_event = null, awaited_key = null`;

export interface StepResultRow {
  readonly step_id: string;
  readonly state: StepState;
  readonly output: Json;
  readonly error: Failure | null;
  /** Includes all its items, and all runs that it has started. */
  readonly cost_nano: string;
  /** Number of items of a step whose output is the list of theirs; null also with an output of its own. */
  readonly items: number | null;
}

/** Results of some steps of a run, as a whole. */
export function listStepResults(
  db: Db,
  runId: string,
  stepIds: readonly string[],
): Promise<readonly StepResultRow[]> {
  return query<StepResultRow>(db).all(
    `select s.step_id, s.state, s.output, s.error, case when s.output is null then s.items end as items,
       (select coalesce(sum(a.settled_nano), 0) from attempt a
         where a.run_id = s.run_id and a.step_id = s.step_id)
         + case when s.sub_run_id is not null or s.items is not null
           then cost_below(s.run_id, s.step_id, 0) else 0 end as cost_nano
     from step s where s.run_id = ? and s.step_id = any (?) and s.item = 0`,
    [runId, [...stepIds]],
  );
}

interface ItemResultRow {
  readonly step_id: string;
  readonly item: number;
  /** Also null for an item without one. */
  readonly output: Json;
}

/** Outputs of the items of some steps, by step and item. */
export function listItemResults(
  db: Db,
  runId: string,
  stepIds: readonly string[],
): Promise<readonly ItemResultRow[]> {
  return query<ItemResultRow>(db).all(
    `select step_id, item, output from step where run_id = ? and step_id = any (?) and item > 0
     order by step_id, item`,
    [runId, [...stepIds]],
  );
}

/**
 * Size of stored outputs as JSON text, in bytes, without reading them; at most so much for a list of items. Rounds do
 * not count beside the output of their step.
 */
export async function listOutputBytes(
  db: Db,
  runId: string,
  stepIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ step_id: string; bytes: string }>(db).all(
    `select step_id, coalesce(max(octet_length(output::text)) filter (where item = 0),
       coalesce(sum(octet_length(output::text)), 0) + 5 * coalesce(max(items), 0)) as bytes from step
     where run_id = ? and step_id = any (?) group by step_id`,
    [runId, [...stepIds]],
  );
  return new Map(rows.map(({ step_id, bytes }) => [step_id, Number(bytes)]));
}

/** The current state of a step or item. */
export interface StoredStep {
  readonly state: StepState;
  readonly output: Json;
  readonly error: Failure | null;
  readonly started_at: Date | null;
  readonly awaiting: Awaiting | null;
  readonly wait_until: Date | null;
  /** By the database's clock; null: the wait has no end of its own. */
  readonly wait_left_ms: number | null;
  readonly sub_run_id: string | null;
}

/** @returns undefined before it began */
export function readStep(db: Db, { run_id, step_id, item }: StepItemKey): Promise<StoredStep | undefined> {
  return query<StoredStep>(db).first(
    `select state, output, error, started_at, awaiting, wait_until, sub_run_id,
       (extract(epoch from wait_until - clock_timestamp()) * 1000)::float8 as wait_left_ms
     from step where run_id = ? and step_id = ? and item = ?`,
    [run_id, step_id, item],
  );
}

/**
 * Ends a step without an attempt: no claim was possible, or its time is over. An ended step stays.
 * @returns false if it had ended
 */
export function endStep(
  db: Db,
  step: StepKey,
  { state, error }: { readonly state: 'failed' | 'cancelled'; readonly error: Failure },
): Promise<boolean> {
  return query(db).some(
    `with ended as (
       insert into step (run_id, step_id, item, revision, state, error, finished_at)
       values (:run_id, :step_id, :item, :revision, :state, :error, clock_timestamp())
       on conflict (run_id, step_id, item) do update
         set state = excluded.state, error = excluded.error, finished_at = excluded.finished_at, ${waitOver}
         where step.state in ${openSteps}
       returning run_id, step_id, item
     )
     insert into event (run_id, type, step_id, item, data)
     select run_id, 'step.' || :state, step_id, nullif(item, 0), jsonb_build_object('error', :error::jsonb) from ended
     returning 1`,
    { state, error: toJsonb(error), ...step },
  );
}

/** Ends a step whose output is known without a call. @returns false if it, or its run, had ended */
export function storeValues(db: Db, step: StepKey, output: Json): Promise<boolean> {
  return query(db).some(
    `with stored as (
       insert into step (run_id, step_id, item, revision, state, output, started_at, finished_at)
       select :run_id, :step_id, :item, :revision, 'succeeded', :output, clock_timestamp(), clock_timestamp()
       where not exists (select 1 from run where run_id = :run_id and finished_at is not null)
       on conflict (run_id, step_id, item) do update
         set state = excluded.state, output = excluded.output, error = null, finished_at = excluded.finished_at,
           started_at = coalesce(step.started_at, excluded.started_at), ${waitOver}
         where step.state in ${openSteps}
       returning run_id, step_id, item
     )
     insert into event (run_id, type, step_id, item, data)
     select run_id, type, step_id, nullif(item, 0), data from stored cross join lateral (values
       (1, 'step.started', '{}'::jsonb), (2, 'step.succeeded', jsonb_build_object('cost_usd', 0))
     ) told (at, type, data) order by at
     returning 1`,
    { output: toJson(output), ...step },
  );
}

export interface RunStepRow {
  readonly step_id: string;
  /** 0 = the step as a whole. */
  readonly item: number;
  readonly state: StepState;
  readonly revision: number;
  readonly error: Failure | null;
  readonly awaiting: Awaiting | null;
  readonly wait_since: Date | null;
  readonly wait_until: Date | null;
  /** Of the outside event that it waits for; empty: one without a key. */
  readonly awaited_key: string | null;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly endpoint: string | null;
  readonly attempts: number;
  /** Attempts that took a cached result. */
  readonly cached: number;
  /** Includes all its items, and all runs that it has started. */
  readonly cost_nano: string;
  /** Its last ladder. */
  readonly escalation_id: string | null;
  /** The review that it waits for, or the last one. */
  readonly review_id: string | null;
  /** The skill by which it succeeded; not one made from its success. */
  readonly skill_id: string | null;
  readonly as_decided: AsDecided | null;
  /** The budget that it waits for. */
  readonly budget_scope: string | null;
  readonly sub_run_id: string | null;
  readonly reused_from: string | null;
  /** Number of items of a step with `for_each` by state, including `pending`. */
  readonly item_states: Readonly<Record<string, number>> | null;
}

/** An item without a row has not begun. A step that has succeeded has cancelled such items: others were enough. */
const itemStates = `(select jsonb_object_agg(g.state, g.count) from (
    select c.state, sum(c.count)::int as count from (
      select i.state, count(*)::int as count from step i
      where i.run_id = s.run_id and i.step_id = s.step_id and i.item > 0 group by 1
      union all
      select case when s.state in ('succeeded', 'reused') then 'cancelled' else 'pending' end,
        s.items - count(*)::int from step i
      where i.run_id = s.run_id and i.step_id = s.step_id and i.item > 0 having count(*) < s.items
    ) c group by 1
  ) g)`;

const budgetReviewOf = `(select r.review_id from review r join run on run.run_id = s.run_id
      where r.project_id = run.project_id and r.kind = 'budget' and r.subject = s.budget_scope
        and r.escalation_id is null and r.state in ('open', 'claimed'))`;

/** @param which selects from `step s`; a step as a whole has the attempts of all its items */
function selectSteps(which: string, by: string): string {
  return `select s.step_id, s.item, s.state, s.revision, s.error,
     case when s.state = 'in_review' and ${asksForMoney} then 'budget' else s.awaiting end as awaiting,
     s.wait_since, s.wait_until, s.awaited_key, s.started_at, s.finished_at,
     s.budget_scope, s.sub_run_id, s.reused_from, a.endpoint, coalesce(a.attempts, 0) as attempts,
     coalesce(a.cached, 0) as cached,
     coalesce(a.cost_nano, 0) + case when s.sub_run_id is not null or s.items is not null
       then cost_below(s.run_id, s.step_id, s.item) else 0 end as cost_nano,
     e.escalation_id, case when s.awaiting = 'budget' then ${budgetReviewOf}
       else coalesce(e.review_id, v.review_id) end as review_id,
     case when e.skill_id is not null and not exists (
       select 1 from skill k where k.skill_id = e.skill_id and k.escalation_id = e.escalation_id
     ) then e.skill_id end as skill_id,
     case when e.skill_id is not null then ${asDecidedBy('e.skill_id')} end as as_decided,
     case when s.items is not null then ${itemStates} end as item_states
   from step s
   left join (
     select ${by}, count(*)::int as attempts,
       (count(*) filter (where state = 'cached'))::int as cached, sum(coalesce(settled_nano, 0)) as cost_nano,
       (array_agg(endpoint order by started_at desc))[1] as endpoint
     from attempt where run_id = :runId group by ${by}
   ) a using (${by})
   left join (
     select distinct on (step_id, item) step_id, item, escalation_id, review_id, skill_id
     from escalation where run_id = :runId order by step_id, item, escalation_id desc
   ) e using (step_id, item)
   left join (
     select distinct on (step_id, item) step_id, item, review_id
     from review where run_id = :runId and kind = 'step' order by step_id, item, review_id desc
   ) v using (step_id, item)
   where s.run_id = :runId and ${which}`;
}

/** Every step of a run that has begun, as a whole, with totals of its attempts. */
export function listRunSteps(db: Db, runId: string): Promise<readonly RunStepRow[]> {
  return query<RunStepRow>(db).all(selectSteps('s.item = 0', 'step_id'), { runId });
}

interface ItemPage {
  /** Only this one. */
  readonly item?: number;
  readonly state?: StepState | undefined;
  /** The last item of the previous page. */
  readonly after?: number | undefined;
  readonly limit?: number;
}

/** The items of a step that have begun, in order. */
export function listStepItems(
  db: Db,
  { run_id, step_id }: Omit<StepItemKey, 'item'>,
  { item, state, after = 0, limit = 1 }: ItemPage,
): Promise<readonly RunStepRow[]> {
  const which = `s.step_id = :step_id and s.item > :after and s.item = coalesce(cast(:item as int), s.item)
     and s.state = coalesce(cast(:state as text), s.state)`;
  return query<RunStepRow>(db).all(`${selectSteps(which, 'step_id, item')} order by s.item limit :limit`, {
    runId: run_id,
    step_id,
    item: item ?? null,
    state: state ?? null,
    after,
    limit,
  });
}

/** Reads the output of a step without items, or of one item. @returns undefined if there is none */
export async function readStepOutput(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
): Promise<Json | undefined> {
  const row = await db('step').where({ run_id, step_id, item }).first('output');
  return row?.output ?? undefined;
}

/** The same, in a list: that may hold null. @returns an empty list if there is none */
export async function findOutput(db: Db, { run_id, step_id, item }: StepItemKey): Promise<readonly Json[]> {
  const rows = await query<{ output: Json }>(db).all(
    'select output from step where run_id = ? and step_id = ? and item = ? and output is not null',
    [run_id, step_id, item],
  );
  return rows.map(({ output }) => output);
}

/** Reads the outputs of a step's items, by item, without those above the size limit. */
export async function readItemOutputs(
  db: Db,
  {
    run_id,
    step_id,
    items,
  }: { readonly run_id: string; readonly step_id: string; readonly items: readonly number[] },
  largestBytes: number,
): Promise<ReadonlyMap<number, Json>> {
  const rows = await query<{ item: number; output: Json }>(db).all(
    `select item, output from step where run_id = ? and step_id = ? and item = any (?::int[])
       and output is not null and octet_length(output::text) <= ?`,
    [run_id, step_id, [...items], largestBytes],
  );
  return new Map(rows.map(({ item, output }) => [item, output]));
}

/** Size of the outputs of some items as JSON text, in bytes. */
/** What an item of a step took in its newest run, on average. */
export interface FormerItemsRow {
  readonly step_id: string;
  readonly run_id: string;
  readonly bytes: number;
}

/** Reads the first outputs of items in the last runs of a pipeline, among the newest of the project. */
export async function listFormerItemBytes(
  db: Db,
  { project_id, pipeline }: { readonly project_id: string; readonly pipeline: string },
  stepIds: readonly string[],
): Promise<ReadonlyMap<string, FormerItemsRow>> {
  const rows = await query<FormerItemsRow>(db).all(
    `select s.step_id, s.run_id, avg(octet_length(s.output::text))::float8 as bytes
     from (
       select run_id from (
         select run_id, pipeline from run where project_id = ? order by run_id collate "C" desc limit 1000
       ) newest where pipeline = ? order by run_id collate "C" desc limit 5
     ) r
     cross join unnest(?::text[]) w (step_id) cross join lateral (
       select * from step where run_id = r.run_id and step_id = w.step_id and item > 0 and output is not null
       order by item limit 20
     ) s group by s.run_id, s.step_id order by s.run_id collate "C"`,
    [project_id, pipeline, [...stepIds]],
  );
  return new Map(rows.map((row) => [row.step_id, row]));
}

export async function sumItemBytes(
  db: Db,
  {
    run_id,
    step_id,
    items,
  }: { readonly run_id: string; readonly step_id: string; readonly items: readonly number[] },
): Promise<number> {
  if (items.length === 0) return 0;
  const { bytes } = await query<{ bytes: string }>(db).one(
    `select coalesce(sum(octet_length(output::text)), 0) as bytes from step
     where run_id = ? and step_id = ? and item = any (?::int[])`,
    [run_id, step_id, [...items]],
  );
  return Number(bytes);
}

// The outputs of a step's items as one list, in pages.

interface ItemOutputPage {
  readonly run_id: string;
  readonly step_id: string;
  /** The last item of the previous page; 0 = none. */
  readonly after: number;
  readonly limit: number;
  /** A page ends with the item that reaches this number of bytes of JSON text. */
  readonly bytes: number;
}

interface ItemOutputRow {
  readonly item: number;
  /** Also null for an item that is not on the page. */
  readonly output: Json;
  readonly is_on_page: boolean;
}

/** Among the next `limit` items, those that have an output, in order. */
export function listItemOutputs(db: Db, page: ItemOutputPage): Promise<readonly ItemOutputRow[]> {
  return query<ItemOutputRow>(db).all(
    `select item, before < :bytes as is_on_page, case when before < :bytes then output end as output
     from (
       select item, output, coalesce(sum(octet_length(output::text)) over (
           order by item rows between unbounded preceding and 1 preceding), 0) as before
       from step where run_id = :run_id and step_id = :step_id
         and item > :after and item <= :after::int + :limit::int and output is not null
     ) s order by item`,
    { ...page },
  );
}
