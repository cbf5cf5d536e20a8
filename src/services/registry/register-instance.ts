/** Registration: an upsert by name and endpoint. The instance is up at once, whatever it was before. */
import type { Registration } from '../../contracts/capability.ts';
import { afterRegistration } from '../../core/registry/transitions.ts';
import type { Db } from '../../db/connect.ts';
import {
  findInstance,
  type InstanceKey,
  type InstanceRow,
  insertInstance,
  lockInstanceByKey,
  type Registered,
  recordQueueDepth,
  updateRegistration,
} from '../../db/instance/instance.ts';
import { probeNamesakes } from '../../db/instance/instance-probe.ts';
import { AppError } from '../../errors/app-error.ts';
import { newId } from '../ids.ts';

/** changed: the endpoint was registered with other facts. same: a repetition. */
export type RegistrationKind = 'new' | 'changed' | 'same';

function toRegistered(registration: Registration): Registered {
  return {
    version: registration.version,
    spec_url: registration.spec_url,
    health_url: registration.health_url,
    cost_type: registration.cost_model.type,
    rate_usd: registration.cost_model.rate_usd,
    cost_notes: registration.cost_model.notes ?? null,
    tags: registration.tags,
    max_concurrency: registration.max_concurrency,
    settle: registration.settle,
  };
}

/** The locked row of an instance of the project; null when it is not registered. @throws AppError `forbidden` */
export async function lockOwnInstance(
  db: Db,
  projectId: string,
  key: InstanceKey,
): Promise<InstanceRow | null> {
  const row = await lockInstanceByKey(db, key);
  if (row !== null) requireOwner(row, projectId);
  return row;
}

/** @throws AppError `forbidden` */
function requireOwner(row: InstanceRow, projectId: string): void {
  if (row.owner_project === projectId) return;
  throw new AppError(
    'forbidden',
    `${row.endpoint} is registered by another project, which alone may change it`,
  );
}

/** @param registration with normalised addresses @param db a transaction */
export async function registerInstance(
  db: Db,
  projectId: string,
  registration: Registration,
): Promise<{ row: InstanceRow; created: RegistrationKind }> {
  const { instanceId, generationBefore } = await upsert(db, projectId, registration);
  if (registration.queue_depth !== undefined)
    await recordQueueDepth(db, instanceId, registration.queue_depth);
  const row = await findInstance(db, instanceId);
  if (row === null) throw new Error(`instance ${instanceId} vanished inside its own transaction`);
  await probeNamesakes(db, row);
  if (generationBefore === null) return { row, created: 'new' };
  return { row, created: row.generation === generationBefore ? 'same' : 'changed' };
}

async function upsert(
  db: Db,
  projectId: string,
  registration: Registration,
): Promise<{ instanceId: string; generationBefore: number | null }> {
  const registered = toRegistered(registration);
  const { name, endpoint } = registration;
  for (;;) {
    const known = await lockOwnInstance(db, projectId, { name, endpoint });
    if (known !== null) {
      await updateRegistration(db, known.instance_id, registered, afterRegistration);
      return { instanceId: known.instance_id, generationBefore: known.generation };
    }
    const instance_id = newId('instance');
    const row = { ...registered, instance_id, owner_project: projectId, name, endpoint };
    if (await insertInstance(db, row, afterRegistration)) {
      return { instanceId: instance_id, generationBefore: null };
    }
  }
}
