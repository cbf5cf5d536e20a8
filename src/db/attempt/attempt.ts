/** Queries on attempts. The one around every call is a function of the database: sql/claims.sql.ts. */
import type { CostModel } from '../../contracts/capability.ts';
import type { Decision } from '../../contracts/decision.ts';
import type { Failure, Json, JsonObject } from '../../contracts/primitives.ts';
import type { Ambiguity, AttemptState, CachedFrom, StepState } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';
import type { KeptPlace } from '../idempotency.ts';
import { runPrepared, toJsonb } from '../statements.ts';

/** A step of a run as a whole (item 0), or one of its items. */
export interface StepItemKey {
  readonly run_id: string;
  readonly step_id: string;
  readonly item: number;
}

/** What an attempt works for: a unit, by the revision of its input. */
export interface StepKey extends StepItemKey {
  readonly revision: number;
}

export interface Claim {
  readonly attempt_id: string;
  readonly token: string;
  readonly key: string;
  /** No other attempt of this key was ever made, and nobody else makes one. */
  readonly is_first: boolean;
  /** Refused as closed where its step has begun: whoever began it may be at it still. */
  readonly begins_step: boolean;
  /** Instances of which it is known that they have failed the key. */
  readonly known_failures: readonly string[];
  readonly project_id: string;
  readonly step: StepKey | null;
  /** Whose ceiling holds: the run of the step, or of the ladder that asks a model for it. */
  readonly run_id: string | null;
  readonly capability: string;
  readonly instance_id: string;
  readonly must_be_idle: boolean;
  /** For a call that may come: refused where money is short. */
  readonly is_prefetch: boolean;
  /** The price that the reservation was worked out from. */
  readonly cost_type: CostModel['type'];
  readonly rate_usd: number;
  readonly lease_ms: number;
  readonly reserved_nano: bigint;
  readonly decision: Decision;
  /** What the choice was made from. */
  readonly inputs: JsonObject;
}

/** The scope that has no room for a reservation. */
export interface BudgetShortage {
  readonly scope: 'run' | 'project' | 'global';
  /** The run of the call, or one above it, where the scope is a run's. */
  readonly run_id: string | null;
  readonly limit_nano: string;
  readonly spent_nano: string;
  readonly reserved_nano: string;
  readonly resets_at: string | null;
}

interface Claimed {
  readonly outcome: 'claimed';
  readonly number: number;
  /** Counted failures of the key before this attempt. */
  readonly counted: number;
}

export type ClaimResult =
  | Claimed
  /** The step has its result. */
  | { readonly outcome: 'answered'; readonly output: Json }
  /** closed: the step or its run ended otherwise. full, gone: not this instance; gone also when its price is another. */
  | { readonly outcome: 'closed' | 'full' | 'gone' }
  | { readonly outcome: 'over_budget'; readonly output: BudgetShortage }
  /** Instances have failed the key that were not known to; with how many of those attempts are counted. */
  | { readonly outcome: 'failed_before'; readonly output: Readonly<Record<string, number>> };

export interface AttemptEnd {
  readonly attempt_id: string;
  readonly token: string;
  readonly state: AttemptState;
  readonly ambiguity: Ambiguity | null;
  readonly counted: boolean;
  /** Later attempts of the key go to other instances first. */
  readonly has_failed: boolean;
  readonly settled_nano: bigint;
  readonly certainty: 'exact' | 'estimated';
  readonly duration_ms: number;
  readonly error: Failure | null;
  /** What becomes of the step. */
  readonly step_state: StepState;
  /** Kept with the step, or under the caller's Idempotency-Key. */
  readonly output: Json | undefined;
  /** Where the output is the answer that a caller's Idempotency-Key keeps. */
  readonly keeps: KeptPlace | null;
  readonly event_data: Json;
  /** The step that the attempt worked for. */
  readonly step: StepKey | null;
}

/** superseded: a later attempt has taken over, and nothing but money was written. */
export type EndResult = 'settled' | 'superseded';

/** JSON leaves out what is undefined. */
function toClaimRequest(claim: Claim) {
  return { ...claim, ...claim.step, step: undefined, reserved_nano: claim.reserved_nano.toString() };
}

function toEndRequest(end: AttemptEnd) {
  return {
    ...end,
    ...end.step,
    step: undefined,
    output: undefined,
    settled_nano: end.settled_nano.toString(),
  };
}

export interface AttemptBatch {
  readonly ends: readonly AttemptEnd[];
  /** Made after the ends are written. */
  readonly claims: readonly Claim[];
}

/**
 * Ends and claims by one statement, one result for each.
 * @param isDurable false: a crash of the database may take it back; all ends are of free calls without a step
 */
