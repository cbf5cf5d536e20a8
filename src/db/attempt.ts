/** Queries on attempts. The two on the hot path are functions of the database: see migration 0002. */
import type { Decision } from '../contracts/decision.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import type { Ambiguity, AttemptState, StepState } from '../contracts/run.ts';
import type { Db } from './connect.ts';
import { toJsonb } from './jsonb.ts';

/** The step that an attempt works for; null for a direct call. */
export interface StepKey {
  readonly run_id: string;
  readonly step_id: string;
  readonly item: number;
  readonly revision: number;
}

export interface Claim {
  readonly attempt_id: string;
  readonly token: string;
  readonly key: string;
  readonly project_id: string;
  readonly step: StepKey | null;
  readonly capability: string;
  readonly instance_id: string;
  readonly must_be_idle: boolean;
  readonly lease_ms: number;
  readonly reserved_nano: bigint;
  readonly decision: Decision;
  /** Must survive a crash of the database, also when it is free: the step is sent at most once. */
  readonly durable: boolean;
}

export interface ClaimResult {
  /** answered: the step has its result. closed: it ended otherwise. full, gone: not this instance. */
  readonly outcome: 'claimed' | 'answered' | 'closed' | 'full' | 'gone';
  readonly number: number;
  /** Counted failures of the key before this attempt. */
  readonly counted: number;
  readonly output: Json;
}

export const claimAttempt = async (db: Db, claim: Claim): Promise<ClaimResult> => {
  const { rows } = await db
    .raw<{ rows: ClaimResult[] }>(
      'select * from claim_attempt(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      [
        claim.attempt_id,
        claim.token,
        claim.key,
        claim.project_id,
        claim.step?.run_id ?? null,
        claim.step?.step_id ?? null,
        claim.step?.item ?? null,
        claim.step?.revision ?? null,
        claim.capability,
        claim.instance_id,
        claim.must_be_idle,
        claim.lease_ms,
        claim.reserved_nano.toString(),
        toJsonb(claim.decision),
        claim.durable,
      ],
    )
    .options({ name: 'claim_attempt' });
  return rows[0] as ClaimResult;
};

export interface AttemptEnd {
  readonly attempt_id: string;
  readonly token: string;
  readonly state: AttemptState;
  readonly ambiguity: Ambiguity | null;
  readonly counted: boolean;
  readonly settled_nano: bigint;
  readonly certainty: 'exact' | 'estimated';
  readonly duration_ms: number;
  readonly error: Failure | null;
  /** What becomes of the step. */
  readonly step_state: StepState;
  readonly output: Json | undefined;
  readonly event_data: Json;
}

/** @returns false when a later attempt has taken over: nothing was written */
export const settleAttempt = async (db: Db, end: AttemptEnd): Promise<boolean> => {
  const { rows } = await db
    .raw<{ rows: { settled: boolean }[] }>(
      'select settle_attempt(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) as settled',
      [
        end.attempt_id,
        end.token,
        end.state,
        end.ambiguity,
        end.counted,
        end.settled_nano.toString(),
        end.certainty,
        end.duration_ms,
        end.error === null ? null : toJsonb(end.error),
        end.step_state,
        end.output === undefined ? null : JSON.stringify(end.output),
        toJsonb(end.event_data),
      ],
    )
    .options({ name: 'settle_attempt' });
  return rows[0]?.settled === true;
};

/** Renews the leases of one process at once. @returns ids that are still its own */
export const renewLeases = async (
  db: Db,
  held: readonly { attempt_id: string; token: string }[],
  leaseMs: number,
): Promise<ReadonlySet<string>> => {
  const { rows } = await db.raw<{ rows: { attempt_id: string }[] }>(
    `update attempt a set lease_until = clock_timestamp() + ? * interval '1 millisecond'
     from unnest(?::text[], ?::uuid[]) as held (attempt_id, token)
     where a.attempt_id = held.attempt_id and a.token = held.token and a.state in ('reserved', 'dispatched')
     returning a.attempt_id`,
    [leaseMs, held.map(({ attempt_id }) => attempt_id), held.map(({ token }) => token)],
  );
  return new Set(rows.map(({ attempt_id }) => attempt_id));
};

/** Closes attempts whose lease ran out: their process is gone. Those being renewed are left. @returns how many */
export const loseExpiredAttempts = async (db: Db): Promise<number> => {
  const { rows } = await db.raw<{ rows: { lost: number }[] }>(
    `select lose_attempts(array(
       select attempt_id from attempt
       where state in ('reserved', 'dispatched') and lease_until < clock_timestamp() - interval '5 seconds'
       limit 500 for update skip locked
     )) as lost`,
  );
  return rows[0]?.lost ?? 0;
};

export interface AttemptRow {
  readonly attempt_id: string;
  readonly number: number;
  readonly endpoint: string;
  readonly state: AttemptState;
  readonly ambiguity: Ambiguity | null;
  readonly started_at: Date;
  readonly duration_ms: number | null;
  readonly reserved_nano: string;
  readonly settled_nano: string | null;
  readonly certainty: 'exact' | 'estimated' | null;
  readonly error: Failure | null;
  readonly decision: Decision;
}

export const listStepAttempts = (db: Db, runId: string, stepId: string): Promise<readonly AttemptRow[]> =>
  db('attempt').where({ run_id: runId, step_id: stepId }).orderBy('started_at').select('*');
