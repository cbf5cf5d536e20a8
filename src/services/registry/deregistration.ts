/**
 * Deregistration. One that comes late must not take out the instance that has registered in its place since:
 * `generation` decides where it is given; else one within 10 s after a registration over another is stale if the
 * instance still answers with its name. It is asked outside of the transaction, then everything is checked again.
 */
import type { DeregisterAnswer } from '../../contracts/capability.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { type InstanceKey, type InstanceRow, probeSoon } from '../../db/instance/instance.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { applyEvent, examineInstance } from './examination.ts';
import { lockOwnInstance } from './registration.ts';
import { shownState } from './registry-listing.ts';
import type { ProbingTools } from './vetting.ts';

export type RegistryActor = Pick<Caller, 'project_id' | 'key_id'>;

interface Deregistration {
  readonly by: RegistryActor;
  readonly key: InstanceKey;
  readonly generation: number | undefined;
}

/** So long after a registration, a deregistration may be meant for the one before. */
const contestedMs = 10_000;
/** Should it have been meant after all, the instance is gone by then. */
const recheckMs = 5_000;

/** @throws AppError `not_found`, `forbidden` */
export async function deregisterInstance(
  tools: ProbingTools,
  request: Deregistration,
): Promise<DeregisterAnswer> {
  const first = await tools.db.transaction(async (trx) => {
    const row = await lock(trx, request);
    const verdict = judge(row, request.generation);
    return verdict === 'ask' ? row : finish(trx, row, { verdict, by: request.by, logger: tools.logger });
  });
  if ('stale' in first) return first;
  const { event } = await examineInstance(tools, first, { readsSpec: false, signal: tools.signal });
  return tools.db.transaction(async (trx) => {
    const row = await lock(trx, request);
    const isNewer = row.registered_at.getTime() !== first.registered_at.getTime();
    const isAlive = row.state !== 'deregistered' && (isNewer || event.kind === 'probe_ok');
    const verdict = isAlive ? 'stale' : 'execute';
    return finish(trx, row, { verdict, by: request.by, logger: tools.logger });
  });
}

async function lock(trx: Db, { by, key }: Deregistration): Promise<InstanceRow> {
  const row = await lockOwnInstance(trx, by.project_id, key);
  if (row !== null) return row;
  throw new AppError('not_found', `no instance of ${key.name} at ${key.endpoint} is registered`);
}

function judge(row: InstanceRow, generation: number | undefined): 'stale' | 'execute' | 'ask' {
  if (row.state === 'deregistered') return 'execute';
  if (generation !== undefined) return generation < row.generation ? 'stale' : 'execute';
  return row.replaces && row.registered_age_ms < contestedMs ? 'ask' : 'execute';
}

interface Closing {
  readonly verdict: 'stale' | 'execute';
  readonly by: RegistryActor;
  readonly logger: ProbingTools['logger'];
}

async function finish(
  trx: Db,
  row: InstanceRow,
  { verdict, by, logger }: Closing,
): Promise<DeregisterAnswer> {
  if (verdict === 'execute') {
    if (row.state !== 'deregistered') await noteDeregistration(trx, row, by);
    const state = await applyEvent(trx, row, { kind: 'deregistered' }, logger);
    return { state: shownState({ ...row, state }), stale: false };
  }
  await probeSoon(trx, row.instance_id, recheckMs);
  return { state: shownState(row), stale: true };
}

function noteDeregistration(
  trx: Db,
  { name, endpoint }: InstanceRow,
  { project_id, key_id }: RegistryActor,
): Promise<void> {
  const entry = { project_id, actor: key_id, action: 'instance.deregistered', subject: name };
  return insertAudit(trx, { ...entry, data: { endpoint } });
}