export async function settleAndClaim(
  db: Db,
  { ends, claims }: AttemptBatch,
  isDurable: boolean,
): Promise<{ readonly ends: readonly EndResult[]; readonly claims: readonly ClaimResult[] }> {
  const rows = await runPrepared<ClaimResult | { outcome: EndResult }>(db, {
    name: 'settle_and_claim',
    text: 'select * from settle_and_claim($1, $2, $3, $4)',
    values: [
      ends.length === 0 ? null : toJsonb(ends.map(toEndRequest)),
      ends.map(({ output = null }) => JSON.stringify(output)),
      claims.length === 0 ? null : toJsonb(claims.map(toClaimRequest)),
      isDurable,
    ],
  });
  const endRows = rows.slice(0, ends.length) as { outcome: EndResult }[];
  return {
    ends: endRows.map(({ outcome }) => outcome),
    claims: rows.slice(ends.length) as ClaimResult[],
  };
}

/**
 * Renews the leases of one process at once. What was made for a run that has ended is nobody's any more: who began it may
 * not have been told, when the run was terminated or nobody had asked yet for what goes on of a batch.
 *
 * @returns ids that are still its own
 */
export async function renewLeases(
  db: Db,
  held: readonly { attempt_id: string; token: string }[],
  leaseMs: number,
): Promise<ReadonlySet<string>> {
  const { rows } = await db.raw<{ rows: { attempt_id: string }[] }>(
    `with held as (
       select a.attempt_id from unnest(?::text[], ?::uuid[]) h (attempt_id, token)
       join attempt a on a.attempt_id = h.attempt_id and a.token = h.token
       left join run r on r.run_id = a.run_id
       where a.state in ('reserved', 'dispatched') and r.finished_at is null order by a.attempt_id for update of a
     )
     update attempt a set lease_until = clock_timestamp() + ? * interval '1 millisecond'
     from held where a.attempt_id = held.attempt_id returning a.attempt_id`,
    [held.map(({ attempt_id }) => attempt_id), held.map(({ token }) => token), leaseMs],
  );
  return new Set(rows.map(({ attempt_id }) => attempt_id));
}

/** Whether some process makes the call of one of these keys: its attempt is open, and its lease runs. */
export async function isHeld(db: Db, keys: readonly string[]): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `select from attempt where key = any(?) and state in ('reserved', 'dispatched') and lease_until > clock_timestamp()`,
    [[...keys]],
  );
  return rowCount > 0;
}

/** Takes a call away from the process that makes it, which hears so when it renews its lease. */
export async function loseOpenAttempt(db: Db, key: string): Promise<void> {
  await db.raw(
    `select lose_attempts(array(select attempt_id from attempt where key = ? and state in ('reserved', 'dispatched')
       order by attempt_id for update))`,
    [key],
  );
}

/** Closes attempts whose lease ran out: their process is gone. Those being renewed are left. @returns how many */
export async function loseExpiredAttempts(db: Db): Promise<number> {
  const { rows } = await db.raw<{ rows: { lost: number }[] }>(
    `select lose_attempts(array(
       select attempt_id from attempt
       where state in ('reserved', 'dispatched') and lease_until < clock_timestamp() - interval '5 seconds'
       limit 500 for update skip locked
     )) as lost`,
  );
  return rows[0]?.lost ?? 0;
}

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
  /** Of the state `cached`. */
  readonly cached_from: CachedFrom | null;
  /** Null: it is no longer kept. */
  readonly decision: Decision | null;
}

/** Lists the attempts of all revisions of a step, or of one of its items, the oldest first. */
export function listStepAttempts(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
): Promise<readonly AttemptRow[]> {
  return db('attempt')
    .leftJoin('attempt_choice', 'attempt_choice.attempt_id', 'attempt.attempt_id')
    .where({ run_id, step_id, item })
    .orderBy('started_at')
    .select('attempt.*', 'decision');
}

/**
 * Takes the place of a claim whose answer was lost, so that it can never be made: the row says that nothing was sent, and
 * belongs to no key, run or budget. A claim that is under way is waited for. @returns false: it was made before
 */
export async function preventClaim(db: Db, claim: Claim): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
       lease_until, cost_type, rate_usd, reserved_nano, settled_nano, certainty, ambiguity, duration_ms, error,
       finished_at)
     values (:attempt_id, :project_id, :attempt_id, 1, :capability, :instance_id, :endpoint, 'released', :token,
       clock_timestamp(), :cost_type, :rate_usd, 0, 0, 'exact', 'not_sent', 0,
       '{"code": "unavailable", "message": "the claim was not answered"}', clock_timestamp())
     on conflict (attempt_id) do nothing`,
    {
      attempt_id: claim.attempt_id,
      project_id: claim.project_id,
      capability: claim.capability,
      instance_id: claim.instance_id,
      endpoint: claim.decision.chosen ?? '',
      token: claim.token,
      cost_type: claim.cost_type,
      rate_usd: claim.rate_usd,
    },
  );
  return rowCount === 1;
}
