/** Calls that their instance answers later, and the answers that came (sql/callbacks.sql). */
import type { CostModel } from '@capstan/core/contracts/capability';
import type { Decision } from '@capstan/core/contracts/decision';
import type { Failure } from '@capstan/core/contracts/primitives';
import type { AttemptState } from '@capstan/core/contracts/run-step';
import type { Db } from '../connect.ts';
import { query, toJsonb } from '../statements.ts';
import { callKeyOf, type StepKey } from './attempt.ts';

/** What a call that is answered later keeps of its instance, which may be gone by then. */
export interface LaterFacts {
  readonly slot: 'held' | 'freed';
  readonly settle: 'computed' | 'reported';
  readonly spec_digest: string | null;
}

interface OwnAttempt {
  readonly attempt_id: string;
  readonly token: string;
}

/** @returns the deadline; null: the attempt is not this process's any more */
export async function parkCall(
  db: Db,
  { attempt_id, token }: OwnAttempt,
  { timeoutMs, later }: { readonly timeoutMs: number; readonly later: LaterFacts },
): Promise<Date | null> {
  const row = await query<{ until: Date | null }>(db).one('select park_call(?, ?, ?, ?::jsonb) as until', [
    attempt_id,
    token,
    timeoutMs,
    toJsonb({ ...later }),
  ]);
  return row.until;
}

/** A process that waits for the answer itself. Its deadline is noted: a later answer is refused. */
export async function noteLaterCall(
  db: Db,
  { attempt_id, token }: OwnAttempt,
  { timeoutMs, later }: { readonly timeoutMs: number; readonly later: LaterFacts },
): Promise<void> {
  await query(db).written(
    `update attempt set later = ?::jsonb
       || jsonb_build_object('until', started_at + ?::float8 * interval '1 millisecond')
     where attempt_id = ? and token = ?`,
    [toJsonb({ ...later }), timeoutMs, attempt_id, token],
  );
}

export type Receipt = 'taken' | 'overdue' | 'late' | 'again' | 'unknown';

/** The body of an answer at rest. */
export interface StoredBody {
  readonly body: Buffer;
  /** The key that seals it; null: it is not sealed. */
  readonly key_id: string | null;
}

export async function receiveAnswer(
  trx: Db,
  attemptId: string,
  { body, key_id }: StoredBody,
): Promise<Receipt> {
  const row = await query<{ receipt: Receipt }>(trx).one('select receive_answer(?, ?, ?) as receipt', [
    attemptId,
    body,
    key_id,
  ]);
  return row.receipt;
}

interface AdoptedAttempt {
  readonly outcome: 'none' | 'held' | 'waiting' | 'adopted';
  readonly answers_by: Date | null;
  readonly attempt_id: string;
  /** How long its step has waited, ms. */
  readonly waited_ms: number;
}

/** @param holder of the leases of the process that continues with the call */
export function adoptCall(
  db: Db,
  step: StepKey,
  { holder, leaseMs }: { readonly holder: string; readonly leaseMs: number },
): Promise<AdoptedAttempt> {
  const { run_id, step_id, item } = step;
  return query<AdoptedAttempt>(db).one('select * from adopt_call(?, ?, ?, ?, ?, ?)', [
    callKeyOf(step),
    run_id,
    step_id,
    item,
    holder,
    leaseMs,
  ]);
}

/** An attempt as its end needs it, with the answer to it. */
export interface LaterAttempt extends OwnAttempt {
  readonly key: string;
  readonly number: number;
  readonly state: AttemptState;
  readonly project_id: string;
  readonly run_id: string | null;
  readonly step_id: string | null;
  readonly item: number | null;
  readonly scopes: readonly string[] | null;
  readonly capability: string;
  readonly instance_id: string;
  readonly endpoint: string;
  readonly cost_type: CostModel['type'];
  /** numeric as text */
  readonly rate_usd: string;
  /** bigint as text */
  readonly reserved_nano: string;
  readonly risk_nano: string;
  /** Null: its process ended before it knew. */
  readonly later: LaterFacts | null;
  /** From the claim to the deadline, ms; null: no deadline is stored. */
  readonly timeout_ms: number | null;
  readonly decision: Decision | null;
  /** Counted failures of the key before it. */
  readonly counted: number;
  /** Of its attempts that were answered, in their order. */
  readonly errors: readonly Failure[];
  /** Null: none has come, or it was settled. */
  readonly body: Buffer | null;
  /** The key that seals it. */
  readonly key_id: string | null;
  /** The call does not take it. Null: none has come. */
  readonly is_late: boolean | null;
  /** From the claim to the answer, ms; null: none has come. */
  readonly duration_ms: number | null;
}

