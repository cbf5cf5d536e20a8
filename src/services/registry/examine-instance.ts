/**
 * Asks an instance who it is: `/health`, and `/spec` where it is not known yet. What it serves counts, not its
 * price: the price is the registration's.
 */
import { createHash } from 'node:crypto';
import type { CapabilityProbe } from '../../clients/capability-probe.ts';
import type { ProbeFault } from '../../clients/probe-error.ts';
import type { CapabilitySpec, Health } from '../../contracts/capability.ts';
import { canonicalJson } from '../../core/canonical-json.ts';
import type { InstanceEvent, ProbeFailure } from '../../core/registry/transitions.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import type { CapabilitySpecRow } from '../../db/spec/capability-spec.ts';
import type { SchemaVetter } from '../../schemas/schema-vetter.ts';

export interface ProbeFinding {
  readonly event: Extract<InstanceEvent, { kind: 'probe_ok' | 'probe_failed' | 'probe_mismatch' }>;
  /** The vetted spec; null where it was not read or not accepted. */
  readonly spec: CapabilitySpecRow | null;
  /** What `/health` said, where the probe was good. */
  readonly health: Health | null;
}

/** Who is asked, and who it should be. */
type Examined = Pick<InstanceRow, 'name' | 'version' | 'health_url' | 'spec_url'>;

function failed(failure: ProbeFailure, detail: string): ProbeFinding {
  return {
    event: { kind: 'probe_failed', failure, detail },
    spec: null,
    health: null,
  };
}

export function mismatch(detail: string): ProbeFinding {
  return {
    event: { kind: 'probe_mismatch', detail },
    spec: null,
    health: null,
  };
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
 * Name, version and schemas make a spec, and that it is deterministic; its price and prose may differ between instances.
 */
function digestOf({ name, version, input, output, deterministic }: CapabilitySpec): string {
  const schemas = { name, version, input, output };
  const said = deterministic === true ? { ...schemas, deterministic } : schemas;
  return createHash('sha256').update(canonicalJson(said)).digest('hex');
}

export async function examineInstance(
  { probe, vetter }: { readonly probe: CapabilityProbe; readonly vetter: SchemaVetter },
  row: Examined,
  { readsSpec, signal }: { readonly readsSpec: boolean; readonly signal: AbortSignal },
): Promise<ProbeFinding> {
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
  const fault = findStranger('/spec', row, spec) ?? (await findSpecFault(vetter, spec, signal));
  if (fault !== null) return mismatch(fault);
  const { name, version } = spec;
  return {
    event: { kind: 'probe_ok' },
    spec: { name, version, digest: digestOf(spec), spec },
    health: health.value,
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
  vetter: SchemaVetter,
  spec: CapabilitySpec,
  signal: AbortSignal,
): Promise<string | null> {
  for (const side of ['input', 'output'] as const) {
    const fault = await vetter.vet(spec[side], signal);
    if (fault !== null) return `/spec: its ${side} schema cannot be used: ${fault}`;
  }
  return null;
}
