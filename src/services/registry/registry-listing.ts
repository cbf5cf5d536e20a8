/** What the registry shows. */
import type {
  Breaker,
  CapabilityDetail,
  CapabilitySummary,
  Instance,
  InstanceState,
} from '../../contracts/capability.ts';
import { expectedSuccess } from '../../core/routing/estimate.ts';
import type { Db } from '../../db/connect.ts';
import { listDescriptions, listSpecs } from '../../db/instance/capability-spec.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import {
  type ListedInstance,
  listInstancePage,
  listInstancesByName,
} from '../../db/instance/instance-list.ts';
import { AppError } from '../../errors/app-error.ts';
import { decodeCursor, toPage } from '../cursor.ts';

export interface ListRequest {
  readonly tag?: string | undefined;
  /** Absent: all but the evicted and the deregistered. */
  readonly state?: InstanceState | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export function shownState({
  state,
  in_flight,
  is_evicted,
}: Pick<InstanceRow, 'state' | 'in_flight' | 'is_evicted'>): InstanceState {
  if (state === 'deregistered' && in_flight > 0) return 'draining';
  return state === 'down' && is_evicted ? 'evicted' : state;
}

function toBreaker({ breaker_until, is_breaker_open }: InstanceRow): Breaker {
  if (breaker_until === null) return { state: 'closed', until: null };
  return is_breaker_open
    ? { state: 'open', until: breaker_until.toISOString() }
    : { state: 'half_open', until: null };
}

export function toInstance(row: InstanceRow): Instance {
  return {
    name: row.name,
    version: row.version,
    endpoint: row.endpoint,
    spec_url: row.spec_url,
    health_url: row.health_url,
    cost_model: {
      type: row.cost_type,
      rate_usd: Number(row.rate_usd),
      ...(row.cost_notes === null ? {} : { notes: row.cost_notes }),
    },
    tags: [...row.tags],
    max_concurrency: row.max_concurrency,
    state: shownState(row),
    ...(row.reason === null ? {} : { reason: row.reason }),
    generation: row.generation,
    in_flight: row.in_flight,
    queue_depth: row.queue_depth,
    duration_ms: row.duration_ms,
    success_rate: expectedSuccess(row),
    recent_calls: { succeeded: row.success_count, failed: row.failure_count },
    breaker: toBreaker(row),
    settle: row.settle,
    spec_digest: row.spec_digest,
    registered_at: row.registered_at.toISOString(),
    last_heartbeat_at: row.last_heartbeat_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
  };
}

/** Versions in order of their first registration that is shown. */
function versionsOf(rows: readonly InstanceRow[]): string[] {
  return [...new Set(rows.map(({ version }) => version))];
}

export async function listCapabilities(
  db: Db,
  { tag, state, limit, cursor }: ListRequest,
): Promise<{ items: CapabilitySummary[]; next_cursor: string | null }> {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listInstancePage(db, {
    tag: tag ?? null,
    state: state ?? null,
    after,
    limit: limit + 1,
  });
  const groups = new Map<string, ListedInstance[]>();
  for (const row of rows) groups.set(row.name, [...(groups.get(row.name) ?? []), row]);
  const descriptions = await listDescriptions(db, [...groups.keys()]);
  return toPage([...groups.entries()], limit, {
    key: ([name]) => name,
    item: ([name, instances]) => ({
      name,
      versions: versionsOf(instances),
      description: descriptions.get(name) ?? null,
      instances: instances.map(toInstance),
    }),
  });
}

/** @throws AppError `not_found` when the name was never registered */
export async function getCapability(db: Db, name: string): Promise<CapabilityDetail> {
  const [instances, specs] = await Promise.all([listInstancesByName(db, name), listSpecs(db, name)]);
  if (instances.length === 0) throw new AppError('not_found', `no instance of ${name} is registered`);
  return {
    name,
    specs: specs.map(({ digest, spec }) => ({ digest, spec })),
    instances: instances.map(toInstance),
  };
}