export function readLaterAttempt(db: Db, attemptId: string): Promise<LaterAttempt> {
  return query<LaterAttempt>(db).one(
    `select a.attempt_id, a.token, a.key, a.number, a.state, a.project_id, a.run_id, a.step_id, a.item, a.scopes,
       a.capability, a.instance_id, a.endpoint, a.cost_type, a.rate_usd, a.reserved_nano, a.risk_nano, a.later,
       (extract(epoch from a.answers_by - a.started_at) * 1000)::float8 as timeout_ms, h.decision,
       (select count(*)::int from attempt o where o.key = a.key and o.counted and o.number < a.number) as counted,
       failures_of(a.key) -> 'errors' as errors, c.body, c.key_id, c.is_late,
       (extract(epoch from c.received_at - a.started_at) * 1000)::float8 as duration_ms
     from attempt a left join callback_answer c using (attempt_id) left join attempt_choice h using (attempt_id)
     where a.attempt_id = ?`,
    [attemptId],
  );
}

interface ArrivedAnswer extends StoredBody {
  readonly duration_ms: number;
}

export function readArrivedAnswer(db: Db, attemptId: string): Promise<ArrivedAnswer | undefined> {
  return query<ArrivedAnswer>(db, 'read_arrived_answer').first(
    `select c.body, c.key_id, (extract(epoch from c.received_at - a.started_at) * 1000)::float8 as duration_ms
     from callback_answer c join attempt a using (attempt_id) where c.attempt_id = ? and c.body is not null and not c.is_late`,
    [attemptId],
  );
}

/** Its attempt was settled. The row stays: the address is used. */
export async function forgetAnswer(db: Db, attemptId: string): Promise<void> {
  await db('callback_answer').where({ attempt_id: attemptId }).update({ body: null, key_id: null });
}

/** A worker that continues with a call needs this long after the deadline. */
const graceMs = 60_000;

/**
 * Loses calls whose answer has not come in time, and that no worker has ended: their runs have ended, or none runs.
 * @returns how many
 */
export async function loseOverdueCalls(db: Db): Promise<number> {
  const row = await query<{ lost: number }>(db, 'lose_overdue_calls').first(`select lose_attempts(array(
       select a.attempt_id from attempt a
       where a.state = 'dispatched' and a.answers_by < clock_timestamp() - interval '${graceMs} milliseconds'
         and a.lease_until < clock_timestamp() - interval '5 seconds'
         and not exists (
           select from callback_answer c where c.attempt_id = a.attempt_id and c.body is not null and not c.is_late)
       order by a.attempt_id limit 500 for update skip locked
     )) as lost`);
  return row?.lost ?? 0;
}

/** Loses the calls of ended runs of a project that wait for their answer, before their deadline. */
export async function loseParkedCalls(db: Db, projectId: string): Promise<void> {
  await db.raw(
    `select lose_attempts(array(
       select a.attempt_id from attempt a join run r using (run_id)
       where a.state = 'dispatched' and a.answers_by is not null and a.lease_until = a.answers_by
         and a.project_id = ? and r.finished_at is not null
         and not exists (
           select from callback_answer c where c.attempt_id = a.attempt_id and c.body is not null and not c.is_late)
       order by a.attempt_id for update of a skip locked))`,
    [projectId],
  );
}

/** Lists answers that no step takes: it has ended since they came, or their attempt has. */
export async function listLeftAnswers(db: Db, limit: number): Promise<readonly string[]> {
  const rows = await query<{ attempt_id: string }>(db, 'list_left_answers').all(
    `select c.attempt_id from callback_answer c join attempt a using (attempt_id)
       left join step s on s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item
     where c.body is not null and c.received_at < clock_timestamp() - interval '5 seconds'
       and (a.state <> 'dispatched' or s.finished_at is not null
         or a.step_id is null and a.lease_until < clock_timestamp() - interval '5 seconds')
     order by c.received_at limit ?`,
    [limit],
  );
  return rows.map(({ attempt_id }) => attempt_id);
}

export async function readCallbackKey(db: Db): Promise<Buffer> {
  const { key } = await query<{ key: Buffer }>(db).one('select key from callback_key');
  return key;
}
