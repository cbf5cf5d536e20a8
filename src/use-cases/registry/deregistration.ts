/**
 * Deregistration. A late one must not take out the instance that has registered in its place since: `generation`
 * decides where it is given. Otherwise a deregistration within 10 s after a replacing registration is stale if the
 * instance still answers with its name. The instance is asked outside of the transaction, then everything is checked
 * again.
 */

import type { DeregisterAnswer, DeregisterRequest } from '@capstan/core/contracts/capability';
import { AppError } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { type InstanceKey, type InstanceRow, probeSoon } from '../../db/instance/instance.ts';
import type { Caller } from '../access/caller.ts';
import { type InstanceRequest, keyOf } from './addresses.ts';
import { applyEvent, examineInstance } from './examination.ts';
import { shownState } from './instance-view.ts';
import { lockOwnInstance, type RegistryCtx } from './registration.ts';

export type RegistryActor = Pick<Caller, 'project_id' | 'key_id'>;

/** Within this time after a registration, a deregistration may mean the one before. */
const contestedMs = 10_000;
/** If the deregistration was meant after all, the instance is gone by then. */
const recheckMs = 5_000;

/** `stale`: it was meant for an earlier registration. @throws AppError `not_found`, `forbidden`, `request_invalid` */
export async function deregisterInstance(
  ctx: RegistryCtx,
  by: RegistryActor,
  request: InstanceRequest<DeregisterRequest>,
): Promise<DeregisterAnswer> {
  const key = keyOf(ctx, request);
  const first = await ctx.db.transaction(async (trx) => {
    const row = await lock(trx, by, key);
    const verdict = judge(row, request.body.generation);
    return verdict === 'ask' ? row : finish({ ...ctx, db: trx }, row, { verdict, by });
  });
  if ('stale' in first) return first;
  const { event } = await examineInstance(ctx, first, { readsSpec: false });
  return ctx.db.transaction(async (trx) => {
    const row = await lock(trx, by, key);
    const isNewer = row.registered_at.getTime() !== first.registered_at.getTime();
    const isAlive = row.state !== 'deregistered' && (isNewer || event.kind === 'probe_ok');
    return finish({ ...ctx, db: trx }, row, { verdict: isAlive ? 'stale' : 'execute', by });
  });
}

async function lock(trx: Db, by: RegistryActor, key: InstanceKey): Promise<InstanceRow> {
  const row = await lockOwnInstance(trx, by.project_id, key);
  if (row !== null) return row;
  throw new AppError('not_found', `no instance of ${key.name} at ${key.endpoint} is registered`);
}

function judge(row: InstanceRow, generation: number | undefined): 'stale' | 'execute' | 'ask' {
  if (row.state === 'deregistered') return 'execute';
  if (generation !== undefined) return generation < row.generation ? 'stale' : 'execute';
  return row.replaces && row.registered_age_ms < contestedMs ? 'ask' : 'execute';
}

/** @param ctx with the transaction that has locked the row */
async function finish(
  ctx: Pick<Ctx, 'db' | 'logger'>,
  row: InstanceRow,
  { verdict, by }: { readonly verdict: 'stale' | 'execute'; readonly by: RegistryActor },
): Promise<DeregisterAnswer> {
  if (verdict === 'execute') {
    if (row.state !== 'deregistered') await noteDeregistration(ctx.db, row, by);
    const state = await applyEvent(ctx, row, { kind: 'deregistered' });
    return { state: shownState({ ...row, state }), stale: false };
  }
  await probeSoon(ctx.db, row.instance_id, recheckMs);
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
