/** What one call has learnt of instances while it looks for one; each finding rules out or changes candidates. */

import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { choose } from '../../core/routing/choose.ts';
import type { Choice, RouteRequest, RuledOut } from '../../core/routing/types.ts';
import type { BudgetShortage } from '../../db/attempt/attempt.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';
import type { HalfOpenProbes } from './half-open-probes.ts';

/** What the caller asks for. */
export type RouteConstraints = Pick<
  RouteRequest,
  'capability' | 'versionRange' | 'tags' | 'priority' | 'ceilingUsd' | 'timeoutMs'
>;

export interface SchemaError {
  readonly pointer: string;
  readonly message: string;
}

export interface ClaimSearch {
  readonly seed: number;
  /** What the specs of instances say against the input. */
  readonly refusals: readonly SchemaError[];
  /** The tightest budget that refused a reservation. */
  readonly shortage: BudgetShortage | null;
  /**
   * The request as it stands, and what it chooses now.
   * @param trials null: it tries no doubtful instance @param waiting other calls that wait in line
   */
  choose(
    fleet: Pick<FleetPoller, 'of' | 'nowMs'>,
    trials: Pick<HalfOpenProbes, 'findDue'> | null,
    waiting: number,
  ): { request: RouteRequest; choice: Choice };
  /** Another router took the last slot, or the instance is no longer what it was. */
  noteLost(instanceId: string): void;
  /** It did not answer when it was asked who it is. */
  noteDown(instanceId: string): void;
  /** It seemed idle and is not. */
  noteBusy(instanceId: string): void;
  noteRefusal(instanceId: string, errors: readonly SchemaError[]): void;
  noteShortage(shortage: BudgetShortage): void;
  /** True the first time. */
  noteVetting(instanceId: string): boolean;
  /** Slots may have become free since. */
  forgetMoment(): void;
}

const noTrials: ReadonlySet<string> = new Set();

function seedOf(key: string): number {
  let seed = 0;
  for (let at = 0; at < key.length; at++) seed = (Math.imul(seed, 31) + key.charCodeAt(at)) | 0;
  return seed;
}

function headroomOf({ limit_nano, spent_nano, reserved_nano }: BudgetShortage): number {
  const left = BigInt(limit_nano) - BigInt(spent_nano) - BigInt(reserved_nano);
  return fromNanoUsd(left > 0n ? left : 0n);
}

/** @param tried instances that already failed this call */
export function createClaimSearch(key: string, wish: RouteConstraints, tried: Iterable<string>): ClaimSearch {
  const seed = seedOf(key);
  const ruledOut = new Map<string, RuledOut>([...tried].map((id) => [id, 'already_tried']));
  const busy = new Set<string>();
  const vetted = new Set<string>();
  const refusals: SchemaError[] = [];
  let shortage: BudgetShortage | null = null;

  return {
    seed,
    refusals,
    get shortage() {
      return shortage;
    },
    choose: (fleet, trials, waiting) => {
      const { instances, priorMs } = fleet.of(wish.capability);
      const headroomUsd = shortage === null ? null : headroomOf(shortage);
      const nowMs = fleet.nowMs();
      const due = trials?.findDue(instances, nowMs) ?? noTrials;
      const request = { ...wish, headroomUsd, priorMs, nowMs, ruledOut, busy, trials: due, waiting };
      return { request, choice: choose(instances, request, seed) };
    },
    noteLost: (instanceId) => ruledOut.set(instanceId, 'lost_claim'),
    noteDown: (instanceId) => ruledOut.set(instanceId, 'down'),
    noteBusy: (instanceId) => busy.add(instanceId),
    noteRefusal: (instanceId, errors) => {
      ruledOut.set(instanceId, 'input_invalid');
      refusals.push(...errors);
    },
    noteShortage: (seen) => {
      shortage = seen;
    },
    noteVetting: (instanceId) => vetted.size < vetted.add(instanceId).size,
    forgetMoment: () => {
      for (const [id, reason] of ruledOut) if (reason === 'lost_claim') ruledOut.delete(id);
      busy.clear();
    },
  };
}
