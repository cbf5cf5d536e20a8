/** Runs that Temporal has taken and that have not ended. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { CancelRequest } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';

/** When the start of the oldest of them was delivered; null = there is none. */
export async function readOldestOpen(db: Db): Promise<Date | null> {
  const { rows } = await db.raw<{ rows: [{ oldest: Date | null }] }>(
    `select min(start_delivered_at) as oldest from run
     where start_delivered_at is not null and finished_at is null`,
  );
  return rows[0].oldest;
}

export interface OpenRunRow {
  readonly run_id: string;
  readonly project_id: string;
  readonly pipeline: string;
  readonly definition: PipelineDefinition;
  readonly cancel_requested_at: Date | null;
  readonly cancel_mode: CancelRequest['mode'] | null;
}

/** Those of them that are open. */
export async function listOpenAmong(db: Db, runIds: readonly string[]): Promise<readonly OpenRunRow[]> {
  if (runIds.length === 0) return [];
  const { rows } = await db.raw<{ rows: OpenRunRow[] }>(
    `select r.run_id, r.project_id, r.pipeline, d.body as definition, r.cancel_requested_at, r.cancel_mode
     from run r join definition d using (digest)
     where r.run_id = any (?) and r.start_delivered_at is not null and r.finished_at is null`,
    [[...runIds]],
  );
  return rows;
}

/** Null when there is no such run. */
export async function readRunRef(
  db: Db,
  runId: string,
): Promise<Pick<OpenRunRow, 'run_id' | 'pipeline'> | null> {
  const { rows } = await db.raw<{ rows: Pick<OpenRunRow, 'run_id' | 'pipeline'>[] }>(
    'select run_id, pipeline from run where run_id = ?',
    [runId],
  );
  return rows[0] ?? null;
}
