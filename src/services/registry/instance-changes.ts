/** Brings an event to an instance: locks its row, asks the state table, writes what follows. */
import type { Logger } from 'pino';
import type { Health } from '../../contracts/capability.ts';
import { isNewProcess } from '../../core/registry/restart.ts';
import { type InstanceEvent, type InstanceFacts, nextState } from '../../core/registry/transitions.ts';
import type { Db } from '../../db/connect.ts';
import {
  type InstanceRow,
  lockInstance,
  recordQueueDepth,
  updateInstanceState,
  updateSpecDigest,
} from '../../db/instance/instance.ts';
import { forgetCalls, recordUptime } from '../../db/instance/instance-process.ts';
import { findRivalSpec, insertSpec } from '../../db/spec/capability-spec.ts';
import { mismatch, type ProbeFinding } from './examine-instance.ts';

function factsOf(row: InstanceRow): InstanceFacts {
  return {
    state: row.state,
    reason: row.reason,
    failed_probes: row.failed_probes,
    isVetted: row.spec_digest !== null,
    isSilent: row.is_silent,
    isEvicted: row.is_evicted,
    holdsCalls: row.in_flight > 0,
  };
}

/** @param row locked in the transaction of `db` @returns its state afterwards */
export async function applyEvent(
  db: Db,
  row: InstanceRow,
  event: InstanceEvent,
  logger: Logger,
): Promise<InstanceRow['state']> {
  const change = nextState(factsOf(row), event);
  if (change === null) return row.state;
  await updateInstanceState(db, row.instance_id, change);
  if (change.state !== row.state) {
    const { instance_id, name, endpoint } = row;
    const { state, reason } = change;
    logger.info(
      { instance_id, capability: name, endpoint, from: row.state, state, reason },
      'instance changed',
    );
  }
  return change.state;
}

/**
 * Applies what a probe found. A finding about an earlier registration, or a failure from before a heartbeat, is
 * old news and changes nothing.
 * @param probed the row as it was when the probe began
 * @returns the state afterwards; null for old news
 */
export async function applyFinding(
  db: Db,
  probed: InstanceRow,
  finding: ProbeFinding,
  logger: Logger,
): Promise<InstanceRow['state'] | null> {
  return db.transaction(async (trx) => {
    const { name, version, instance_id } = probed;
    const { spec } = finding;
    const rival =
      spec === null
        ? null
        : await findRivalSpec(trx, { name, version, digest: spec.digest, instanceId: instance_id });
    const row = await lockInstance(trx, instance_id);
    if (row === null) return 'deregistered';
    if (isOldNews(probed, row, finding)) return null;
    if (rival !== null) {
      const detail = `/spec differs from that of ${rival.endpoint}, which serves ${version} too; a changed spec needs a new version`;
      return applyEvent(trx, row, mismatch(detail).event, logger);
    }
    const state = await applyEvent(trx, row, finding.event, logger);
    if (state !== 'up') return state;
    if (finding.health !== null) await applyHealth(trx, probed, row, finding.health, logger);
    if (spec !== null) {
      await insertSpec(trx, spec);
      await updateSpecDigest(trx, instance_id, spec.digest);
    }
    return state;
  });
}

/**
 * Takes over queue depth and uptime. A new process has nothing of the old one's breaker and speed. Of two probes at
 * once, the uptime of the first that is applied counts: the other one may have been read before it.
 */
async function applyHealth(
  db: Db,
  probed: InstanceRow,
  row: InstanceRow,
  { uptime_ms, queue_depth }: Health,
  logger: Logger,
): Promise<void> {
  const { instance_id, uptime_at, registered_at } = row;
  if (queue_depth !== undefined) await recordQueueDepth(db, instance_id, queue_depth);
  if (probed.uptime_at?.getTime() !== uptime_at?.getTime()) return;
  const hasRegisteredSince = uptime_at !== null && uptime_at < registered_at;
  if (isNewProcess({ ...row, hasRegisteredSince }, uptime_ms)) {
    await forgetCalls(db, instance_id);
    logger.info({ instance_id, capability: row.name, endpoint: row.endpoint }, 'instance is a new process');
  }
  await recordUptime(db, instance_id, uptime_ms);
}

function isOldNews(probed: InstanceRow, row: InstanceRow, { event }: ProbeFinding): boolean {
  return (
    probed.registered_at.getTime() !== row.registered_at.getTime() ||
    probed.generation !== row.generation ||
    (event.kind === 'probe_failed' && probed.last_heartbeat_at.getTime() !== row.last_heartbeat_at.getTime())
  );
}
