/**
 * The registry: who offers what, where, at what price, and whether it can be called. One for all projects; only
 * the owning project may change an instance. Requests are answered without dialling; vetting follows.
 * (specification: Registry, Capability instance; times are the database's)
 *
 * A heartbeat of a registered instance: it lives. Who was down is up again, with its spec read anew.
 */

import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import type { AddressPolicy } from '../../clients/address-policy.ts';
import type { CapabilityProbe } from '../../clients/capability-probe.ts';
import type {
  CapabilityDetail,
  CapabilitySummary,
  DeregisterAnswer,
  DeregisterRequest,
  HeartbeatAnswer,
  HeartbeatRequest,
  Instance,
  Registration,
} from '../../contracts/capability.ts';
import type { Db } from '../../db/connect.ts';
import {
  type InstanceKey,
  type InstanceRow,
  lockInstance,
  probeNamesakes,
  recordHeartbeat,
  recordQueueDepth,
} from '../../db/instance/instance.ts';
import { AppError } from '../../errors/app-error.ts';
import type { SchemaVetter } from '../../schemas/schema-vetter.ts';
import { deregisterInstance, type RegistryActor } from './deregistration.ts';
import { applyEvent } from './examination.ts';
import {
  createAddressRules,
  createAdoptInstance,
  lockOwnInstance,
  type RegistrationKind,
  registerInstance,
} from './registration.ts';
import {
  getCapability,
  type ListRequest,
  listCapabilities,
  shownState,
  toInstance,
} from './registry-listing.ts';
import { createVetting, probeDueInstances, type VetVerdict } from './vetting.ts';

interface Beat {
  readonly projectId: string;
  readonly key: InstanceKey;
  readonly queue_depth: number | undefined;
}

/** @param db a transaction @returns null when it is not registered @throws AppError `forbidden` */
async function takeHeartbeat(
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

export interface RegistryService {
  /** @throws AppError `request_invalid` for a bad address, `forbidden` for another project's name or instance, `limit_reached` */
  register(
    projectId: string,
    registration: Registration,
  ): Promise<{ instance: Instance; created: RegistrationKind }>;
  /** `revived`: it was down. `adopted`: it was unknown. @throws AppError `not_found`, `forbidden`, `request_invalid` */
  heartbeat(projectId: string, name: string, body: HeartbeatRequest): Promise<HeartbeatAnswer>;
  /** `stale`: it was meant for an earlier registration. @throws AppError `not_found`, `forbidden`, `request_invalid` */
  deregister(by: RegistryActor, name: string, body: DeregisterRequest): Promise<DeregisterAnswer>;
  list(request: ListRequest): Promise<{ items: CapabilitySummary[]; next_cursor: string | null }>;
  /** @throws AppError `not_found` */
  get(name: string): Promise<CapabilityDetail>;
  /** A call found the connection refused or lost: what was up is suspect and probed now. */
  reportRefused(instanceId: string): Promise<void>;
  /** Reads `/health` and `/spec` now. @throws AppError `not_found` */
  vet(instanceId: string): Promise<VetVerdict>;
  /** One round of probes; calls may overlap. @returns how many instances were probed */
  probeDue(limit?: number): Promise<number>;
  /** Ends vettings under way. */
  close(): Promise<void>;
}

interface RegistryOptions {
  readonly db: Db;
  readonly probe: CapabilityProbe;
  readonly logger: Logger;
  readonly policy: AddressPolicy;
  readonly vetter: SchemaVetter;
  /** Instances that a project may have at once. */
  readonly perProject: number;
}

export function createRegistryService({ policy, perProject, ...options }: RegistryOptions): RegistryService {
  const { db, logger } = options;
  const abort = new AbortController();
  setMaxListeners(0, abort.signal); // every probe of a round listens
  const tools = { ...options, signal: abort.signal };
  const vetting = createVetting(tools);
  const addresses = createAddressRules(policy);

  const adopt = createAdoptInstance({ ...tools, perProject }, addresses);

  const toKey = (name: string, body: { endpoint: string; name?: string | undefined }): InstanceKey => {
    if (body.name === undefined || body.name === name) {
      return { name, endpoint: addresses.normaliseEndpoint(body.endpoint) };
    }
    const message = `is ${body.name}, the path names ${name}`;
    throw new AppError('request_invalid', `name ${message}`, {
      errors: [{ pointer: '/name', code: 'other_name', message }],
    });
  };

  return {
    register: async (projectId, registration) => {
      const registered = { ...registration, ...addresses.normalise(registration) };
      const { row, created } = await db.transaction((trx) =>
        registerInstance(trx, { projectId, perProject }, registered),
      );
      vetting.vetInBackground(row.instance_id);
      return { instance: toInstance(row), created };
    },

    heartbeat: async (projectId, name, { queue_depth, ...body }) => {
      const key = toKey(name, body);
      const known = await db.transaction((trx) =>
        takeHeartbeat(trx, { projectId, key, queue_depth }, logger),
      );
      const row = known?.row ?? (await adopt(projectId, key, queue_depth));
      const revived = known?.revived ?? false;
      const adopted = known === null;
      if (revived || adopted) vetting.vetInBackground(row.instance_id);
      const state = shownState(row);
      return { state, revived, ...(adopted ? { adopted } : {}), heartbeat_interval_s: 60 };
    },

    deregister: async (by, name, { generation, ...body }) =>
      deregisterInstance(tools, { by, key: toKey(name, body), generation }),

    list: (request) => listCapabilities(db, request),
    get: (name) => getCapability(db, name),

    reportRefused: (instanceId) =>
      db.transaction(async (trx) => {
        const row = await lockInstance(trx, instanceId);
        if (row !== null) await applyEvent(trx, row, { kind: 'refused_connection' }, logger);
      }),

    vet: vetting.vet,
    probeDue: (limit = 50) => probeDueInstances(tools, limit),
    close: async () => {
      abort.abort();
      await vetting.settle();
    },
  };
}
