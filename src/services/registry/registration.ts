/**
 * The registry: capabilities, their instances, addresses, prices and whether they can be called. It is one for all
 * projects; only the owning project may change an instance. Requests are answered without dialling; vetting follows.
 * (specification: Registry, Capability instance; times are the database's)
 *
 * Registration is an upsert by name and endpoint; the instance is up at once, whatever it was before.
 */

import type { Instance, Registration } from '../../contracts/capability.ts';
import { afterRegistration } from '../../core/instance-states.ts';
import { findCostFaults } from '../../core/routing/call-bound.ts';
import type { Db } from '../../db/connect.ts';
import { claimName } from '../../db/instance/capability-name.ts';
import {
  countInstancesOf,
  findInstance,
  type InstanceKey,
  type InstanceRow,
  insertInstance,
  lockInstanceByKey,
  moveInstance,
  probeNamesakes,
  type Registered,
  recordQueueDepth,
  updateRegistration,
} from '../../db/instance/instance.ts';
import { AppError, refuseField } from '../../errors/app-error.ts';
import type { Ctx } from '../context.ts';
import { newId } from '../ids.ts';
import { normaliseAddresses } from './addresses.ts';
import { toInstance } from './instance-view.ts';
import { type ProbingCtx, vetInBackground } from './vetting.ts';

/** changed: the endpoint was registered with other facts. same: a repetition. */
type RegistrationKind = 'new' | 'changed' | 'same';

interface RegisteredRow {
  readonly row: InstanceRow;
  readonly created: RegistrationKind;
}

/** The parts for registrations and heartbeats: the limit of instances is a setting, the address rules are a policy. */
export type RegistryCtx = ProbingCtx & Pick<Ctx, 'config' | 'policy'>;

/**
 * @throws AppError `request_invalid` for a bad address or cost, `forbidden` for a name or an endpoint of other projects,
 * `limit_reached`
 */
export async function registerInstance(
  ctx: RegistryCtx,
  projectId: string,
  registration: Registration,
): Promise<{ instance: Instance; created: RegistrationKind }> {
  const { row, created } = await writeRegistration(ctx, projectId, normaliseAddresses(ctx, registration));
  vetInBackground(ctx, row.instance_id);
  return { instance: toInstance(row), created };
}

/** @throws AppError `request_invalid` with the place of each fault */
function requireCosts(registration: Registration): void {
  const faults = findCostFaults(registration);
  if (faults.length === 0) return;
  const texts = faults.map(({ field, message }) => `cost_model.${field} ${message}`);
  throw new AppError('request_invalid', texts.join('; '), {
    errors: faults.map(({ field, message }) => ({
      pointer: `/cost_model/${field}`,
      code: 'invalid_cost',
      message,
    })),
  });
}

/** Nobody pays for a warm-up. @throws AppError `request_invalid` */
function requireFreeWarmUp({ warm_up, cost_model: { rate_usd } }: Registration): void {
  if (warm_up === undefined || rate_usd === 0) return;
  const message = `is for instances whose rate is 0, because nobody pays for that call; the rate is ${rate_usd} USD`;
  throw refuseField('/warm_up', `warm_up ${message}`, 'not_free');
}

/** @param registration with normalised addresses @throws as registerInstance */
export function writeRegistration(
  { db, config }: Pick<Ctx, 'config' | 'db'>,
  projectId: string,
  registration: Registration,
): Promise<RegisteredRow> {
  requireCosts(registration);
  requireFreeWarmUp(registration);
  const most = config.INSTANCES_PER_PROJECT;
  return db.transaction(async (trx) => {
    const { instanceId, generationBefore } = await upsert(trx, { projectId, most }, registration);
    if (registration.queue_depth !== undefined)
      await recordQueueDepth(trx, instanceId, registration.queue_depth);
    const row = await findInstance(trx, instanceId);
    if (row === null) throw new Error(`instance ${instanceId} vanished inside its own transaction`);
    await probeNamesakes(trx, row);
    if (generationBefore === null) return { row, created: 'new' };
    return { row, created: row.generation === generationBefore ? 'same' : 'changed' };
  });
}

/** Turns a registration into its columns. Fields with a column of the same name need no line here. */
function toRegistered({ cost_model, ...registration }: Registration): Registered & InstanceKey {
  return {
    ...registration,
    cost_type: cost_model.type,
    rate_usd: cost_model.rate_usd,
    cost_notes: cost_model.notes,
    worst_case: cost_model.worst_case,
    expected_cost: cost_model.expected,
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
export function requireOwner(row: InstanceRow, projectId: string): void {
  if (row.owner_project === projectId) return;
  throw new AppError(
    'forbidden',
    `${row.endpoint} is registered by another project; only that project can change it`,
  );
}

/** @returns the projects that may register the name. @throws AppError `forbidden` when the project is not among them */
async function requirePublisher(db: Db, projectId: string, name: string): Promise<readonly string[]> {
  const publishers = await claimName(db, name, projectId);
  if (publishers.includes(projectId)) return publishers;
  const remedy = `an operator lets others in by PUT /v1/publishers/${name}`;
  throw new AppError('forbidden', `${name} is registered by another project; ${remedy}`);
}

/** @throws AppError `limit_reached` */
async function requireRoom(db: Db, projectId: string, most: number): Promise<void> {
  const count = await countInstancesOf(db, projectId);
  if (count < most) return;
  throw new AppError('limit_reached', `the project has ${count} instances registered; ${most} are allowed`);
}

async function upsert(
  db: Db,
  { projectId, most }: { readonly projectId: string; readonly most: number },
  registration: Registration,
): Promise<{ instanceId: string; generationBefore: number | null }> {
  const registered = toRegistered(registration);
  const { name, endpoint } = registration;
  const publishers = await requirePublisher(db, projectId, name);
  for (;;) {
    const known = await lockInstanceByKey(db, { name, endpoint });
    if (known === null || known.state === 'deregistered') await requireRoom(db, projectId, most);
    if (known !== null) {
      if (publishers.includes(known.owner_project)) requireOwner(known, projectId);
      else await moveInstance(db, known.instance_id, projectId);
      const { instance_id, generation } = known;
      await updateRegistration(db, { ...registered, instance_id }, afterRegistration);
      return { instanceId: instance_id, generationBefore: generation };
    }
    const instance_id = newId('instance');
    const row = { ...registered, instance_id, owner_project: projectId };
    if (await insertInstance(db, row, afterRegistration)) {
      return { instanceId: instance_id, generationBefore: null };
    }
  }
}
