/** Drains and warm-ups of instances. Both are separate from the state: no event of the instance changes a drain. */
import type { WarmUp } from '@capstan/core/contracts/capability';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import { type InstanceColumns, type InstanceKey, warmAgain } from './instance.ts';

/** A drain as rows of instances and hosts have it. */
export type DrainRow = Pick<InstanceColumns, 'drained_by' | 'drained_at' | 'drain_reason' | 'drain_until'>;

export interface DrainColumns {
  readonly by: string;
  readonly reason: string | null;
  readonly until: string | null;
}

/** Repeated, it replaces person, reason and end. */
export async function setDrain(
  db: Db,
  instanceId: string,
  { by, reason, until }: DrainColumns,
): Promise<void> {
  await db.raw(
    `update instance set drained_by = ?, drained_at = coalesce(drained_at, now()), drain_reason = ?, drain_until = ?,
       drained_with_host = false where instance_id = ?`,
    [by, reason, until, instanceId],
  );
}

export const endOfDrain = `drained_by = null, drained_at = null, drain_reason = null, drain_until = null, drained_with_host = false,
  ${warmAgain('warm_up')}`;

/** @returns whether it was drained */
export function endDrain(db: Db, instanceId: string): Promise<boolean> {
  return query(db).some(
    `update instance set ${endOfDrain} where instance_id = ? and drained_by is not null returning 1`,
    [instanceId],
  );
}

/** Ends the drains whose time is over. */
export function endDueDrains(db: Db): Promise<InstanceKey[]> {
  return query<InstanceKey>(db).all(
    `update instance set ${endOfDrain} where drain_until <= now() returning name, endpoint`,
  );
}

/** Makes its warm-up due. @returns false: it has none */
export function warmInstance(db: Db, instanceId: string): Promise<boolean> {
  return query(db).some(
    `update instance set ${warmAgain('warm_up')} where instance_id = ? and warm_up is not null returning 1`,
    [instanceId],
  );
}

export interface DueWarmUp extends InstanceKey {
  readonly instance_id: string;
  readonly spec_digest: string;
  readonly warm_up: WarmUp;
  /** Names this try: a later registration or try has another one. */
  readonly warm_due_at: Date;
}

/** If the process that makes the call dies, the warm-up is due again then. */
const graceMs = 5_000;

/** Takes due warm-ups of instances that could be called. The time has whole milliseconds, so that a Date equals it. */
export function claimWarmUps(db: Db, limit: number): Promise<DueWarmUp[]> {
  return query<DueWarmUp>(db).all(
    `update instance i set warm_due_at = date_trunc('milliseconds', now())
       + ((i.warm_up ->> 'timeout_s')::int * 1000 + ?) * interval '1 millisecond'
     where i.instance_id in (
       select instance_id from instance
       where warm_due_at <= now() and state in ('up', 'suspect') and drained_by is null and spec_digest is not null
       order by warm_due_at limit ? for no key update skip locked)
     returning i.instance_id, i.name, i.endpoint, i.spec_digest, i.warm_up, i.warm_due_at`,
    [graceMs, limit],
  );
}

/** @param failure null: it succeeded; otherwise it is retried after a pause @returns false: another try replaced it */
export function endWarmUp(
  db: Db,
  { instance_id, warm_due_at }: Pick<DueWarmUp, 'instance_id' | 'warm_due_at'>,
  failure: { readonly error: string; readonly pauseMs: number } | null,
): Promise<boolean> {
  return query(db).some(
    `update instance set warm_due_at = now() + ?::double precision * interval '1 millisecond', warm_error = ?
     where instance_id = ? and warm_due_at = ? returning 1`,
    [failure?.pauseMs ?? null, failure?.error ?? null, instance_id, warm_due_at],
  );
}
