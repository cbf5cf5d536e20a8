/**
 * This folder is the composition root: configuration becomes connections, connections become the context of a process.
 * Only this folder wires and closes parts. This file makes the context that both processes share, and the parts that
 * several processes make: log, files, Temporal.
 */

import { readTransientTexts } from '@capstan/core/call/judge';
import { createSchemaVetter } from '@capstan/core/schemas/schema-vetter';
import { noTelemetry, type OpenSpan, type Telemetry } from '@capstan/core/telemetry/telemetry';
import { createAddressPolicy, findOwnListeners } from '@capstan/guarded-dial/address-policy';
import { createDialGuard } from '@capstan/guarded-dial/guarded-dial';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import { type Logger, pino } from 'pino';
import { createCapabilityClient } from '../clients/capability-http.ts';
import { createCapabilityProbe } from '../clients/capability-probe.ts';
import { createSecretCipher } from '../clients/secret-cipher.ts';
import {
  connectionOf,
  createBoundedCalls,
  openTemporal,
  readTemporalAddress,
  requireNamespace,
} from '../clients/temporal/connection.ts';
import { createDataConverter, readKeyIds } from '../clients/temporal/payload-codec.ts';
import { createRunWorkflows } from '../clients/temporal/run-workflows.ts';
import { createSchedules } from '../clients/temporal/schedules.ts';
import { addMissingSearchAttributes } from '../clients/temporal/search-attributes.ts';
import type { Config } from '../config.ts';
import type { Ctx } from '../context.ts';
import { type Claim, renewLeases } from '../db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../db/connect.ts';
import { migrate } from '../db/migrate.ts';
import { readPoolState } from '../library-internals.ts';
import { createKeyBuckets } from '../parts/access/key-rates.ts';
import { createAttemptWriter } from '../parts/calls/attempt-writer.ts';
import { createBreakers, createHalfOpenProbes } from '../parts/calls/breakers.ts';
import { createCallLogWriter } from '../parts/calls/call-log.ts';
import { createCallbackAddresses } from '../parts/calls/callback-addresses.ts';
import { createHolds } from '../parts/calls/holds.ts';
import { createKeptContents } from '../parts/calls/kept-contents.ts';
import type { Claimed } from '../parts/calls/routed-call.ts';
import { createSlotLeases } from '../parts/calls/slot-leases.ts';
import { createWaitQueue } from '../parts/calls/wait-queue.ts';
import { createCheckedDefinitions } from '../parts/definitions/definition-facts.ts';
import { createKnownDefinitions } from '../parts/definitions/known-definitions.ts';
import { createRunContexts } from '../parts/definitions/run-context.ts';
import { createStepResults } from '../parts/definitions/step-results.ts';
import { createLeaseRenewer } from '../parts/delivery/lease-renewer.ts';
import { createFleetPoller } from '../parts/fleet/fleet-poller.ts';
import { createProbing } from '../parts/fleet/probes-in-flight.ts';
import { createResidencyRecorder } from '../parts/fleet/residency-recorder.ts';
import { createCurrentSpecs, createSchemaValidator } from '../parts/fleet/specs.ts';
import { createSpeedRecorder } from '../parts/fleet/speed-recorder.ts';
import { createDirectMedia } from '../parts/media/direct-media.ts';
import { createMediaLibrary } from '../parts/media/media-library.ts';
import { createOwnMedia } from '../parts/media/own-media.ts';
import { Parts, together } from '../parts/part.ts';
import { createSkillMatcher } from '../parts/skill-matcher.ts';
import { logAudits } from '../use-cases/access/audit.ts';
import { vetInstance } from '../use-cases/registry/vetting.ts';
import { announceStarts } from '../use-cases/schedules/scheduled-runs.ts';
import { createFreezeWatch, type FreezeWatch, longestFreezeMs } from './freeze-watch.ts';

/** The URL on which this process listens, from its settings. */
function listeningUrlOf({ HOST, PORT }: Config): string {
  return `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${PORT}`;
}

