/**
 * Examines an instance by `/health`, and by `/spec` if that is unknown, and applies the finding to its row as an event:
 * locks the row, applies the state table, writes the new state. The spec comes from the instance; the price comes from
 * the registration.
 */
import { createHash } from 'node:crypto';
import type { CapabilitySpec, Health } from '@capstan/core/contracts/capability';
import {
  type InstanceEvent,
  type InstanceFacts,
  isNewProcess,
  nextState,
  type ProbeFailure,
} from '@capstan/core/fleet/instance-states';
import { canonicalJson } from '@capstan/core/json/values';
import { findAffinityFault } from '@capstan/core/residency/affinity-key';
import type { ProbeFault } from '../../clients/capability-probe.ts';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import {
  type CapabilitySpecRow,
  findRivalSpec,
  insertSpec,
  isPeerOfOthers,
} from '../../db/instance/capability-spec.ts';
import {
  type InstanceRow,
  lockInstance,
  recordReport,
  updateInstanceState,
  updateSpecDigest,
} from '../../db/instance/instance.ts';
import { forgetCalls, recordUptime } from '../../db/instance/instance-calls.ts';
import { warmInstance } from '../../db/instance/instance-drain.ts';

export interface ProbeFinding {
  readonly event: Extract<InstanceEvent, { kind: 'probe_ok' | 'probe_failed' | 'probe_mismatch' }>;
  /** The vetted spec; null where it was not read or not accepted. */
  readonly spec: CapabilitySpecRow | null;
  /** The protocols of models that it speaks; only with a spec. */
  readonly protocols?: readonly string[] | null;
  /** Whether a closed connection ends its work; only with a spec. */
  readonly stops?: boolean;
  /** Whether it answers later, and what becomes of the slot; only with a spec. */
  readonly answers_later?: InstanceRow['answers_later'];
  /** The key of what a call needs loaded; only with a spec. */
  readonly affinity?: string | null;
  /** The answer of `/health`, where the probe was good. */
  readonly health: Health | null;
  /** Where the address leads; only with a spec. */
  readonly peer?: string | null;
}

/** The probed address, with the expected name and version. */
type Examined = Pick<InstanceRow, 'name' | 'version' | 'health_url' | 'spec_url'>;

function failed(failure: ProbeFailure, detail: string): ProbeFinding {
  return { event: { kind: 'probe_failed', failure, detail }, spec: null, health: null };
}

function mismatch(detail: string): ProbeFinding {
  return { event: { kind: 'probe_mismatch', detail }, spec: null, health: null };
}

function fromFault(path: string, fault: ProbeFault): ProbeFinding {
  const detail = `${path}: ${fault.detail}`;
  switch (fault.kind) {
    case 'refused':
      return failed('refused', detail);
    case 'timeout':
      return failed(fault.connected ? 'unanswered' : 'unconnected', detail);
    case 'unhealthy':
      return failed('unhealthy', detail);
    case 'unusable':
      return mismatch(detail);
  }
}

/**
 * A spec consists of name, version, schemas and determinism; price, prose, protocols, stops, async and affinity may
 * differ between instances.
 */
function digestOf({ name, version, input, output, deterministic }: CapabilitySpec): string {
  const schemas = { name, version, input, output };
  const said = deterministic === true ? { ...schemas, deterministic } : schemas;
  return createHash('sha256').update(canonicalJson(said)).digest('hex');
}

export async function examineInstance(
  ctx: Pick<Ctx, 'probing' | 'vetter'>,
  row: Examined,
  { readsSpec }: { readonly readsSpec: boolean },
): Promise<ProbeFinding> {
  const { probe, signal } = ctx.probing;
  const health = await probe.readHealth(row.health_url, signal);
  if (health.kind !== 'ok') return fromFault('/health', health);
  const stranger = findStranger('/health', row, health.value);
  if (stranger !== null) return mismatch(stranger);
  if (health.value.status !== 'ok') {
    return failed(
      'unhealthy',
      `/health: status ${JSON.stringify(health.value.status.slice(0, 100))}, not "ok"`,
    );
  }
  if (!readsSpec) return { event: { kind: 'probe_ok' }, spec: null, health: health.value };
  const answer = await probe.readSpec(row.spec_url, signal);
  if (answer.kind !== 'ok') return fromFault('/spec', answer);
  const spec = answer.value;
  const fault = findStranger('/spec', row, spec) ?? (await findSpecFault(ctx, spec));
  if (fault !== null) return mismatch(fault);
  const { protocols = null, stops = false, async: later, affinity = null, ...stored } = spec;
  const { name, version } = stored;
  return {
    event: { kind: 'probe_ok' },
    spec: { name, version, digest: digestOf(stored), spec: stored },
    protocols,
    stops,
    answers_later: later?.slot ?? null,
    affinity,
    health: health.value,
    peer: probe.peerOf(row.health_url),
  };
}

function findStranger(
  path: string,
  registered: Pick<InstanceRow, 'name' | 'version'>,
  said: { readonly name: string; readonly version: string },
): string | null {
  return said.name === registered.name && said.version === registered.version
    ? null
    : `${path} says ${said.name} ${said.version}, registered is ${registered.name} ${registered.version}`;
}

async function findSpecFault(
  { vetter, probing: { signal } }: Pick<Ctx, 'probing' | 'vetter'>,
  spec: CapabilitySpec,
): Promise<string | null> {
  const affinityFault = spec.affinity === undefined ? null : findAffinityFault(spec.affinity);
  if (affinityFault !== null) return `/spec: its affinity cannot be used: ${affinityFault}`;
  for (const side of ['input', 'output'] as const) {
    const fault = await vetter.vet(spec[side], signal);
    if (fault !== null) return `/spec: its ${side} schema cannot be used: ${fault}`;
  }
  return null;
}

