/** A stored decision made again with changed inputs, by the original function. */
import type { Decision, OnBudget } from '@capstan/core/contracts/decision';
import { formatUsd } from '@capstan/core/money/nano-usd';
import { choose } from '@capstan/core/routing/choose';
import { admittedCall, countAtOnce } from '@capstan/core/routing/estimate';
import { explainChoice } from '@capstan/core/routing/explain';
import type { KnownChoice } from '@capstan/core/routing/replay';
import type {
  CallBound,
  Growth,
  InstanceSnapshot,
  RankedInstance,
  RouteRequest,
} from '@capstan/core/routing/types';

export interface WhatIfChange {
  readonly priority: RouteRequest['priority'];
  readonly ceilingUsd: number | null;
  readonly onBudget: OnBudget;
  /** What its budgets have left, USD; null: unknown, or they have no limit. */
  readonly roomUsd: number | null;
  /** Factor of the rate, per instance id. */
  readonly prices: Readonly<Record<string, number>>;
  readonly down: ReadonlySet<string>;
  readonly full: ReadonlySet<string>;
}

export function changeNothing({ request }: KnownChoice): WhatIfChange {
  const { priority, ceilingUsd, onBudget = 'refuse', headroomUsd: roomUsd } = request;
  return { priority, ceilingUsd, onBudget, roomUsd, prices: {}, down: new Set(), full: new Set() };
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

function changeGrowth({ unit, startUsd, unitUsd, expected }: Growth, factor: number): Growth {
  const costs = { unit, startUsd: startUsd * factor, unitUsd: unitUsd * factor };
  if (expected === undefined) return costs;
  const { meanUsd, deviationUsd } = expected;
  return { ...costs, expected: { meanUsd: meanUsd * factor, deviationUsd: deviationUsd * factor } };
}

/** A cost by the input follows the price. */
function changeBounds(bounds: RouteRequest['bounds'], { prices }: WhatIfChange): RouteRequest['bounds'] {
  const times = (usd: number | null, factor: number) => (usd === null ? null : usd * factor);
  const changed = [...(bounds ?? [])].map(([id, bound]): [string, CallBound] => {
    const factor = prices[id] ?? 1;
    const { worstUsd, expectedUsd, growth } = bound;
    const costs = { worstUsd: times(worstUsd, factor), expectedUsd: times(expectedUsd, factor) };
    return [
      id,
      { ...bound, ...costs, ...(growth === undefined ? {} : { growth: changeGrowth(growth, factor) }) },
    ];
  });
  return bounds === undefined ? undefined : new Map(changed);
}

/** The calls of one that is made full have just begun. */
function changeResidency(
  { instances, request: { residency } }: KnownChoice,
  { full }: WhatIfChange,
): RouteRequest['residency'] {
  if (residency === undefined) return undefined;
  const changed = new Map(residency);
  for (const { instance_id, held, max_concurrency } of instances) {
    const found = residency.get(instance_id);
    if (found === undefined || !full.has(instance_id) || held >= max_concurrency) continue;
    changed.set(instance_id, { ...found, leftMs: Math.max(found.leftMs, found.warmMs) });
  }
  return changed;
}

export interface WhatIfAnswer {
  readonly decision: Decision;
  /** What the call would hold of its budgets; null: no instance would get it, or it is free. */
  readonly hold: WhatIfHold | null;
}

interface WhatIfHold {
  /** From its admission on, USD. */
  readonly firstUsd: number;
  /** At its end, as expected; null: it does not grow. */
  readonly meanUsd: number | null;
  /** The number of such calls that the room admits at once; null: any, or the room is unknown. */
  readonly atOnce: number | null;
}

/** Without a call: a full instance would be waited for. */
export function chooseWith(known: KnownChoice, change: WhatIfChange): WhatIfAnswer {
  const instances = known.instances.map((instance) => changeInstance(instance, change));
  const request: RouteRequest = {
    ...known.request,
    priority: change.priority,
    ceilingUsd: change.ceilingUsd,
    onBudget: change.onBudget,
    headroomUsd: change.roomUsd,
    bounds: changeBounds(known.request.bounds, change),
    residency: changeResidency(known, change),
  };
  const choice = choose(instances, request, known.seed);
  const named = { decision_id: 'what-if', chosen: choice.best?.isFull === false };
  return {
    decision: explainChoice(request, choice, named),
    hold: choice.best === null ? null : holdOf(choice.best, request),
  };
}

function holdOf({ instance, costUsd }: RankedInstance, request: RouteRequest): WhatIfHold | null {
  if (instance.rate_usd === 0) return null;
  const { firstNano, expected } = admittedCall(instance, request, costUsd);
  return {
    firstUsd: firstNano / 1e9,
    meanUsd: expected === null ? null : expected.mean / 1e9,
    atOnce: countAtOnce(instance, request, { costUsd, roomUsd: request.headroomUsd }),
  };
}

export function describeWhatIfHold({ firstUsd, meanUsd, atOnce }: WhatIfHold): string {
  const grows =
    meanUsd === null ? 'the most that it may cost' : `growing to ${formatUsd(meanUsd)} as expected`;
  const many = atOnce === null ? '' : ` The room admits ${atOnce.toLocaleString('en')} such calls at once.`;
  return `It would hold ${formatUsd(firstUsd)}, ${grows}.${many}`;
}

/** The instance that would get the call: `null` when there is none. */
export function winnerOf({ candidates }: Decision): string | null {
  return candidates.find(({ verdict }) => verdict === 'chosen' || verdict === 'wait')?.endpoint ?? null;
}
