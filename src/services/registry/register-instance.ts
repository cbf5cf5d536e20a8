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
import { countInstancesOf, moveInstance } from '../../db/instance/instance-owner.ts';
import { probeNamesakes } from '../../db/instance/instance-probe.ts';
import { claimName } from '../../db/instance/publisher.ts';
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

export interface Registrant {
  readonly projectId: string;
  /** Instances that it may have at once. */
  readonly perProject: number;
}

/**
 * @param registration with normalised addresses
 * @param db a transaction
 * @throws AppError `forbidden` for a name or an endpoint of other projects, `limit_reached`
 */
export async function registerInstance(
  db: Db,
  registrant: Registrant,
  registration: Registration,
): Promise<{ row: InstanceRow; created: RegistrationKind }> {
  const { instanceId, generationBefore } = await upsert(db, registrant, registration);
  if (registration.queue_depth !== undefined)
    await recordQueueDepth(db, instanceId, registration.queue_depth);
  const row = await findInstance(db, instanceId);
  if (row === null) throw new Error(`instance ${instanceId} vanished inside its own transaction`);
  await probeNamesakes(db, row);
  if (generationBefore === null) return { row, created: 'new' };
  return { row, created: row.generation === generationBefore ? 'same' : 'changed' };
}

/** @returns the projects that may register the name. @throws AppError `forbidden` when the project is none of them */
async function requirePublisher(db: Db, projectId: string, name: string): Promise<readonly string[]> {
  const publishers = await claimName(db, name, projectId);
  if (publishers.includes(projectId)) return publishers;
  const remedy = `an operator lets others in by PUT /v1/publishers/${name}`;
  throw new AppError('forbidden', `${name} is registered by another project, which alone may; ${remedy}`);
}

/** @throws AppError `limit_reached` */
async function requireRoom(db: Db, projectId: string, most: number): Promise<void> {
  const count = await countInstancesOf(db, projectId);
  if (count < most) return;
  throw new AppError('limit_reached', `the project has ${count} instances registered; ${most} are allowed`);
}

async function upsert(
  db: Db,
  { projectId, perProject }: Registrant,
  registration: Registration,
): Promise<{ instanceId: string; generationBefore: number | null }> {
  const registered = toRegistered(registration);
  const { name, endpoint } = registration;
  const publishers = await requirePublisher(db, projectId, name);
  for (;;) {
    const known = await lockInstanceByKey(db, { name, endpoint });
    if (known === null || known.state === 'deregistered') await requireRoom(db, projectId, perProject);
    if (known !== null) {
      if (publishers.includes(known.owner_project)) requireOwner(known, projectId);
      else await moveInstance(db, known.instance_id, projectId);
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
