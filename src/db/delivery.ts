/** Starts and cancels that Temporal has not taken yet: the row is the truth, delivering it is repeated. */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Priority } from '../contracts/primitives.ts';
import { type Db, relaxed } from './connect.ts';

export const listUndeliveredStarts = async (
  db: Db,
  olderThanMs: number,
  limit: number,
): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { run_id: string }[] }>(
    `select run_id from run where start_delivered_at is null and finished_at is null
       and created_at < clock_timestamp() - ? * interval '1 millisecond'
     order by created_at limit ?`,
    [olderThanMs, limit],
  );
  return rows.map(({ run_id }) => run_id);
};

/** A mark that a crash takes back is made again: the start meets the first one. */
export const markStartDelivered = async (db: Db, runId: string): Promise<void> => {
  await db
    .raw(`update run set start_delivered_at = now() where run_id = ? and ${relaxed}`, [runId])
    .options({ name: 'mark_start_delivered' });
};

/** Only of runs whose start was delivered; the others are started first. */
export const listUndeliveredCancels = async (db: Db, limit: number): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { run_id: string }[] }>(
    `select run_id from run where cancel_requested_at is not null and cancel_delivered_at is null
       and finished_at is null and start_delivered_at is not null
     order by cancel_requested_at limit ?`,
    [limit],
  );
  return rows.map(({ run_id }) => run_id);
};

export const markCancelDelivered = async (db: Db, runId: string): Promise<void> => {
  await db('run').where({ run_id: runId }).update({ cancel_delivered_at: db.fn.now() });
};

/** What a start needs to know of a run. */
export interface DeliveryRow {
  readonly run_id: string;
  readonly project_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly priority: Priority;
  readonly definition: PipelineDefinition;
  readonly start_delivered_at: Date | null;
  readonly cancel_requested_at: Date | null;
}

export const readDelivery = async (db: Db, runId: string): Promise<DeliveryRow | undefined> => {
  const { rows } = await db
    .raw<{ rows: DeliveryRow[] }>(
      `select r.run_id, r.project_id, r.pipeline, r.version, r.priority, r.start_delivered_at, r.cancel_requested_at, d.body as definition
     from run r join definition d using (digest) where r.run_id = ?`,
      [runId],
    )
    .options({ name: 'read_delivery' });
  return rows[0];
};
