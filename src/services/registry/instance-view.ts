/** An instance as the registry and the stream of a project show it. */
import { type Breaker, Instance, type InstanceState } from '../../contracts/capability.ts';
import { expectedSuccess } from '../../core/routing/estimate.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import { present } from '../present.ts';

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
  const { cost_type: type, cost_notes: notes } = row;
  return present(Instance, {
    ...row,
    cost_model: { type, rate_usd: Number(row.rate_usd), ...(notes === null ? {} : { notes }) },
    state: shownState(row),
    success_rate: expectedSuccess(row),
    recent_calls: { succeeded: row.success_count, failed: row.failure_count },
    breaker: toBreaker(row),
  });
}
