/** A heartbeat of a registered instance: it lives. Who was down is up again, with its spec read anew. */
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';
import {
  type InstanceKey,
  type InstanceRow,
  recordHeartbeat,
  recordQueueDepth,
} from '../../db/instance/instance.ts';
import { probeNamesakes } from '../../db/instance/instance-probe.ts';
import { applyEvent } from './instance-changes.ts';
import { lockOwnInstance } from './register-instance.ts';

interface Beat {
  readonly projectId: string;
  readonly key: InstanceKey;
  readonly queue_depth: number | undefined;
}

/** @param db a transaction @returns null when it is not registered @throws AppError `forbidden` */
export async function takeHeartbeat(
  db: Db,
  { projectId, key, queue_depth }: Beat,
  logger: Logger,
): Promise<{ row: InstanceRow; revived: boolean } | null> {
  const row = await lockOwnInstance(db, projectId, key);
  if (row === null) return null;
  if (row.state === 'deregistered') return { row, revived: false };
  await recordHeartbeat(db, row.instance_id);
  if (queue_depth !== undefined) await recordQueueDepth(db, row.instance_id, queue_depth);
  if (row.state === 'up' && row.next_probe_at === null) return { row, revived: false };
  const state = await applyEvent(db, row, { kind: 'heartbeat' }, logger);
  const revived = row.state === 'down' && state === 'up';
  if (revived) await probeNamesakes(db, row);
  return { row: { ...row, state }, revived };
}
