import type { InstanceSnapshot, RouteRequest } from '../../src/routing/types.ts';

/** Up, free, local, idle and never called; its endpoint ends in its id. */
export function anInstance(id: string, instance: Partial<InstanceSnapshot> = {}): InstanceSnapshot {
  return {
    instance_id: id,
    name: 'upscale',
    version: '1.2.3',
    endpoint: `http://10.0.0.1/${id}`,
    cost_type: 'free',
    rate_usd: 0,
    tags: ['local'],
    max_concurrency: 1,
    state: 'up',
    spec_digest: 'a-digest',
    held: 0,
    reported_extra: 0,
    duration_ms: 10_000,
    deviation_ms: 0,
    mean_cost_usd: null,
    success_count: 0,
    failure_count: 0,
    breaker_until_ms: null,
    is_local: true,
    settle: 'computed',
    ...instance,
  };
}

export function aPaid(
  id: string,
  rate_usd: number,
  instance: Partial<InstanceSnapshot> = {},
): InstanceSnapshot {
  return anInstance(id, {
    cost_type: 'per_call',
    rate_usd,
    tags: ['cloud'],
    is_local: false,
    duration_ms: 1_000,
    ...instance,
  });
}

/** Noon of a day, by the database's clock. */
export const now = 1_700_000_000_000;

export function aRequest(request: Partial<RouteRequest> = {}): RouteRequest {
  return {
    capability: 'upscale',
    versionRange: null,
    tags: [],
    priority: 'standard',
    ceilingUsd: null,
    timeoutMs: 300_000,
    headroomUsd: null,
    nowMs: now,
    priorMs: 10_000,
    ruledOut: new Map(),
    busy: new Map(),
    ...request,
  };
}
