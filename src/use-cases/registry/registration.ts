/**
 * The registry: capabilities, their instances, addresses, prices and whether they can be called. An instance belongs to
 * the project that registered it, and serves that project and those with which it is shared; for other projects it does
 * not exist. Requests are answered without dialling; vetting follows. (specification: Registry, Capability instance;
 * times are the database's)
 *
 * Registration is an upsert by name and endpoint; the instance is up at once, whatever it was before. Projects use the
 * same names side by side, but an address belongs to one of them, so that no project calls the instance of another by
 * registering it again.
 */

import { findWarmUpFault, type Instance, type Registration } from '@capstan/core/contracts/capability';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import { afterRegistration } from '@capstan/core/fleet/instance-states';
import { findCostFaults } from '@capstan/core/money/cost-expressions';
import { serves } from '@capstan/core/routing/visible-to';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import { claimName, type PublishedName } from '../../db/instance/capability-name.ts';
import { followHost, joinHost, lockHostName } from '../../db/instance/host.ts';
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
  recordReport,
  updateRegistration,
} from '../../db/instance/instance.ts';
import { newId } from '../../parts/ids.ts';
import { type Caller, isOperator } from '../access/caller.ts';
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
 * @throws AppError `request_invalid` for a bad address or cost, `forbidden` for an endpoint of another project, and for
 * sharing under a name that others publish, `limit_reached`
 */
export async function registerInstance(
  ctx: RegistryCtx,
  projectId: string,
  registration: Registration,
): Promise<{ instance: Instance; created: RegistrationKind }> {
  const { row, created } = await writeRegistration(ctx, projectId, normaliseAddresses(ctx, registration));
  vetInBackground(ctx, row.instance_id);
  return { instance: toInstance(row, projectId), created };
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

/** A warm-up has no payer. @throws AppError `request_invalid` */
function requireFreeWarmUp(registration: Registration): void {
  const message = findWarmUpFault(registration);
  if (message !== null) throw refuseField('/warm_up', `warm_up ${message}`, 'not_free');
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
    const { host } = registration;
    if (host !== undefined) await lockHostName(trx, { owner_project: projectId, name: host.name });
    const { instanceId, generationBefore, hostBefore } = await upsert(trx, { projectId, most }, registration);
    if (host !== undefined) await joinHost(trx, projectId, host);
    if (hostBefore !== (host?.name ?? null)) await followHost(trx, instanceId, hostBefore);
    await recordReport(trx, instanceId, registration);
    const row = await findInstance(trx, instanceId);
    if (row === null) throw new Error(`instance ${instanceId} vanished inside its own transaction`);
    await probeNamesakes(trx, row);
    if (generationBefore === null) return { row, created: 'new' };
    return { row, created: row.generation === generationBefore ? 'same' : 'changed' };
  });
}

/** Turns a registration into its columns. Fields with a column of the same name need no line here. */
function toRegistered({
  cost_model,
  host,
  takes = 1,
  resident,
  ...registration
}: Registration): Registered & InstanceKey {
  return {
    ...registration,
    host: host?.name,
    host_slots: host?.slots,
    host_memory_gb: host?.memory_gb,
    takes: host && takes,
    cost_type: cost_model.type,
    rate_usd: cost_model.rate_usd,
    cost_notes: cost_model.notes,
    worst_case: cost_model.worst_case,
    expected_cost: cost_model.expected,
    price_source: cost_model.price_source,
    start_cost: cost_model.start,
    token_cost: cost_model.per_token,
  };
}

function refuseUnknown({ name, endpoint }: InstanceKey): AppError {
  return new AppError('not_found', `no instance of ${name} at ${endpoint} is registered`);
}

/**
 * The locked row of an instance of the project; null when the address is free.
 * @throws AppError `not_found` for an instance that does not serve the project, `forbidden` for one shared with it
 */
export async function lockOwnInstance(
  db: Db,
  projectId: string,
  key: InstanceKey,
): Promise<InstanceRow | null> {
  const row = await lockInstanceByKey(db, key);
  if (row === null || row.owner_project === projectId) return row;
  if (!serves(row, projectId)) throw refuseUnknown(key);
  throw new AppError(
    'forbidden',
    `${row.endpoint} is an instance of another project, which shares it; only its owner can change it`,
  );
}

/** The locked row, of any project for an operator. @throws AppError `not_found`, `forbidden` */
export async function lockChangedInstance(
  trx: Db,
  by: Pick<Caller, 'project_id' | 'scopes'>,
  key: InstanceKey,
): Promise<InstanceRow> {
  const row = isOperator(by)
    ? await lockInstanceByKey(trx, key)
    : await lockOwnInstance(trx, by.project_id, key);
  if (row === null) throw refuseUnknown(key);
  return row;
}

/** What a project shares reaches the calls of others, so a name has its publishers. @throws AppError `forbidden` */
export function requirePublisher({ projects }: PublishedName, projectId: string, name: string): void {
  if (projects.includes(projectId)) return;
  const remedy = `an operator lets others share it by PUT /v1/publishers/${name}`;
  throw new AppError(
    'forbidden',
    `the name ${name} has another publisher, so that an instance of it serves its own project alone; ${remedy}`,
  );
}

/**
 * Whether a project that registers at the address of another one gets it. A restart of the owner takes less time than
 * an address needs to be free.
 */
function mayTakeOver(
  { is_left, owner_project }: InstanceRow,
  { projects, set_by }: PublishedName,
  projectId: string,
): boolean {
  if (owner_project === projectId || is_left) return true;
  return set_by !== null && projects.includes(projectId) && !projects.includes(owner_project);
}

/** @throws AppError `forbidden` */
function requireAddress(known: InstanceRow, publishers: PublishedName, projectId: string): void {
  if (mayTakeOver(known, publishers, projectId)) return;
  throw new AppError('forbidden', `${known.endpoint} is registered by another project`);
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
): Promise<{ instanceId: string; generationBefore: number | null; hostBefore: string | null }> {
  const registered = toRegistered(registration);
  const { name, endpoint, shared_with = [] } = registration;
  const publishers = await claimName(db, name, projectId);
  if (shared_with.length > 0) requirePublisher(publishers, projectId, name);
  for (;;) {
    const known = await lockInstanceByKey(db, { name, endpoint });
    if (known === null || known.state === 'deregistered') await requireRoom(db, projectId, most);
    if (known !== null) {
      requireAddress(known, publishers, projectId);
      if (known.owner_project !== projectId) await moveInstance(db, known.instance_id, projectId);
      const { instance_id, generation, host } = known;
      await updateRegistration(db, { ...registered, instance_id }, afterRegistration);
      const hostBefore = known.owner_project === projectId ? host : null;
      return { instanceId: instance_id, generationBefore: generation, hostBefore };
    }
    const instance_id = newId('instance');
    const row = { ...registered, instance_id, owner_project: projectId };
    if (await insertInstance(db, row, afterRegistration)) {
      return { instanceId: instance_id, generationBefore: null, hostBefore: null };
    }
  }
}
