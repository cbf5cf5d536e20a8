/** Queries on attempts. The statement of every call is a database function: sql/claims.sql. */
import type { CallTokens, KeptContent } from '@capstan/core/contracts/call';
import type { CostModel } from '@capstan/core/contracts/capability';
import type { Decision } from '@capstan/core/contracts/decision';
import type { BudgetPeriod, BudgetRefusal } from '@capstan/core/contracts/money';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Ambiguity, AttemptState, CachedFrom, StepState } from '@capstan/core/contracts/run-step';
import type { Db } from '../connect.ts';
import type { KeptPlace } from '../idempotency.ts';
import { query, runPrepared, toJson, toJsonb } from '../statements.ts';

/** A step of a run as a whole (item 0), or one of its items. */
export interface StepItemKey {
  readonly run_id: string;
  readonly step_id: string;
  readonly item: number;
}

/** The unit that an attempt works for, with the revision of its input. */
export interface StepKey extends StepItemKey {
  readonly revision: number;
}

/** What a call is expected to hold at its end, nano-USD, with the variance of that. */
export interface ExpectedHold {
  readonly mean: number;
  readonly variance: number;
}

export interface Claim {
  readonly attempt_id: string;
  /** Of the process that makes it: the attempt is its own, and it renews all of its token while it does not turn. */
  readonly token: string;
  readonly key: string;
  /** No other attempt of this key exists, and no other caller makes one. */
  readonly is_first: boolean;
  /** Refused as `closed` if its step has begun: another caller may still be working on it. */
  readonly begins_step: boolean;
  /** Instances that are known to have failed the key. */
  readonly known_failures: readonly string[];
  readonly project_id: string;
  readonly step: StepKey | null;
  /** The run whose ceiling applies: that of the step, or of the ladder that calls a model for it. */
  readonly run_id: string | null;
  /** Key, user and labels (core/money/scoped-budget.ts); of a run also its pipeline. Absent: those of the run's row. */
  readonly scopes?: readonly string[] | undefined;
  readonly capability: string;
  readonly instance_id: string;
  readonly must_be_idle: boolean;
  /** Its instance shares the slots of a host. */
  readonly has_host: boolean;
  /** The price from which the reservation was computed. */
  readonly cost_type: CostModel['type'];
  readonly rate_usd: number;
  readonly lease_ms: number;
  readonly reserved_nano: bigint;
  /** What it may cost beyond that; its budgets reserve this too. */
  readonly risk_nano: bigint;
  /** Null: its reservation does not grow. */
  readonly outlook: ExpectedHold | null;
  readonly decision: Decision;
  /** The inputs of the decision. */
  readonly inputs: JsonObject;
}

