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

/** By id, after `after`: open runs that Temporal took so long ago. */
export async function listDelivered(
  db: Db,
  {
    after,
    olderThanMs,
    limit,
  }: { readonly after: string; readonly olderThanMs: number; readonly limit: number },
): Promise<readonly Pick<OpenRunRow, 'run_id' | 'pipeline'>[]> {
  const { rows } = await db.raw<{ rows: Pick<OpenRunRow, 'run_id' | 'pipeline'>[] }>(
    `select run_id, pipeline from run
     where start_delivered_at < clock_timestamp() - ? * interval '1 millisecond' and finished_at is null
       and run_id > ? order by run_id limit ?`,
    [olderThanMs, after, limit],
  );
  return rows;
}

/** Its start is delivered again, with what was asked of it since. False when it has ended; nothing was written. */
export async function forgetStart(db: Db, runId: string): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update run set start_delivered_at = null, cancel_delivered_at = null, control_delivered = 0
     where run_id = ? and finished_at is null`,
    [runId],
  );
  return rowCount > 0;
}
