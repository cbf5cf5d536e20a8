/** The stored decision of an attempt, with what it was made from. */
import type { Decision } from '../../contracts/decision.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';

export interface DecisionRow {
  readonly attempt_id: string;
  readonly capability: string;
  readonly run_id: string | null;
  readonly step_id: string | null;
  readonly started_at: Date;
  /** bigint as text; null while the attempt is open */
  readonly settled_nano: string | null;
  readonly decision: Decision;
  /** Null when it was made before they were kept. */
  readonly inputs: JsonObject | null;
}

export function findDecision(
  db: Db,
  project_id: string,
  attempt_id: string,
): Promise<DecisionRow | undefined> {
  return db('attempt')
    .where({ project_id, attempt_id })
    .first(
      ...(['attempt_id', 'capability', 'run_id', 'step_id'] as const),
      ...(['started_at', 'settled_nano', 'decision', 'inputs'] as const),
    );
}
