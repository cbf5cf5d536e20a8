/**
 * The registry: who offers what, where, at what price, and whether it can be called. One for all projects; only
 * the owning project may change an instance. Requests are answered without dialling; vetting follows.
 * (specification: Registry, Capability instance; times are the database's)
 */
import type { Logger } from 'pino';
import type { CapabilityProbe } from '../../clients/capability-probe.ts';
import type { Config } from '../../config.ts';
import type {
  CapabilityDetail,
  CapabilitySummary,
  DeregisterAnswer,
  HeartbeatAnswer,
  Instance,
  Registration,
} from '../../contracts/capability.ts';
import type { Db } from '../../db/connect.ts';
import { type InstanceRow, lockInstance, lockInstanceByKey, recordHeartbeat } from '../../db/instance.ts';
import { AppError } from '../../errors.ts';
import { createAddressRules } from './instance-address.ts';
import { applyEvent } from './instance-changes.ts';
import { probeDueInstances } from './probing.ts';
import { type RegistrationKind, registerInstance, requireOwner } from './register-instance.ts';
import {
  getCapability,
  type ListRequest,
  listCapabilities,
  shownState,
  toInstance,
} from './registry-listing.ts';
import { createSchemaCompiler } from './schema-compiler.ts';
import { createVetting, type VetVerdict } from './vetting.ts';

export interface RegistryService {
  /** @throws AppError `request_invalid` for a bad address, `forbidden` for another project's instance */
  register(
    projectId: string,
    registration: Registration,
  ): Promise<{ instance: Instance; created: RegistrationKind }>;
  /** `revived`: it was down. @throws AppError `not_found`, `forbidden`, `request_invalid` */
  heartbeat(
    projectId: string,
    name: string,
    body: { endpoint: string; queue_depth?: number | undefined },
  ): Promise<HeartbeatAnswer>;
  /** @throws AppError `not_found`, `forbidden`, `request_invalid` */
  deregister(projectId: string, name: string, body: { endpoint: string }): Promise<DeregisterAnswer>;
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

export interface RegistryOptions {
  readonly db: Db;
  readonly probe: CapabilityProbe;
  readonly logger: Logger;
  readonly config: Pick<Config, 'CAPSTAN_MODE'>;
}

export const createRegistryService = ({ db, probe, logger, config }: RegistryOptions): RegistryService => {
  const abort = new AbortController();
  const tools = { db, probe, logger, compiler: createSchemaCompiler(), signal: abort.signal };
  const vetting = createVetting(tools);
  const addresses = createAddressRules({ allowsLoopback: config.CAPSTAN_MODE !== 'production' });

  /** Runs `work` on the locked row of an instance that belongs to the project. */
  const changeOwn = <Result>(
    projectId: string,
    name: string,
    body: { endpoint: string },
    work: (trx: Db, row: InstanceRow) => Promise<Result>,
  ): Promise<Result> => {
    const endpoint = addresses.normaliseEndpoint(body.endpoint);
    return db.transaction(async (trx) => {
      const row = await lockInstanceByKey(trx, { name, endpoint });
      if (row === null)
        throw new AppError('not_found', `no instance of ${name} at ${endpoint} is registered`);
      requireOwner(row, projectId);
      return work(trx, row);
    });
  };

  return {
    register: async (projectId, registration) => {
      const registered = { ...registration, ...addresses.normalise(registration) };
      const { row, created } = await db.transaction((trx) => registerInstance(trx, projectId, registered));
      vetting.vetInBackground(row.instance_id);
      return { instance: toInstance(row), created };
    },

    heartbeat: async (projectId, name, body) =>
      changeOwn(projectId, name, body, async (trx, row) => {
        if (row.state !== 'deregistered') {
          await recordHeartbeat(trx, row.instance_id, body.queue_depth ?? null);
        }
        const isSettled = row.state === 'up' && row.next_probe_at === null;
        const state = isSettled ? row.state : await applyEvent(trx, row, { kind: 'heartbeat' }, logger);
        return {
          state: shownState({ ...row, state }),
          revived: row.state === 'down' && state === 'up',
          heartbeat_interval_s: 60,
        };
      }),

    deregister: async (projectId, name, body) =>
      changeOwn(projectId, name, body, async (trx, row) => {
        const state = await applyEvent(trx, row, { kind: 'deregistered' }, logger);
        return { state: shownState({ ...row, state }), stale: false };
      }),

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
};
