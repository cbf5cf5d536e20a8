/**
 * Which other projects an instance serves. H1: its owner or an operator decides. H2: it takes effect with the next
 * claim, which checks it in the database; routers see it with their next poll. Calls in flight end as they began, and
 * are charged to the project that made them. H3: a registration that does not name `shared_with` changes nothing.
 */

import type { Instance, SharedWith, SharingRequest } from '@capstan/core/contracts/capability';
import { AppError } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { claimName } from '../../db/instance/capability-name.ts';
import { findInstance, type InstanceRow, lockInstancesOf, setSharing } from '../../db/instance/instance.ts';
import { type Caller, isOperator } from '../access/caller.ts';
import { type InstanceRequest, keyOf } from './addresses.ts';
import { toInstance } from './instance-view.ts';
import { lockChangedInstance, requirePublisher } from './registration.ts';

type SharingCtx = Pick<Ctx, 'db' | 'policy'>;
type SharingCaller = Pick<Caller, 'project_id' | 'key_id' | 'scopes'>;

/**
 * Sets it for one instance, or for all instances of the caller's project under the name.
 * @throws AppError `not_found`, `forbidden`, `request_invalid`
 */
export function shareInstances(
  ctx: SharingCtx,
  by: SharingCaller,
  request: InstanceRequest<SharingRequest>,
): Promise<{ items: Instance[]; next_cursor: null }> {
  const { name, body } = request;
  const { shared_with, endpoint } = body;
  return ctx.db.transaction(async (trx) => {
    // The name is locked before its instances, as everywhere; their owner is checked first.
    const needsName = shared_with.length > 0 && !isOperator(by);
    const publishers = needsName ? await claimName(trx, name, by.project_id) : null;
    const rows =
      endpoint === undefined
        ? await lockNamed(trx, by.project_id, name)
        : [await lockChangedInstance(trx, by, keyOf(ctx, { name, body: { endpoint } }))];
    if (publishers !== null) requirePublisher(publishers, by.project_id, name);
    for (const row of rows) await change(trx, row, { by, shared_with });
    const shown = await Promise.all(rows.map(({ instance_id }) => findInstance(trx, instance_id)));
    return {
      items: shown.flatMap((row) => (row === null ? [] : [toInstance(row, row.owner_project)])),
      next_cursor: null,
    };
  });
}

async function lockNamed(trx: Db, projectId: string, name: string): Promise<readonly InstanceRow[]> {
  const rows = await lockInstancesOf(trx, projectId, name);
  if (rows.length > 0) return rows;
  throw new AppError('not_found', `the project has no instance of ${name}`);
}

async function change(
  trx: Db,
  { instance_id, owner_project, name, endpoint }: InstanceRow,
  { by, shared_with }: { readonly by: SharingCaller; readonly shared_with: SharedWith },
): Promise<void> {
  if (!(await setSharing(trx, instance_id, shared_with))) return;
  const entry = { project_id: owner_project, actor: by.key_id, action: 'instance.shared', subject: name };
  await insertAudit(trx, {
    ...entry,
    data: { endpoint, shared_with: shared_with === 'all' ? 'all' : [...shared_with] },
  });
}
