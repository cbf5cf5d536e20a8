/** An instance as the registry and the stream of a project show it. */
import { type Breaker, Instance, type InstanceState } from '@capstan/core/contracts/capability';
import { toWire } from '@capstan/core/contracts/to-wire';
import { routedState } from '@capstan/core/fleet/instance-states';
import { lastOverrunMs } from '@capstan/core/money/overruns';
import { expectedSuccess } from '@capstan/core/routing/estimate';
import { shownShares } from '@capstan/core/routing/visible-to';
import type { InstanceRow } from '../../db/instance/instance.ts';
import type { DrainRow } from '../../db/instance/instance-drain.ts';

export function shownState({
  state,
  in_flight,
  is_evicted,
  drained_by,
  warm_due_at,
}: Pick<InstanceRow, 'state' | 'in_flight' | 'is_evicted' | 'drained_by' | 'warm_due_at'>): InstanceState {
  if (state === 'deregistered' && in_flight > 0) return 'draining';
  if (state === 'down' && is_evicted) return 'evicted';
  return routedState(state, { isDrained: drained_by !== null, isWarming: warm_due_at !== null });
}

export function toDrain(
  { drained_by: by, drained_at, drain_reason: reason, drain_until }: DrainRow,
  isWithHost = false,
): Instance['drain'] {
  if (by === null || drained_at === null) return undefined;
  const until = drain_until?.toISOString() ?? null;
  return {
    by,
    ...(reason === null ? {} : { reason }),
    ...(isWithHost ? { with_host: true } : {}),
    since: drained_at.toISOString(),
    until,
  };
}

function reasonOf(row: InstanceRow): string | null {
  if (row.reason !== null || shownState(row) !== 'warming') return row.reason;
  return row.warm_error === null ? 'its warm-up has not ended' : `its warm-up failed: ${row.warm_error}`;
}

function toBreaker({ breaker_until, is_breaker_open }: InstanceRow): Breaker {
  if (breaker_until === null) return { state: 'closed', until: null };
  return is_breaker_open
    ? { state: 'open', until: breaker_until.toISOString() }
    : { state: 'half_open', until: null };
}

function toCostModel(row: InstanceRow): Instance['cost_model'] {
  const { cost_type: type, cost_notes: notes, worst_case, expected_cost, price_source } = row;
  const { start_cost, token_cost } = row;
  return {
    type,
    rate_usd: Number(row.rate_usd),
    ...(worst_case === null ? {} : { worst_case }),
    ...(expected_cost === null ? {} : { expected: expected_cost }),
    ...(price_source === null ? {} : { price_source }),
    ...(start_cost === null ? {} : { start: start_cost }),
    ...(token_cost === null ? {} : { per_token: token_cost }),
    ...(notes === null ? {} : { notes }),
  };
}

function toOverruns({ overruns: total, overran }: InstanceRow) {
  const last = lastOverrunMs(overran);
  return last === null ? undefined : { total, last_at: new Date(last).toISOString() };
}

/** As the instance registered it: the newest registration of the host decides. */
function toHost({ host, host_slots, host_memory_gb }: InstanceRow): Instance['host'] {
  if (host === null || host_slots === null) return undefined;
  return { name: host, slots: host_slots, ...(host_memory_gb === null ? {} : { memory_gb: host_memory_gb }) };
}

/** @param viewer the project that looks at it */
export function toInstance(row: InstanceRow, viewer: string): Instance {
  return toWire(Instance, {
    ...row,
    shared_with: shownShares(row, viewer),
    cost_model: toCostModel(row),
    host: toHost(row),
    takes: row.takes ?? undefined,
    protocols: row.protocols ?? undefined,
    stops: row.stops || undefined,
    async: row.answers_later === null ? undefined : { slot: row.answers_later },
    affinity: row.affinity ?? undefined,
    resident: row.resident.length === 0 || viewer !== row.owner_project ? undefined : row.resident,
    max_resident: row.max_resident ?? undefined,
    overruns: toOverruns(row),
    drain: toDrain(row, row.drained_with_host),
    reason: reasonOf(row),
    state: shownState(row),
    success_rate: expectedSuccess(row),
    recent_calls: { succeeded: row.success_count, failed: row.failure_count },
    breaker: toBreaker(row),
  });
}
