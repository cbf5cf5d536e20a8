/** Corrected inputs of steps. Revision 0, the author's own input, is in the definition. */
import type { Failure, Json } from '@capstan/core/contracts/primitives';
import type { StepItemKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { query, toJson } from '../statements.ts';

export interface NewStepRevision extends StepItemKey {
  readonly input: Json;
  /** `repair`, the id of a skill, the label of a level, or `review:<id>`. */
  readonly source: string;
  readonly escalation_id: string;
  readonly transition: number;
  /** 0 for the first correction of the transition. */
  readonly choice: number;
}

export interface StepRevisionRow extends NewStepRevision {
  readonly revision: number;
  readonly created_at: Date;
}

/** Stores the next revision. If this transition has stored the correction before, that one stays and is returned. */
export function storeStepRevision(db: Db, correction: NewStepRevision): Promise<StepRevisionRow> {
  return query<StepRevisionRow>(db).one(
    `insert into step_revision (run_id, step_id, item, revision, input, source, escalation_id, transition, choice)
     select :run_id, :step_id, :item, coalesce(max(revision), 0) + 1, :input, :source, :escalation_id,
       :transition, :choice
     from step_revision where run_id = :run_id and step_id = :step_id and item = :item
     on conflict (escalation_id, transition, choice) do update set choice = excluded.choice
     returning *`,
    { ...correction, input: toJson(correction.input) },
  );
}

export function readStepRevision(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
  revision: number,
): Promise<StepRevisionRow | undefined> {
  return db('step_revision').where({ run_id, step_id, item, revision }).first('*');
}

/**
 * The failure that ended a revision: that of its last attempt, if final by itself and not by exhausted retries.
 * @param key of the revision's attempts
 */
export async function findRevisionFailure(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
  key: string,
): Promise<Failure | undefined> {
  const last = await db('attempt')
    .where({ run_id, step_id, item, key })
    .orderBy('number', 'desc')
    .first('state', 'counted', 'error');
  return last?.state === 'settled' && !last.counted ? (last.error ?? undefined) : undefined;
}

export interface ListedRevision extends StepRevisionRow {
  /** An instance received it, or may have. */
  readonly was_claimed: boolean;
}

/** Oldest first. */
export function listStepRevisions(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
): Promise<readonly ListedRevision[]> {
  return query<ListedRevision>(db).all(
    `select r.*, exists (
       select from attempt a where a.run_id = r.run_id and a.step_id = r.step_id and a.item = r.item
         and a.key = concat_ws('.', r.run_id, r.step_id, r.item, r.revision)
     ) as was_claimed
     from step_revision r where r.run_id = ? and r.step_id = ? and r.item = ? order by r.revision`,
    [run_id, step_id, item],
  );
}

/** Lists the corrections that a transition has stored, by choice. */
export function listTransitionRevisions(
  db: Db,
  escalationId: string,
  transition: number,
): Promise<readonly StepRevisionRow[]> {
  return db('step_revision').where({ escalation_id: escalationId, transition }).orderBy('choice').select('*');
}
