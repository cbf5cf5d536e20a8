/**
 * Queries for one transition of an escalation, and standalone ladders that Temporal has accepted and that have not
 * ended.
 */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { StepState } from '@capstan/core/contracts/run-step';
import type { StepItemKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { type DeliveredPage, query } from '../statements.ts';

/** Locks the escalation until the transaction ends. @returns false if another transition was stored, or it has ended */
export async function lockTransition(db: Db, escalationId: string, transition: number): Promise<boolean> {
  const row = await db('escalation')
    .where({ escalation_id: escalationId, transition })
    .whereIn('state', ['running', 'in_review'])
    .forUpdate()
    .first('escalation_id');
  return row !== undefined;
}

/** Stores the escalation that this one waits for. */
export async function noteLeader(db: Db, escalationId: string, leaderId: string): Promise<void> {
  await db('escalation').where({ escalation_id: escalationId }).update({ leader_id: leaderId });
}

/** Sets the total that a person allows it to spend, USD. */
export async function raiseEscalationLimit(db: Db, escalationId: string, maxUsd: number): Promise<void> {
  await db('escalation').where({ escalation_id: escalationId }).update({ max_usd: maxUsd });
}

/** The database's clock, in Unix seconds with a fraction. */
export async function readUnixTime(db: Db): Promise<number> {
  const row = await query<{ now: number }>(db).one(
    'select round(extract(epoch from clock_timestamp()), 3)::float8 as now',
  );
  return row.now;
}

/** Cost and reservations of the calls under keys that begin with `<owner>.`, in nano-USD. */
export function readCallCost(
  db: Db,
  projectId: string,
  owner: string,
): Promise<{ readonly cost_nano: string; readonly reserved_nano: string }> {
  return query<{ cost_nano: string; reserved_nano: string }>(db).one(
    `select coalesce(sum(settled_nano), 0) as cost_nano,
       coalesce(sum(reserved_nano) filter (where state in ('reserved', 'dispatched')), 0) as reserved_nano
     from attempt where key like 'esc\\_%' and key ~>=~ (?::text || '.') and key ~<~ (?::text || '/')
       and project_id = ?`,
    [owner, owner, projectId],
  );
}

export interface LadderMoveRow {
  readonly at: Date;
  /** The line of the run's log. */
  readonly data: JsonObject;
  readonly began_at: Date | null;
  readonly cost_nano: string;
  readonly endpoint: string | null;
  readonly revisions: readonly number[];
}

/** Lists the transitions of a step's ladder, oldest first: the log has a line for each, its calls carry its number. */
export function listLadderMoves(
  db: Db,
  escalationId: string,
  { run_id, step_id, item }: StepItemKey,
): Promise<readonly LadderMoveRow[]> {
  return query<LadderMoveRow>(db).all(
    `with moves as (
       select at, data, (row_number() over (order by xid, id) - 1)::int as transition
       from event where run_id = :run_id and step_id = :step_id and coalesce(item, 0) = :item
         and type in ('step.escalated', 'step.reviewed') and data ->> 'escalation_id' = :escalationId
         and data ->> 'kind' is not null
     ), calls as (
       select split_part(key, '.', 2)::int as transition, started_at, settled_nano, endpoint, null::int as revision
       from attempt where key like 'esc\\_%' and key ~>=~ (:escalationId::text || '.')
         and key ~<~ (:escalationId::text || '/')
       union all
       select r.transition, a.started_at, a.settled_nano, null, r.revision
       from step_revision r left join attempt a on a.run_id = r.run_id and a.step_id = r.step_id and a.item = r.item
         and a.key = concat_ws('.', r.run_id, r.step_id, r.item, r.revision)
       where r.run_id = :run_id and r.step_id = :step_id and r.item = :item and r.escalation_id = :escalationId
     )
     select m.at, m.data, min(c.started_at) as began_at, coalesce(sum(c.settled_nano), 0)::text as cost_nano,
       min(c.endpoint) as endpoint,
       coalesce(array_agg(distinct c.revision) filter (where c.revision is not null), '{}') as revisions
     from moves m left join calls c on c.transition = m.transition
     group by m.transition, m.at, m.data::text, m.data order by m.transition`,
    { run_id, step_id, item, escalationId },
  );
}

/** The ladder that another one waited for; undefined once it has been deleted. */
export function readLeader(
  db: Db,
  leaderId: string,
): Promise<{ readonly escalation_id: string; readonly run_id: string | null } | undefined> {
  return db('escalation').where({ escalation_id: leaderId }).first('escalation_id', 'run_id');
}

/** @returns undefined before its first claim */
export async function readStepState(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
): Promise<StepState | undefined> {
  const row = await db('step').where({ run_id, step_id, item }).first('state');
  return row?.state;
}

/** Lists ladders that Temporal accepted at least `olderThanMs` ago, by id, after `after`. */
export function listDeliveredLadders(
  db: Db,
  { after, olderThanMs, limit }: DeliveredPage,
): Promise<readonly { readonly escalation_id: string }[]> {
  return query<{ escalation_id: string }>(db).all(
    `select escalation_id from escalation
     where run_id is null and start_delivered_at < clock_timestamp() - ? * interval '1 millisecond'
       and finished_at is null and escalation_id > ? order by escalation_id limit ?`,
    [olderThanMs, after, limit],
  );
}

/** Marks its start for redelivery, with the decision of its review. @returns false if it has ended */
export function forgetLadderStart(db: Db, escalationId: string): Promise<boolean> {
  return query(db).some(
    `with forgotten as (
       update escalation set start_delivered_at = null where escalation_id = ? and finished_at is null
       returning review_id
     ), untold as (
       update review r set delivered_at = null from forgotten f where r.review_id = f.review_id
         and r.state in ('resolved', 'expired')
     )
     select 1 from forgotten`,
    [escalationId],
  );
}
