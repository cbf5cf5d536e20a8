/**
 * Drains of instances. A drained instance gets no new calls, keeps its open ones and its heartbeats, and stays
 * registered. D1: a drain is the decision of a person, so heartbeats, probes, restarts and registrations leave it; it
 * ends by `undrain` or at its `until`. D2: the claim of a call checks the drain in the database, so no router sends a
 * call after the answer to the request.
 */

import type { DrainRequest, EndpointRequest, Instance } from '@capstan/core/contracts/capability';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { endDueHostDrains } from '../../db/instance/host.ts';
import { findInstance, type InstanceRow } from '../../db/instance/instance.ts';
import { endDrain, endDueDrains, setDrain, warmInstance } from '../../db/instance/instance-drain.ts';
import type { Caller } from '../access/caller.ts';
import { type InstanceRequest, keyOf } from './addresses.ts';
import { toInstance } from './instance-view.ts';
import { lockChangedInstance } from './registration.ts';

type DrainCtx = Pick<Ctx, 'db' | 'policy'>;
type DrainCaller = Pick<Caller, 'project_id' | 'key_id' | 'scopes'>;

/** @throws AppError `request_invalid` */
export function requireLater(until: string | null): void {
  if (until === null || Date.parse(until) > Date.now()) return;
  throw refuseField('/until', `until is ${until}; a time in the future is allowed`);
}

/** Repeated, it replaces reason and end. @throws AppError `not_found`, `forbidden`, `request_invalid` */
export function drainInstance(
  ctx: DrainCtx,
  by: DrainCaller,
  request: InstanceRequest<DrainRequest>,
): Promise<Instance> {
  const { reason = null, until = null } = request.body;
  requireLater(until);
  return change(ctx, { by, request }, async (trx, row) => {
    await setDrain(trx, row.instance_id, { by: by.key_id, reason, until });
    await note(trx, row, { by, action: 'instance.drained', data: { reason, until } });
  });
}

/** Ends a drain; repeated, it changes nothing. @throws AppError `not_found`, `forbidden` */
export function undrainInstance(
  ctx: DrainCtx,
  by: DrainCaller,
  request: InstanceRequest<EndpointRequest>,
): Promise<Instance> {
  return change(ctx, { by, request }, async (trx, row) => {
    if (await endDrain(trx, row.instance_id)) await note(trx, row, { by, action: 'instance.undrained' });
  });
}

/** Makes its warm-up due. @throws AppError `not_found`, `forbidden`, `state_conflict` when it registered none */
export function requestWarmUp(
  ctx: DrainCtx,
  by: DrainCaller,
  request: InstanceRequest<EndpointRequest>,
): Promise<Instance> {
  return change(ctx, { by, request }, async (trx, { instance_id, name, endpoint }) => {
    if (await warmInstance(trx, instance_id)) return;
    throw new AppError('state_conflict', `${name} at ${endpoint} has not registered a warm_up`);
  });
}

async function change(
  ctx: DrainCtx,
  { by, request }: { readonly by: DrainCaller; readonly request: InstanceRequest<EndpointRequest> },
  write: (trx: Db, row: InstanceRow) => Promise<void>,
): Promise<Instance> {
  const key = keyOf(ctx, request);
  return ctx.db.transaction(async (trx) => {
    const row = await lockChangedInstance(trx, by, key);
    await write(trx, row);
    return toInstance((await findInstance(trx, row.instance_id)) ?? row, row.owner_project);
  });
}

interface NotedDrain {
  readonly by: DrainCaller;
  readonly action: 'instance.drained' | 'instance.undrained';
  readonly data?: { readonly reason: string | null; readonly until: string | null };
}

function note(trx: Db, { owner_project, name, endpoint }: InstanceRow, { by, action, data }: NotedDrain) {
  const entry = { project_id: owner_project, actor: by.key_id, action, subject: name };
  return insertAudit(trx, { ...entry, data: { endpoint, ...data } });
}

/** @returns how many drains were over */
export async function endDrains({ db, logger }: Pick<Ctx, 'db' | 'logger'>): Promise<number> {
  const ended = await endDueDrains(db);
  for (const { name, endpoint } of ended) logger.info({ capability: name, endpoint }, 'drain ended');
  const hosts = await endDueHostDrains(db);
  for (const { owner_project, name } of hosts)
    logger.info({ project_id: owner_project, host: name }, 'drain ended');
  return ended.length + hosts.length;
}