/** The scope that has no room for a reservation. */
export interface BudgetShortage {
  readonly scope: Exclude<BudgetRefusal['scope'], 'call'>;
  /** The run of the call, or one above it, if the scope is a run's. */
  readonly run_id: string | null;
  /** The scope and period of a scoped budget, else null. */
  readonly budget: string | null;
  readonly period: BudgetPeriod | null;
  readonly limit_nano: string;
  readonly spent_nano: string;
  readonly reserved_nano: string;
  /** The amount that calls in flight are expected to hold beyond that. */
  readonly rest_nano: string;
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
  /** The step already has its result. */
  | { readonly outcome: 'answered'; readonly output: Json }
  /**
   * closed: the step or its run has ended otherwise. full, gone: the instance is not available; gone also if its price
   * has changed.
   */
  | { readonly outcome: 'closed' | 'full' | 'gone' }
  | { readonly outcome: 'over_budget'; readonly output: BudgetShortage }
  /** Instances have failed the key that the claim did not know. */
  | { readonly outcome: 'failed_before'; readonly output: FailuresOfKey };

interface FailuresOfKey {
  /** By instance, the number of its counted attempts. */
  readonly counted: Readonly<Record<string, number>>;
  /** Of the attempts that were answered, in their order. */
  readonly errors: readonly Failure[];
}

export interface AttemptEnd {
  readonly attempt_id: string;
  readonly token: string;
  readonly state: AttemptState;
  readonly ambiguity: Ambiguity | null;
  readonly counted: boolean;
  /** Later attempts of the key prefer other instances. */
  readonly has_failed: boolean;
  readonly settled_nano: bigint;
  readonly certainty: 'exact' | 'estimated';
  readonly duration_ms: number;
  /** The instance asked for it before the next attempt, ms; null: it did not. */
  readonly asked_pause_ms: number | null;
  /** On its way, because its budgets had no more room. */
  readonly is_stopped: boolean;
  readonly error: Failure | null;
  /** The resulting state of the step. */
  readonly step_state: StepState;
  /** Stored with the step, or under the caller's Idempotency-Key. */
  readonly output: Json | undefined;
  /** Set if the output is stored under a caller's Idempotency-Key. */
  readonly keeps: KeptPlace | null;
  readonly event_data: Json;
  readonly model: string | null;
  readonly tokens: CallTokens | null;
  /** Null: it is not kept. */
  readonly content: KeptContent | null;
  /** The step that the attempt worked for. */
  readonly step: StepKey | null;
}

/** superseded: a later attempt has taken over, and only money was written. */
export type EndResult = 'settled' | 'superseded';

// What is sent of a claim and of an end. JSON omits undefined values. Each property is named: a copy without some of
// them is slow to make and to write.

function toClaimRequest(claim: Claim) {
  const { step } = claim;
  return {
    attempt_id: claim.attempt_id,
    token: claim.token,
    key: claim.key,
    is_first: claim.is_first,
    begins_step: claim.begins_step,
    known_failures: claim.known_failures,
    project_id: claim.project_id,
    run_id: claim.run_id,
    step_id: step?.step_id,
    item: step?.item,
    revision: step?.revision,
    scopes: claim.scopes,
    capability: claim.capability,
    instance_id: claim.instance_id,
    must_be_idle: claim.must_be_idle,
    has_host: claim.has_host || undefined,
    cost_type: claim.cost_type,
    rate_usd: claim.rate_usd,
    lease_ms: claim.lease_ms,
    reserved_nano: claim.reserved_nano.toString(),
    risk_nano: claim.risk_nano.toString(),
    expected_nano: claim.outlook === null ? undefined : Math.ceil(claim.outlook.mean),
    variance: claim.outlook?.variance,
    decision: claim.decision,
    inputs: claim.inputs,
  } satisfies Record<
    Exclude<keyof Claim | keyof StepKey, 'step' | 'outlook'> | 'expected_nano' | 'variance',
    unknown
  >;
}

function toEndRequest(end: AttemptEnd) {
  const { step } = end;
  return {
    attempt_id: end.attempt_id,
    token: end.token,
    run_id: step?.run_id,
    step_id: step?.step_id,
    item: step?.item,
    revision: step?.revision,
    state: end.state,
    ambiguity: end.ambiguity,
    counted: end.counted,
    has_failed: end.has_failed,
    settled_nano: end.settled_nano.toString(),
    certainty: end.certainty,
    duration_ms: end.duration_ms,
    asked_pause_ms: end.asked_pause_ms ?? undefined,
    is_stopped: end.is_stopped || undefined,
    error: end.error,
    step_state: end.step_state,
    keeps: end.keeps,
    event_data: end.event_data,
    model: end.model ?? undefined,
    tokens: end.tokens ?? undefined,
    content: end.content ?? undefined,
  } satisfies Record<Exclude<keyof AttemptEnd | keyof StepKey, 'step' | 'output'>, unknown>;
}

export interface AttemptBatch {
  readonly ends: readonly AttemptEnd[];
  /** Made after the ends are written. */
  readonly claims: readonly Claim[];
}

/**
 * Writes ends and claims in one statement, with one result for each.
 * @param isDurable false: a crash of the database may undo it; all ends are of free calls without a step
 */
export async function settleAndClaim(
  db: Db,
  { ends, claims }: AttemptBatch,
  isDurable: boolean,
): Promise<{ readonly ends: readonly EndResult[]; readonly claims: readonly ClaimResult[] }> {
  const { rows } = await runPrepared<ClaimResult | { outcome: EndResult }>(db, {
    name: 'settle_and_claim',
    text: 'select * from settle_and_claim($1, $2, $3, $4)',
    values: [
      ends.length === 0 ? null : toJsonb(ends.map(toEndRequest)),
      ends.map(({ output = null }) => toJson(output)),
      claims.length === 0 ? null : toJsonb(claims.map(toClaimRequest)),
      isDurable,
    ],
  });
  const endRows = rows.slice(0, ends.length) as { outcome: EndResult }[];
  return { ends: endRows.map(({ outcome }) => outcome), claims: rows.slice(ends.length) as ClaimResult[] };
}

/**
 * Renews the leases of one process in one statement. Attempts for an ended run are not renewed. Their caller may not
 * know of the end: the run was terminated, or the rest of a batch has not asked yet.
 *
 * @returns ids of the attempts that the process still holds
 */
export async function renewLeases(
  db: Db,
  held: readonly { attempt_id: string; token: string }[],
  leaseMs: number,
): Promise<ReadonlySet<string>> {
  const rows = await query<{ attempt_id: string }>(db).all(
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

/** Whether a process makes a call with one of these keys: its attempt is open, and its lease has not expired. */
export function isHeld(db: Db, keys: readonly string[]): Promise<boolean> {
  return query(db).wrote(
    `select from attempt where key = any(?) and state in ('reserved', 'dispatched') and lease_until > clock_timestamp()
       and answers_by is null`,
    [[...keys]],
  );
}

/** The last failure of a call that is to be made again. */
interface LastFailure {
  readonly is_counted: boolean;
  /** Counted failures of the call. */
  readonly counted: number;
  /** The pause that the instance asked for, ms; 0: none. */
  readonly asked_ms: number;
  /** Since it was stored, ms. */
  readonly age_ms: number;
}

/** @returns undefined when the last attempt has not failed */
export function readLastFailure(db: Db, key: string): Promise<LastFailure | undefined> {
  return query<LastFailure>(db).first(
    `select counted as is_counted, coalesce(asked_pause_ms, 0) as asked_ms,
       (select count(*)::int from attempt where key = ? and counted) as counted,
       (extract(epoch from clock_timestamp() - finished_at) * 1000)::float8 as age_ms
     from (select * from attempt where key = ? order by number desc limit 1) a
     where finished_at is not null and error is not null`,
    [key, key],
  );
}

/** Takes a call away from the process that makes it, which learns of that at its next lease renewal. */
export async function loseOpenAttempt(db: Db, key: string): Promise<void> {
  await db.raw(
    `select lose_attempts(array(select attempt_id from attempt where key = ? and state in ('reserved', 'dispatched')
       order by attempt_id for update))`,
    [key],
  );
}

/**
 * Closes attempts whose lease has expired: their process is gone. Attempts that are being renewed are skipped.
 * @returns how many
 */
export async function loseExpiredAttempts(db: Db): Promise<number> {
  const row = await query<{ lost: number }>(db, 'lose_expired_attempts').first(`select lose_attempts(array(
       select attempt_id from attempt
       where state in ('reserved', 'dispatched') and lease_until < clock_timestamp() - interval '5 seconds'
         and answers_by is null and not exists (
           select from callback_answer c where c.attempt_id = attempt.attempt_id and c.body is not null and not c.is_late)
       limit 500 for update skip locked
     )) as lost`);
  return row?.lost ?? 0;
}

/** How the reservation of an attempt has grown. */
export interface GrownColumns {
  readonly started_at: Date;
  readonly reserved_nano: string;
  /** Null: it does not grow. */
  readonly expected_nano: string | null;
  readonly pieces: number;
  /** Null: there are no pieces. */
  readonly piece_ms: readonly number[] | null;
  readonly piece_nano: readonly string[] | null;
  readonly is_stopped: boolean | null;
}

export interface AttemptRow extends GrownColumns {
  readonly attempt_id: string;
  readonly number: number;
  readonly endpoint: string;
  readonly state: AttemptState;
  readonly ambiguity: Ambiguity | null;
  readonly duration_ms: number | null;
  readonly settled_nano: string | null;
  readonly certainty: 'exact' | 'estimated' | null;
  readonly error: Failure | null;
  /** Only in state `cached`. */
  readonly cached_from: CachedFrom | null;
  /** Null: it is no longer stored. */
  readonly decision: Decision | null;
}

/** Lists the attempts of all revisions of a step or item, oldest first. */
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
 * Inserts a row in place of a claim whose response was lost, so that it can never be made. The row records that nothing
 * was sent, and belongs to no key, run or budget. It waits for a claim in flight.
 * @returns false if the claim was made before
 */
export function preventClaim(db: Db, claim: Claim): Promise<boolean> {
  return query(db).wrote(
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
}

/** The Idempotency-Key of a step's calls. */
export function callKeyOf({ run_id, step_id, item, revision }: StepKey): string {
  return `${run_id}.${step_id}.${item}.${revision}`;
}
