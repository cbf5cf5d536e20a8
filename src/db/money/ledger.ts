/** Reading the ledger, the newest day first and in it the newest entry: pages never shift under what is added. */
import type { LedgerQuery } from '../../contracts/money.ts';
import type { Db } from '../connect.ts';

export interface LedgerRow {
  readonly entry_id: string;
  readonly at: Date;
  readonly attempt_id: string;
  readonly kind: 'reserve' | 'settle' | 'release' | 'adjust';
  /** bigint as text */
  readonly amount_nano: string;
  readonly certainty: 'exact' | 'estimated';
  /** YYYY-MM-DD */
  readonly day: string;
  readonly capability: string;
  /** Null, with the run, where the attempt has been deleted. */
  readonly endpoint: string | null;
  readonly run_id: string | null;
  readonly step_id: string | null;
}

/** The last entry of the page before. */
export type LedgerPlace = Pick<LedgerRow, 'day' | 'entry_id'>;

export type LedgerFilter = Pick<LedgerQuery, 'since' | 'until' | 'kind' | 'capability' | 'run_id'> & {
  readonly after: LedgerPlace | null;
  readonly limit: number;
};

/** Postgres has no year 0. */
function toDay(date: string): string {
  return date < '0001-01-01' ? '0001-01-01' : date;
}

/** A run's entries are few and are all read, through its attempts; `offset 0` keeps them from being looked for. */
const ofRun = `(
  select e.* from attempt o join ledger_entry e using (attempt_id, budget_window) where o.run_id = :run_id offset 0
)`;

/** @param filter since and until: days, both included */
export async function listLedger(
  db: Db,
  projectId: string,
  { after, limit, since, until, kind, capability, run_id }: LedgerFilter,
): Promise<readonly LedgerRow[]> {
  const conditions = [
    'l.project_id = :projectId',
    since !== undefined && 'l.budget_window >= cast(:since as date)',
    until !== undefined && 'l.budget_window <= cast(:until as date)',
    kind !== undefined && 'l.kind = :kind',
    capability !== undefined && 'l.capability = :capability',
    after !== null && '(l.budget_window, l.entry_id) < (cast(:day as date), cast(:entry_id as bigint))',
  ].filter((condition) => condition !== false);
  const { rows } = await db.raw<{ rows: LedgerRow[] }>(
    `select l.entry_id, l.at, l.attempt_id, l.kind, l.amount_nano, l.certainty, l.budget_window::text as day,
       l.capability, a.endpoint, a.run_id, a.step_id
     from ${run_id === undefined ? 'ledger_entry' : ofRun} l left join attempt a using (attempt_id)
     where ${conditions.join(' and ')}
     order by l.budget_window desc, l.entry_id desc limit :limit`,
    {
      projectId,
      limit,
      ...after,
      ...(since === undefined ? {} : { since: toDay(since) }),
      ...(until === undefined ? {} : { until: toDay(until) }),
      ...(kind === undefined ? {} : { kind }),
      ...(capability === undefined ? {} : { capability }),
      ...(run_id === undefined ? {} : { run_id }),
    },
  );
  return rows;
}