/** The URL of the API as clients see it. @param listening the actual URL, once known */
export function publicUrlOf(config: Config, listening = listeningUrlOf(config)): string {
  return config.PUBLIC_URL ?? listening;
}

export function consoleUrlOf({ CONSOLE_URL }: Config, publicUrl: string): string {
  return CONSOLE_URL ?? `${publicUrl}/ui/`;
}

/** The addresses at which instances are allowed. */
function createPolicy(config: Config) {
  return createAddressPolicy({
    allowedCidrs: config.ALLOWED_CIDRS,
    allowsLoopback: config.CAPSTAN_MODE === 'development',
    ownListeners: findOwnListeners([
      config.DATABASE_URL,
      `temporal://${readTemporalAddress()}`,
      config.TEMPORAL_UI_URL,
      listeningUrlOf(config),
      config.PUBLIC_URL,
    ]),
  });
}

function beginMetrics({ metrics }: Telemetry, db: Db): void {
  announceStarts(metrics);
  metrics.onScrape(() => {
    const states = Object.entries(readPoolState(db.client));
    metrics.replace(
      'database_pool_connections',
      states.map(([state, value]) => ({ labels: { state }, value })),
    );
  });
}

/** Connects to the database until the process closes its parts. */
export function addDatabase(parts: Parts, ...database: Parameters<typeof connectDatabase>): Db {
  const db = connectDatabase(...database);
  parts.add({ close: () => db.destroy() });
  return db;
}

type ProcessParts = Pick<Ctx, 'config' | 'logger' | 'telemetry' | 'db'>;

/** Makes the parts that register and probe instances. */
function createRegistering({ config }: ProcessParts, parts: Parts) {
  const policy = createPolicy(config);
  const guard = createDialGuard(policy);
  const probe = createCapabilityProbe({ guard, deadlineMs: config.PROBE_TIMEOUT_MS });
  const vetter = parts.add(createSchemaVetter());
  parts.add(probe);
  const probing = parts.add(createProbing(probe));
  return { policy, guard, vetter, probing };
}

const answerLimitBytes = 16 * 1_048_576;
/** Interval between two polls for changes by other processes. */
const pollMs = 250;

function createLeases({ config: { LEASE_MS: leaseMs }, db, logger }: ProcessParts) {
  return createLeaseRenewer<Claim>({
    renew: (held) => renewLeases(db, held, leaseMs),
    idOf: ({ attempt_id }) => attempt_id,
    intervalMs: leaseMs / 3,
    retryMs: leaseMs / 30,
    logger,
  });
}

/** Holds the leases of the process while it does not turn. */
function watchFreezes({ config, logger }: ProcessParts, token: string): FreezeWatch {
  const { DATABASE_URL: databaseUrl, LEASE_MS: leaseMs } = config;
  return createFreezeWatch({ databaseUrl, token, leaseMs, longestMs: longestFreezeMs, logger });
}

/** Makes the stateful parts of routed calls. */
function createRouting(base: ProcessParts & Pick<Ctx, 'guard' | 'probing' | 'vetter'>, parts: Parts) {
  const { config, db, logger, guard } = base;
  const fleet = createFleetPoller({ db, intervalMs: pollMs, logger });
  const freezes = watchFreezes(base, fleet.holder);
  const callLogs = createCallLogWriter(base);
  parts.add(together(callLogs, freezes));
  const livenessIntervalMs = config.LIVENESS_MS;
  const client = createCapabilityClient({ guard, answerLimitBytes, livenessIntervalMs, freezes });
  const breakers = createBreakers(base);
  const speed = createSpeedRecorder(base);
  const residency = createResidencyRecorder({ ...base, fleet });
  const attemptWriter = createAttemptWriter(base);
  parts.add(together(attemptWriter, speed, residency, breakers, client));
  const leases = parts.add(createLeases(base));
  parts.add(fleet);
  return {
    client,
    callbackAddresses: createCallbackAddresses({ db, publicUrl: config.PUBLIC_URL }),
    fleet,
    freezes,
    speed,
    residency,
    leases,
    validator: parts.add(createSchemaValidator(base)),
    breakers,
    halfOpenProbes: createHalfOpenProbes({
      logger,
      breakers,
      vet: (instanceId) => vetInstance(base, instanceId),
    }),
    attemptWriter,
    holds: createHolds(base),
    callLogs,
    waitQueue: createWaitQueue(),
    attemptSpans: new WeakMap<Claimed, OpenSpan>(),
    keptContents: createKeptContents(db),
    keyTokens: createKeyBuckets(() => performance.now()),
    transientTexts: readTransientTexts(config.TRANSIENT_TEXTS),
  };
}

