/** A stored decision made again with changed inputs, by the original function. */
import type { Decision } from '@capstan/core/contracts/decision';
import { choose } from '@capstan/core/routing/choose';
import { explainChoice } from '@capstan/core/routing/explain';
import type { KnownChoice } from '@capstan/core/routing/replay';
import type { CallBound, InstanceSnapshot, RouteRequest } from '@capstan/core/routing/types';

export interface WhatIfChange {
  readonly priority: RouteRequest['priority'];
  readonly ceilingUsd: number | null;
  /** Factor of the rate, per instance id. */
  readonly prices: Readonly<Record<string, number>>;
  readonly down: ReadonlySet<string>;
  readonly full: ReadonlySet<string>;
}

export function changeNothing({ request }: KnownChoice): WhatIfChange {
  const { priority, ceilingUsd } = request;
  return { priority, ceilingUsd, prices: {}, down: new Set(), full: new Set() };
}

function changeInstance(instance: InstanceSnapshot, { prices, down, full }: WhatIfChange): InstanceSnapshot {
  const { instance_id } = instance;
  return {
    ...instance,
    rate_usd: instance.rate_usd * (prices[instance_id] ?? 1),
    state: down.has(instance_id) ? 'down' : instance.state,
    held: full.has(instance_id) ? Math.max(instance.held, instance.max_concurrency) : instance.held,
  };
}

/** A cost by the input follows the price. */
function changeBounds(bounds: RouteRequest['bounds'], { prices }: WhatIfChange): RouteRequest['bounds'] {
  const times = (usd: number | null, factor: number) => (usd === null ? null : usd * factor);
  const changed = [...(bounds ?? [])].map(([id, bound]): [string, CallBound] => {
    const factor = prices[id] ?? 1;
    const worstUsd = times(bound.worstUsd, factor);
    return [id, { ...bound, worstUsd, expectedUsd: times(bound.expectedUsd, factor) }];
  });
  return bounds === undefined ? undefined : new Map(changed);
}

/** Without a call: a full instance would be waited for. */
export function chooseWith(known: KnownChoice, change: WhatIfChange): Decision {
  const instances = known.instances.map((instance) => changeInstance(instance, change));
  const request: RouteRequest = {
    ...known.request,
    priority: change.priority,
    ceilingUsd: change.ceilingUsd,
    bounds: changeBounds(known.request.bounds, change),
  };
  const choice = choose(instances, request, known.seed);
  return explainChoice(request, choice, { decision_id: 'what-if', chosen: choice.best?.isFull === false });
}

/** The instance that would get the call: `null` when there is none. */
export function winnerOf({ candidates }: Decision): string | null {
  return candidates.find(({ verdict }) => verdict === 'chosen' || verdict === 'wait')?.endpoint ?? null;
}