/** Applies an event to an instance: locks its row, applies the state table, writes the result. */
function factsOf(row: InstanceRow): InstanceFacts {
  return {
    state: row.state,
    reason: row.reason,
    failed_probes: row.failed_probes,
    isVetted: row.spec_digest !== null,
    isSilent: row.is_silent,
    isEvicted: row.is_evicted,
    holdsCalls: row.in_flight > 0 || (row.warm_due_at !== null && row.warm_error === null),
  };
}

/** @param ctx with the transaction that has locked the row @returns its state afterwards */
export async function applyEvent(
  { db, logger }: Pick<Ctx, 'db' | 'logger'>,
  row: InstanceRow,
  event: InstanceEvent,
): Promise<InstanceRow['state']> {
  const change = nextState(factsOf(row), event);
  if (change === null) return row.state;
  await updateInstanceState(db, row.instance_id, change);
  if (change.state !== row.state) {
    const { instance_id, name, endpoint } = row;
    const { state, reason } = change;
    logger.info(
      { instance_id, capability: name, endpoint, from: row.state, state, reason },
      'instance changed',
    );
  }
  return change.state;
}

/** A call found the connection refused or lost: an instance that was up is now suspect and is probed. */
export function reportRefused(ctx: Pick<Ctx, 'db' | 'logger'>, instanceId: string): Promise<void> {
  return ctx.db.transaction(async (trx) => {
    const row = await lockInstance(trx, instanceId);
    if (row !== null) await applyEvent({ ...ctx, db: trx }, row, { kind: 'refused_connection' });
  });
}

/** Why another instance rules this one out: one of its project with another spec, or the same one of another project. */
async function findRivalFault(
  trx: Db,
  { name, version, instance_id: instanceId, owner_project: projectId }: InstanceRow,
  { spec: { digest }, peer }: { readonly spec: CapabilitySpecRow; readonly peer: string | null },
): Promise<string | null> {
  const rival = await findRivalSpec(trx, { name, version, digest, instanceId, projectId });
  if (rival !== null) {
    return `/spec differs from that of ${rival.endpoint}, which serves ${version} too; a changed spec needs a new version`;
  }
  const isTaken = peer !== null && (await isPeerOfOthers(trx, { name, projectId, peer }));
  return isTaken ? 'its address leads to the instance of another project' : null;
}

/**
 * Applies the finding of a probe. A finding about an earlier registration, or a failure from before a heartbeat, is
 * stale and changes nothing.
 * @param probed the row as it was when the probe began
 * @returns the state afterwards; null for a stale finding
 */
export async function applyFinding(
  ctx: Pick<Ctx, 'db' | 'logger'>,
  probed: InstanceRow,
  finding: ProbeFinding,
): Promise<InstanceRow['state'] | null> {
  return ctx.db.transaction(async (trx) => {
    const within = { ...ctx, db: trx };
    const { instance_id } = probed;
    const { spec, protocols = null, stops = false, answers_later = null, affinity = null } = finding;
    const { peer = null } = finding;
    const fault = spec === null ? null : await findRivalFault(trx, probed, { spec, peer });
    const row = await lockInstance(trx, instance_id);
    if (row === null) return 'deregistered';
    if (isOldNews(probed, row, finding)) return null;
    if (fault !== null) return applyEvent(within, row, mismatch(fault).event);
    const state = await applyEvent(within, row, finding.event);
    if (state !== 'up') return state;
    if (finding.health !== null) await applyHealth(within, { probed, row }, finding.health);
    if (spec !== null) {
      await insertSpec(trx, spec);
      await updateSpecDigest(trx, instance_id, {
        digest: spec.digest,
        protocols,
        stops,
        answers_later,
        affinity,
        peer,
      });
    }
    return state;
  });
}

/**
 * Takes over queue depth and uptime. A new process does not inherit the old one's breaker and speed. With two
 * concurrent probes, the uptime of the first one applied counts: the other may have been read before it.
 */
async function applyHealth(
  { db, logger }: Pick<Ctx, 'db' | 'logger'>,
  { probed, row }: { readonly probed: InstanceRow; readonly row: InstanceRow },
  { uptime_ms, ...report }: Health,
): Promise<void> {
  const { instance_id, uptime_at, registered_at } = row;
  const isReadSince = probed.uptime_at?.getTime() !== uptime_at?.getTime();
  const hasRegisteredSince = uptime_at !== null && uptime_at < registered_at;
  if (!isReadSince && isNewProcess({ ...row, hasRegisteredSince }, uptime_ms)) {
    await forgetCalls(db, instance_id);
    if (!hasRegisteredSince) await warmInstance(db, instance_id); // its registration has done so
    logger.info({ instance_id, capability: row.name, endpoint: row.endpoint }, 'instance is a new process');
  }
  if (!isReadSince) await recordUptime(db, instance_id, uptime_ms);
  await recordReport(db, instance_id, report);
}

function isOldNews(probed: InstanceRow, row: InstanceRow, { event }: ProbeFinding): boolean {
  return (
    probed.registered_at.getTime() !== row.registered_at.getTime() ||
    probed.generation !== row.generation ||
    (event.kind === 'probe_failed' && probed.last_heartbeat_at.getTime() !== row.last_heartbeat_at.getTime())
  );
}
