/** Queries on leases of slots and on calls that used them: sql/slot-leases.sql. */
import type { Db } from '../connect.ts';
import { query, runPrepared, toJsonb } from '../statements.ts';
import type { AttemptEnd, Claim } from './attempt.ts';

export interface LeaseRequest {
  readonly instanceId: string;
  readonly holder: string;
  /** 0 gives back all that are not in use. */
  readonly slots: number;
  /** Slots of the present lease that may be in use. */
  readonly inUse: number;
  readonly leaseMs: number;
}

/** @returns the slots of the lease from now on; 0: it has ended */
export async function leaseSlots(db: Db, request: LeaseRequest): Promise<number> {
  const { instanceId, holder, slots, inUse, leaseMs } = request;
  const { rows } = await runPrepared<{ granted: number }>(db, {
    name: 'lease_slots',
    text: 'select lease_slots($1, $2, $3, $4, $5) as granted',
    values: [instanceId, holder, slots, inUse, leaseMs],
  });
  const [row] = rows;
  return row?.granted ?? 0;
}

/** Shows the other holders of slots of an instance that a call waits for one; each sees it with its next poll. */
export async function requestSlots(db: Db, instanceId: string, holder: string): Promise<void> {
  await db.raw(
    `update slot_lease set is_wanted = true where (instance_id, holder) in (
       select instance_id, holder from slot_lease
       where instance_id = ? and holder <> ? and not is_wanted and expires_at > clock_timestamp()
       order by holder for update skip locked)`,
    [instanceId, holder],
  );
}

/** Deletes what processes that are gone have left. @returns how many */
export async function deleteDeadLeases(db: Db): Promise<number> {
  return query(db).written(
    `delete from slot_lease where (instance_id, holder) in (select instance_id, holder from slot_lease
       where expires_at < clock_timestamp() - interval '1 minute' for update skip locked)`,
  );
}

/** A call on a leased slot. Times are of `performance.now()`. */
export interface LeasedCall {
  readonly holder: string;
  readonly claim: Claim;
  readonly beganAtMs: number;
  /** Null: it is open. */
  readonly ended: { readonly end: AttemptEnd; readonly atMs: number } | null;
}

/** Each property is named: a copy is slow to make and to write. */
function toRecord({ holder, claim, beganAtMs, ended }: LeasedCall, nowMs: number) {
  const end = ended?.end;
  return {
    attempt_id: claim.attempt_id,
    token: claim.token,
    key: claim.key,
    project_id: claim.project_id,
    capability: claim.capability,
    instance_id: claim.instance_id,
    endpoint: claim.decision.chosen,
    holder,
    lease_ms: claim.lease_ms,
    began_ms_ago: nowMs - beganAtMs,
    decision: claim.decision,
    inputs: claim.inputs,
    scopes: claim.scopes,
    model: end?.model ?? undefined,
    tokens: end?.tokens ?? undefined,
    content: end?.content ?? undefined,
    state: end?.state ?? 'dispatched',
    ambiguity: end?.ambiguity,
    counted: end?.counted,
    has_failed: end?.has_failed,
    duration_ms: end?.duration_ms,
    error: end?.error,
    ended_ms_ago: ended === null ? undefined : nowMs - ended.atMs,
  };
}

/** @returns ids of open calls that have no slot any more, and are lost */
export async function recordCalls(db: Db, calls: readonly LeasedCall[]): Promise<ReadonlySet<string>> {
  const nowMs = performance.now();
  const { rows } = await runPrepared<{ lost: readonly string[] }>(db, {
    name: 'record_calls',
    text: 'select record_calls($1) as lost',
    values: [toJsonb(calls.map((call) => toRecord(call, nowMs)))],
  });
  const [row] = rows;
  return new Set(row?.lost);
}
