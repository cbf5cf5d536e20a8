/** A registry on a database of its own, with fake instances; and the rows that tests need around it. */
import { randomUUID } from 'node:crypto';
import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import { createSchemaVetter } from '@capstan/core/schemas/schema-vetter';
import { pino } from 'pino';
import { createCapabilityClient } from '../../../src/clients/capability-http.ts';
import { type CapabilityProbe, createCapabilityProbe } from '../../../src/clients/capability-probe.ts';
import { ConfigSchema } from '../../../src/config.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { type InstanceRow, instanceColumns } from '../../../src/db/instance/instance.ts';
import { createProbing, type Probing } from '../../../src/parts/fleet/probes-in-flight.ts';
import { createSchemaValidator } from '../../../src/parts/fleet/specs.ts';
import type { RegistryCtx } from '../../../src/use-cases/registry/registration.ts';
import type { WarmUpCtx } from '../../../src/use-cases/registry/warm-up.ts';
import { aGuard, aPolicy } from '../../support/address-policy.ts';
import { createTestDatabase } from '../../support/database.ts';
import { registryOf, type TestRegistry } from '../../support/registry.ts';
import { type FakeInstance, startFakeInstance } from './fake-instance.ts';

export const project = 'prj_one';
/** Who deregisters. */
export const owner = { project_id: project, key_id: 'key_one' };
export const otherProject = 'prj_two';
export const silentLogger = pino({ level: 'silent' });

export interface RegistryBench {
  readonly db: Db;
  readonly registry: TestRegistry;
  readonly ctx: RegistryCtx & WarmUpCtx;
  /** Its registry, which waits for answers to probes no longer than this. Else it waits for long: machines are slow. */
  impatient(deadlineMs: number): TestRegistry;
  start(spec?: CapabilitySpec): Promise<FakeInstance>;
  read(endpoint: string): Promise<InstanceRow>;
  /** Lets the times of the instance lie in the past, its next probe too. @param endpoint or a pattern of LIKE */
  age(endpoint: string, seconds: number): Promise<void>;
  /** Forgets all instances. */
  clear(): Promise<void>;
  /** No connection to the database is in use or waited for. */
  isIdle(): boolean;
  /** An open attempt on the instance. @returns its id */
  openAttempt(endpoint: string): Promise<string>;
  close(): Promise<void>;
}

export async function openRegistryBench({ perProject = 1_000 } = {}): Promise<RegistryBench> {
  const database = await createTestDatabase();
  const db = connectDatabase(database.url, 10);
  await db.raw(`insert into project (project_id, name) values (?, 'one'), (?, 'two')`, [
    project,
    otherProject,
  ]);
  const probes: CapabilityProbe[] = [];
  const aProbing = (deadlineMs: number): Probing => {
    const probe = createCapabilityProbe({ guard: aGuard(), deadlineMs });
    probes.push(probe);
    return createProbing(probe);
  };
  const vetter = createSchemaVetter();
  const client = createCapabilityClient({
    guard: aGuard(),
    answerLimitBytes: 1_048_576,
    livenessIntervalMs: 60_000,
  });
  const ctx = {
    client,
    validator: createSchemaValidator({ db }),
    config: ConfigSchema.parse({ DATABASE_URL: database.url, INSTANCES_PER_PROJECT: perProject }),
    db,
    probing: aProbing(60_000),
    logger: silentLogger,
    policy: aPolicy(),
    vetter,
  };
  const registry = registryOf(ctx);
  const instances: FakeInstance[] = [];

  const read = async (endpoint: string): Promise<InstanceRow> => {
    const { rows } = await db.raw(`select ${instanceColumns} from instance i where endpoint = ?`, [endpoint]);
    return rows[0];
  };

  return {
    db,
    registry,
    ctx,
    impatient: (deadlineMs) => registryOf({ ...ctx, probing: aProbing(deadlineMs) }),
    read,
    start: async (spec) => {
      const instance = await startFakeInstance(spec);
      instances.push(instance);
      return instance;
    },
    age: async (endpoint, seconds) => {
      const times = ['registered_at', 'last_heartbeat_at', 'next_probe_at', 'down_since', 'uptime_at'];
      const shifts = times.map((time) => `${time} = ${time} - interval '${seconds} seconds'`);
      await db.raw(`update instance set ${shifts.join(', ')} where endpoint like ?`, [endpoint]);
    },
    clear: async () => {
      await Promise.allSettled(ctx.probing.vettings.values());
      for (const instance of instances.splice(0)) await instance.die().catch(() => undefined);
      await db('instance').delete();
    },
    isIdle: () => {
      const { pool } = db.client;
      return pool.numUsed() + pool.numPendingAcquires() + pool.numPendingCreates() === 0;
    },
    openAttempt: async (endpoint) => {
      const id = randomUUID();
      const { instance_id, name } = await read(endpoint);
      await db.raw(
        `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
           lease_until, cost_type, rate_usd, reserved_nano)
         values (?, ?, ?, 1, ?, ?, ?, 'dispatched', ?, now() + interval '1 minute', 'free', 0, 0)`,
        [id, project, id, name, instance_id, endpoint, id],
      );
      return id;
    },
    close: async () => {
      await registry.close();
      for (const probe of probes) await probe.close();
      await client.close();
      await vetter.close();
      for (const instance of instances) await instance.die().catch(() => undefined);
      await db.destroy();
      await database.drop();
    },
  };
}