export type SharedContext = Awaited<ReturnType<typeof createSharedContext>>;

/** Makes the context that server and worker share. */
export async function createSharedContext(
  config: Config,
  logger: Logger,
  telemetry: Telemetry = noTelemetry,
) {
  await migrate(config.DATABASE_URL);
  const parts = new Parts();
  const db = addDatabase(parts, config.DATABASE_URL, config.DATABASE_POOL);
  beginMetrics(telemetry, db);
  logAudits(db, logger);
  const base: ProcessParts = { config, logger, telemetry, db };
  const secretCipher = createSecretCipher(config.PAYLOAD_KEYS);
  const own = { ...base, ...createRegistering(base, parts), secretCipher, ownMedia: createOwnMedia(db) };
  const routing = createRouting(own, parts);
  const { library: media, direct: directMedia } = await createMedia(config, db);
  const ctx: Ctx = {
    ...own,
    ...routing,
    slotLeases: parts.add(createSlotLeases({ ...base, ...routing })),
    specs: createCurrentSpecs({ db, fleet: routing.fleet, validator: routing.validator }),
    skillMatcher: createSkillMatcher({ db }),
    contexts: createRunContexts(db),
    results: createStepResults(db),
    definitions: createKnownDefinitions(own),
    checked: createCheckedDefinitions(),
    media,
  };
  return { ctx, directMedia, parts, keepKey: routing.freezes.keepKey };
}

/** @param fields added to each line: its place in a trace */
export function createLogger(
  config: Pick<Config, 'LOG_LEVEL'>,
  process: string,
  fields: () => object = () => ({}),
): Logger {
  return pino({ level: config.LOG_LEVEL, base: { process }, mixin: fields });
}

/** Makes the media library of all projects, for both processes, and the API's `direct` access to the store. */
export async function createMedia(config: Config, db: Db) {
  const store = await createMediaStore(config.MEDIA_URL);
  const bytesPerProject = config.MEDIA_BYTES_PER_PROJECT;
  const library = createMediaLibrary({ db, store, bytesPerProject });
  const direct = createDirectMedia({
    db,
    store,
    library,
    bytesPerProject,
    passesBy: config.MEDIA_REDIRECT === 'true',
    limitBytes: config.MEDIA_LIMIT_BYTES,
  });
  return { library, direct };
}

export type Temporal = ReturnType<typeof createTemporal>;

/** Makes a worker's converter; clients make their own. @throws Error that names the wrong key */
export function readDataConverter({ PAYLOAD_KEYS }: Pick<Config, 'PAYLOAD_KEYS'>) {
  return createDataConverter(PAYLOAD_KEYS);
}

/** Makes the server's Temporal clients, on one connection that opens on first use. */
export function createTemporal({ TASK_QUEUE, PAYLOAD_KEYS }: Config) {
  const client = openTemporal(PAYLOAD_KEYS);
  const bounded = createBoundedCalls(client);
  return {
    workflows: createRunWorkflows(client, TASK_QUEUE, bounded),
    namespace: client.options.namespace,
    address: readTemporalAddress(),
    schedules: createSchedules(client, TASK_QUEUE, bounded),
    payloadKeys: readKeyIds(PAYLOAD_KEYS),
    /** Rejects if Temporal does not answer within 10 s. */
    answers: () => connectionOf(client).ensureConnected(),
    requireNamespace: () => requireNamespace(client, bounded),
    registerSearchAttributes: () =>
      addMissingSearchAttributes(connectionOf(client), client.options.namespace),
    close: () => client.connection.close(),
  };
}
