/** Queries around one transition of an escalation. */
import type { StepState } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';
import type { EscalatedStep } from './escalation.ts';

/** Holds the escalation until the transaction ends. @returns false when another transition was stored, or it has ended */
export async function lockTransition(db: Db, escalationId: string, transition: number): Promise<boolean> {
  const row = await db('escalation')
    .where({ escalation_id: escalationId, transition })
    .whereIn('state', ['running', 'in_review'])
    .forUpdate()
    .first('escalation_id');
  return row !== undefined;
}

/** Whom it waits for. */
export async function noteLeader(db: Db, escalationId: string, leaderId: string): Promise<void> {
  await db('escalation').where({ escalation_id: escalationId }).update({ leader_id: leaderId });
}

/** What a person allows it to spend from now on, USD. */
export async function raiseEscalationLimit(db: Db, escalationId: string, maxUsd: number): Promise<void> {
  await db('escalation').where({ escalation_id: escalationId }).update({ max_usd: maxUsd });
}

/** The database's clock, in Unix seconds with their fraction. */
export async function readUnixTime(db: Db): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ now: number }] }>(
    'select round(extract(epoch from clock_timestamp()), 3)::float8 as now',
  );
  return rows[0].now;
}

/** What the calls under keys that begin with `<owner>.` have cost and hold, in nano-USD. */
export async function readCallCost(
  db: Db,
  projectId: string,
  owner: string,
): Promise<{ readonly cost_nano: string; readonly reserved_nano: string }> {
  const { rows } = await db.raw<{ rows: [{ cost_nano: string; reserved_nano: string }] }>(
    `select coalesce(sum(settled_nano), 0) as cost_nano,
       coalesce(sum(reserved_nano) filter (where state in ('reserved', 'dispatched')), 0) as reserved_nano
     from attempt where key like 'esc\\_%' and key ~>=~ (?::text || '.') and key ~<~ (?::text || '/')
       and project_id = ?`,
    [owner, owner, projectId],
  );
  return rows[0];
}

/** Undefined before its first claim. */
export async function readStepState(
  db: Db,
  { run_id, step_id, item }: EscalatedStep,
): Promise<StepState | undefined> {
  const row = await db('step').where({ run_id, step_id, item }).first('state');
  return row?.state;
}
