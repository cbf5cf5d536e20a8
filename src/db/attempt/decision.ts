/** The stored decision of an attempt, with its inputs. */
import type { Decision } from '@capstan/core/contracts/decision';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { AttemptState } from '@capstan/core/contracts/run-step';
import type { Db } from '../connect.ts';
import type { GrownColumns } from './attempt.ts';
import { indexed } from './call.ts';

export interface DecisionRow extends GrownColumns {
  readonly attempt_id: string;
  readonly capability: string;
  readonly run_id: string | null;
  readonly step_id: string | null;
  /** bigint as text; null while the attempt is open */
  readonly settled_nano: string | null;
  readonly decision: Decision;
  /** Null: nothing was chosen. */
  readonly inputs: JsonObject | null;
  readonly state: AttemptState;
  readonly error_code: string | null;
}

const errorCode = `error ->> 'code' as error_code`;

export function findDecision(
  db: Db,
  project_id: string,
  attempt_id: string,
): Promise<DecisionRow | undefined> {
  return db('attempt')
    .join('attempt_choice', 'attempt_choice.attempt_id', 'attempt.attempt_id')
    .where({ project_id, 'attempt.attempt_id': attempt_id })
    .whereRaw(`(state <> 'cached' or run_id is null)`)
    .first(
      ...(['attempt.attempt_id', 'capability', 'run_id', 'step_id'] as const),
      ...(['started_at', 'settled_nano', 'decision', 'inputs'] as const),
      ...(['reserved_nano', 'expected_nano', 'pieces', 'piece_ms', 'piece_nano', 'is_stopped'] as const),
      'state',
      db.raw(errorCode),
    );
}

export type ListedDecisionRow = Pick<
  DecisionRow,
  'attempt_id' | 'run_id' | 'step_id' | 'started_at' | 'settled_nano' | 'state' | 'error_code'
> & {
  readonly chosen: string | null;
  readonly duration_ms: number | null;
  /** JSON text; null: nothing was chosen. */
  readonly inputs: string | null;
};

export interface DecisionFilter {
  readonly capability?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly run_id?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** Bounds of attempt ids in the time span; undefined: any time. */
  readonly ids?: readonly [from: string, to: string] | undefined;
  /** The last attempt of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** The collation of attempt_by_project, which the primary key lacks: only that index serves this order. */
const id = 'attempt.attempt_id collate "C"';

/** Newest first, of calls that were made. Ids begin with the time, so a range of ids selects a time span. */
export async function listDecisions(
  db: Db,
  project_id: string,
  { capability, endpoint, run_id, since, until, ids, after, limit }: DecisionFilter,
): Promise<readonly ListedDecisionRow[]> {
  const part = (which: string) => {
    const query = db('attempt').where({ project_id }).whereNot({ state: 'cached' }).whereRaw(which);
    if (capability !== undefined) query.where({ capability });
    if (endpoint !== undefined) query.where({ endpoint });
    if (run_id !== undefined) query.where({ run_id });
    if (since !== undefined) query.where('started_at', '>=', since);
    if (until !== undefined) query.where('started_at', '<', until);
    if (ids !== undefined) query.whereRaw(`${id} >= ? and ${id} < ?`, [...ids]);
    if (after !== undefined) query.whereRaw(`${id} < ?`, [after]);
    return query.orderByRaw(`${id} desc`).limit(limit);
  };
  // Ended calls and open ones, which are few, have indexes of their own.
  return db
    .from(db.unionAll([part(indexed.ended), part(indexed.open)], true).as('attempt'))
    .leftJoin('attempt_choice', 'attempt_choice.attempt_id', 'attempt.attempt_id')
    .orderByRaw(`${id} desc`)
    .limit(limit)
    .select(
      ...(['attempt.attempt_id', 'run_id', 'step_id', 'started_at', 'settled_nano'] as const),
      ...(['duration_ms', 'state'] as const),
      db.raw(`nullif(endpoint, '') as chosen, inputs::text as inputs, ${errorCode}`),
    );
}

export interface ReasonRow {
  readonly attempt_id: string;
  readonly step_id: string;
  readonly capability: string;
  /** bigint as text; null while the attempt is open */
  readonly settled_nano: string | null;
  readonly chosen: string | null;
  /** Null: the decision has been deleted. */
  readonly reason: string | null;
}

/** Why the latest calls of a run went where they did, the latest first. */
export async function listReasons(db: Db, run_id: string, limit: number): Promise<readonly ReasonRow[]> {
  return db('attempt')
    .leftJoin('attempt_choice', 'attempt_choice.attempt_id', 'attempt.attempt_id')
    .where({ run_id })
    .whereNot({ state: 'cached' })
    .orderByRaw(`${id} desc`)
    .limit(limit)
    .select(
      ...(['attempt.attempt_id', 'step_id', 'capability', 'settled_nano'] as const),
      db.raw("nullif(endpoint, '') as chosen, decision->>'reason' as reason"),
    );
}
