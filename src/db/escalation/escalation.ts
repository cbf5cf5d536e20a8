/**
 * Queries on escalations. `transition` fences every change: it is stored only on top of the state that it was computed
 * from, so only one of two workers with the same command writes.
 */
import type {
  EscalationAdvice,
  EscalationAttempt,
  EscalationState,
  ModelSpec,
} from '@capstan/core/contracts/escalation';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { StepItemKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { query, toJson, toJsonb } from '../statements.ts';

/** The stored state of the ladder's state machine (core/ladder), without its lists. */
type StoredLadder = object;

/** Key, scopes and rights of a caller. */
type StoredCaller = object;

/** An attempt with the fingerprint of its error. */
interface KeptAttempt extends EscalationAttempt {
  readonly fingerprint: string;
}

/** Advice with the fingerprint of the error that it answered. */
interface KeptAdvice extends EscalationAdvice {
  readonly fingerprint: string;
}

export interface NewEscalation {
  readonly escalation_id: string;
  readonly project_id: string;
  readonly job_type: string;
  readonly prompt: string;
  readonly context: Json | undefined;
  readonly repo_context: string;
  readonly signals: readonly string[];
  readonly result_schema: JsonObject | null;
  readonly step: StepItemKey | null;
  /** The key that has asked for one without a step (core/call/caller.ts). */
  readonly caller: StoredCaller | null;
  readonly previous_id: string | null;
  readonly ladder: StoredLadder;
  readonly escalation_level: number;
  readonly escalation_history: readonly KeptAttempt[];
  readonly escalation_advice: readonly KeptAdvice[];
  readonly model_spec: ModelSpec;
  readonly fingerprint: string | null;
  readonly max_usd: number | null;
}

/** @returns false if it exists, or its step has an open one; nothing was written */
export async function insertEscalation(
  db: Db,
  { step, caller, ...escalation }: NewEscalation,
): Promise<boolean> {
  const { context, result_schema, ladder, escalation_history, escalation_advice, model_spec } = escalation;
  const written = await db('escalation')
    .insert({
      ...escalation,
      ...step,
      caller: caller === null ? null : toJsonb({ ...caller }),
      context: context === undefined ? null : toJson(context),
      result_schema: result_schema === null ? null : toJson(result_schema),
      ladder: toJson(ladder),
      escalation_history: toJsonb(escalation_history),
      escalation_advice: toJsonb(escalation_advice),
      model_spec: toJsonb(model_spec),
    })
    .onConflict()
    .ignore()
    .returning('escalation_id');
  return written.length === 1;
}

/** The columns that a transition writes. */
interface LadderColumns {
  readonly ladder: StoredLadder;
  readonly escalation_level: number;
  /** Whole lists, which only grow. */
  readonly escalation_history: readonly KeptAttempt[];
  readonly escalation_advice: readonly KeptAdvice[];
  readonly model_spec: ModelSpec;
  readonly active_skills: readonly string[];
  readonly state: EscalationState;
  readonly error: Failure | null;
  readonly fingerprint: string | null;
  readonly leader_id: string | null;
}

export interface EscalationRow extends LadderColumns {
  readonly escalation_id: string;
  readonly project_id: string;
  readonly job_type: string;
  readonly prompt: string;
  readonly context: Json;
  /** Distinguishes a null context from none. */
  readonly has_context: boolean;
  readonly repo_context: string;
  readonly signals: readonly string[];
  readonly result_schema: JsonObject | null;
  /** Null, with step_id and item: a standalone ladder. */
  readonly run_id: string | null;
  readonly step_id: string | null;
  readonly item: number | null;
  /** Null with a run. */
  readonly caller: StoredCaller | null;
  readonly previous_id: string | null;
  readonly transition: number;
  readonly result: Json;
  readonly has_result: boolean;
  readonly review_id: string | null;
  readonly skill_id: string | null;
  /** numeric as text */
  readonly max_usd: string | null;
  readonly start_delivered_at: Date | null;
  readonly created_at: Date;
  readonly finished_at: Date | null;
  /** Cost of its model calls; bigint as text. */
  readonly cost_nano: string;
  readonly reserved_nano: string;
}

const open = `('running', 'in_review')`;

/** Its attempts have keys `<escalation_id>.<transition>…`; '/' follows '.'. */
const select = `select e.*, e.context is not null as has_context, e.result is not null as has_result,
    coalesce(a.cost_nano, 0) as cost_nano, coalesce(a.reserved_nano, 0) as reserved_nano
  from escalation e left join lateral (
    select sum(settled_nano) as cost_nano,
      sum(reserved_nano) filter (where state in ('reserved', 'dispatched')) as reserved_nano
    from attempt where key like 'esc\\_%' and key ~>=~ (e.escalation_id || '.') and key ~<~ (e.escalation_id || '/')
      and attempt.project_id = e.project_id
  ) a on true`;

function readOne(
  db: Db,
  condition: string,
  bindings: readonly (string | number)[],
): Promise<EscalationRow | undefined> {
  return query<EscalationRow>(db).first(`${select} where ${condition}`, [...bindings]);
}

export function findEscalation(
  db: Db,
  projectId: string,
  escalationId: string,
): Promise<EscalationRow | undefined> {
  return readOne(db, 'e.escalation_id = ? and e.project_id = ?', [escalationId, projectId]);
}

/** For workers, which read the id from the escalation's own workflow. */
export function readEscalation(db: Db, escalationId: string): Promise<EscalationRow | undefined> {
  return readOne(db, 'e.escalation_id = ?', [escalationId]);
}

/** The last ladder of a step, open or ended. */
export function findStepEscalation(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
): Promise<EscalationRow | undefined> {
  return readOne(db, `e.run_id = ? and e.step_id = ? and e.item = ? order by e.escalation_id desc limit 1`, [
    ...[run_id, step_id, item],
  ]);
}

/** The change that one transition makes to an escalation. */
export interface EscalationChange extends LadderColumns {
  readonly escalation_id: string;
  /** The transition that the change was computed from; the stored one is one higher. */
  readonly transition: number;
  /** Undefined, here and below: unchanged. */
  readonly result?: Json | undefined;
  readonly review_id?: string | undefined;
  readonly skill_id?: string | undefined;
}

function isEnd(state: EscalationState): boolean {
  return state !== 'running' && state !== 'in_review';
}

/**
 * @returns false if another transition was stored, or it has ended; nothing was written
 * @throws a database error if a list has lost or changed an element
 */
export async function storeTransition(
  db: Db,
  { escalation_id, transition, ...change }: EscalationChange,
): Promise<boolean> {
  const updated = await db('escalation')
    .where({ escalation_id, transition })
    .whereIn('state', ['running', 'in_review'])
    .update({
      ...change,
      transition: transition + 1,
      ladder: toJson(change.ladder),
      escalation_history: toJsonb(change.escalation_history),
      escalation_advice: toJsonb(change.escalation_advice),
      model_spec: toJsonb(change.model_spec),
      error: change.error === null ? null : toJsonb(change.error),
      result: change.result === undefined ? undefined : toJson(change.result),
      finished_at: isEnd(change.state) ? db.raw('clock_timestamp()') : null,
    });
  return updated === 1;
}

const cancelled = `state = 'cancelled', finished_at = clock_timestamp(), transition = e.transition + 1,
  error = coalesce(e.error, '{"code": "escalation_cancelled", "message": "the run ended"}')`;

/** Cancels the open escalations of a run. Their own transitions are then refused. @returns their ids */
export async function cancelRunEscalations(db: Db, runId: string): Promise<string[]> {
  const rows = await query<{ escalation_id: string }>(db).all(
    `update escalation e set ${cancelled} where e.run_id = ? and e.state in ${open} returning e.escalation_id`,
    [runId],
  );
  return rows.map(({ escalation_id }) => escalation_id);
}

/**
 * Cancels escalations of runs that ended without a reference to them, for example because a worker died after it wrote
 * the row.
 * @returns how many
 */
export async function cancelOrphanedEscalations(db: Db): Promise<number> {
  const rows = await query(db).all(`update escalation e set ${cancelled} from run
     where run.run_id = e.run_id and run.finished_at is not null and e.state in ${open} returning 1`);
  return rows.length;
}

/**
 * Finds the leader to wait for: the first open escalation of the project with the same failure, if older than this one.
 * @param younger_than_s an older leader may wait for a review, or its workflow may be gone
 */
export function findLeader(
  db: Db,
  {
    project_id,
    job_type,
    fingerprint,
    escalation_id,
    younger_than_s,
  }: Pick<EscalationRow, 'project_id' | 'job_type' | 'escalation_id'> & {
    readonly fingerprint: string;
    readonly younger_than_s: number;
  },
): Promise<{ readonly escalation_id: string; readonly state: EscalationState } | undefined> {
  return query<{ escalation_id: string; state: EscalationState }>(db).first(
    `select escalation_id, state from escalation
     where project_id = ? and job_type = ? and fingerprint = ? and escalation_id < ? and state in ${open}
       and created_at > clock_timestamp() - ? * interval '1 second'
       and not (transition = 0 and exists (
         select from run where run.run_id = escalation.run_id and run.state = 'paused'))
     order by escalation_id limit 1`,
    [project_id, job_type, fingerprint, escalation_id, younger_than_s],
  );
}

export interface RecentErrorRow {
  readonly error: string;
  readonly fingerprint: string;
}

/** Errors from the histories of the last escalations of a job type, to judge how general a pattern is. */
export function listRecentErrors(
  db: Db,
  { project_id, job_type }: { readonly project_id: string; readonly job_type: string },
  escalations: number,
): Promise<readonly RecentErrorRow[]> {
  return query<RecentErrorRow>(db).all(
    `select h ->> 'error' as error, h ->> 'fingerprint' as fingerprint
     from (select escalation_history from escalation where project_id = ? and job_type = ?
       order by escalation_id desc limit ?) recent
     cross join lateral jsonb_array_elements(recent.escalation_history) h`,
    [project_id, job_type, escalations],
  );
}

/** Lists standalone ladders only: a step's ladder is started by its run. */
export function listUndeliveredEscalations(
  db: Db,
  olderThanMs: number,
  limit: number,
): Promise<readonly { readonly escalation_id: string; readonly project_id: string }[]> {
  return query<{ escalation_id: string; project_id: string }>(db).all(
    `select escalation_id, project_id from escalation
     where run_id is null and start_delivered_at is null and finished_at is null
       and created_at < clock_timestamp() - ? * interval '1 millisecond'
     order by created_at limit ?`,
    [olderThanMs, limit],
  );
}

export async function markEscalationDelivered(db: Db, escalationId: string): Promise<void> {
  await db('escalation').where({ escalation_id: escalationId }).update({ start_delivered_at: db.fn.now() });
}
