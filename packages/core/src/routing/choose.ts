/**
 * Picks the instance that should take a call, in one pass; only the shown instances are allocated. Invariants:
 * - R1: the same snapshot, request and seed give the same choice, in any order of the instances, so that a stored
 *   decision can be repeated from the instances that it shows.
 * - R2: a free, local, idle instance comes before all others; a suspect or warming one after all that are up; a
 *   half-open one last.
 * - R3: within a tier the lowest price of cost and waiting wins. The shortest wait wins among those within 1 % of
 *   it, and a full instance counts more, as in its price. The seed decides among waits within 1 %.
 * - R4: no instance is chosen whose worst case exceeds the ceiling, or the known headroom of a budget.
 * - R5: every instance that cannot take the call carries the first reason that applies; an open breaker is the last.
 * - R6: instances that failed this call come after all other candidates of any tier, by their number of failures.
 * - R7: where the client speaks a protocol, an instance that does not speak it counts a quarter more time, and loses
 *   ties: among equals, the request is not translated.
 * - R8: an instance that has loaded what the call needs may be waited for while that is sooner than a load elsewhere. A
 *   full one that the call cannot wait for is no better than one that must load. Among equals it wins, and else the one
 *   that was idle for longest: what it has loaded is needed least (../residency/residency.ts).
 */
import type { Verdict } from '../contracts/decision.ts';
import type { Priority } from '../contracts/primitives.ts';
import { expectedCost, expectedSuccess, expectedWait, freeSlots, keyedWait, lineMs } from './estimate.ts';
import { createFilter, excludeInstance, neededUsd } from './filter.ts';
import {
  isBehind,
  offer,
  placeOf,
  type Ranking,
  settleTie,
  shownCandidates,
  type Tie,
  tierOf,
} from './ranking.ts';
import {
  type Choice,
  type InstanceSnapshot,
  type RankedInstance,
  type Residency,
  type RouteRequest,
  speaks,
} from './types.ts';

/** The value of a second of waiting, USD. */
const waitingUsdPerSecond: Record<Priority, number> = { interactive: 0.01, standard: 0.001, batch: 0 };

/** R7 */
function translatedMs(waitMs: number, isTranslated: boolean): number {
  return isTranslated ? waitMs * 1.25 : waitMs;
}

/**
 * A full instance counts twice, and once more for each queued call. Durations are guesses: without this, the queue for
 * the instance that looks fastest would grow without end beside idle ones.
 */
function fullFactor({ waiting = 0 }: RouteRequest): number {
  return 2 + waiting;
}

/** R8: where all slots are held. */
function isWorthWaiting(
  instance: InstanceSnapshot,
  found: Residency,
  { waiting = 0, patienceMs = Number.POSITIVE_INFINITY }: RouteRequest,
): boolean {
  return found.isResident && lineMs(instance, found, waiting) <= patienceMs;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** A choice in progress. */
type Draft = Writable<Choice> & {
  readonly excluded: { readonly instance: InstanceSnapshot; readonly verdict: Verdict }[];
  readonly verdicts: Map<Verdict, number>;
};

function least(one: number | null, other: number): number {
  return one === null ? other : Math.min(one, other);
}

function exclude(
  draft: Draft,
  { instance, verdict }: Choice['excluded'][number],
  request: RouteRequest,
): void {
  draft.verdicts.set(verdict, (draft.verdicts.get(verdict) ?? 0) + 1);
  if (draft.excluded.length < shownCandidates) draft.excluded.push({ instance, verdict });
  if (verdict === 'over_ceiling' || verdict === 'over_budget') {
    draft.minimumUsd = least(draft.minimumUsd, neededUsd(instance, request, verdict));
  }
  if (verdict === 'breaker_open') {
    draft.reopensAtMs = least(draft.reopensAtMs, instance.breaker_until_ms as number);
  }
}

function heldOf({ instance_id, held }: InstanceSnapshot, busy: RouteRequest['busy'] | null): number {
  return Math.max(held, busy?.get(instance_id) ?? 0);
}

function beginDraft(): Draft {
  return {
    best: null,
    shown: [],
    possible: 0,
    full: 0,
    excluded: [],
    verdicts: new Map(),
    minimumUsd: null,
    reopensAtMs: null,
  };
}

/** The winner, then the others in order. The instances needed to repeat the choice are always included. */
function gatherShown(first: readonly RankedInstance[], { winner, soonest }: Tie): RankedInstance[] {
  const shown = [winner];
  for (const one of first) if (one !== winner && shown.length < shownCandidates) shown.push(one);
  if (!shown.includes(soonest)) shown[shownCandidates - 1] = soonest;
  return shown;
}

/** A choice in progress, and what is the same for each of its instances. */
interface Round {
  readonly request: RouteRequest;
  readonly draft: Draft;
  readonly ranking: Ranking;
  readonly protocol: string | null;
  readonly busy: RouteRequest['busy'] | null;
  readonly failed: RouteRequest['failedBefore'] | null;
  readonly usdPerSecond: number;
  readonly ifFull: number;
}

function beginRound(request: RouteRequest): Round {
  return {
    request,
    draft: beginDraft(),
    ranking: { first: [], near: [] },
    protocol: request.protocol?.name ?? null,
    busy: request.busy.size === 0 ? null : request.busy,
    failed: request.failedBefore?.size ? request.failedBefore : null,
    usdPerSecond: waitingUsdPerSecond[request.priority],
    ifFull: fullFactor(request),
  };
}

/** Ranks an instance that can take the call. */
function rank(instance: InstanceSnapshot, costUsd: number, round: Round): void {
  const { request, draft, ranking, protocol } = round;
  const held = heldOf(instance, round.busy);
  const depth = held + instance.reported_extra;
  const tier = tierOf(instance, depth, request.trials);
  const place = placeOf(tier, round.failed?.get(instance.instance_id));
  const isFull = freeSlots(instance, held) === 0;
  const residency = request.residency?.get(instance.instance_id);
  const isLate = isFull && (residency === undefined || !isWorthWaiting(instance, residency, request));
  const uselessMs = isLate && residency?.isResident ? residency.loadMs : 0; // R8
  const waitMs =
    residency === undefined
      ? expectedWait(instance, depth, request.priorMs)
      : keyedWait(instance, residency, isFull ? (request.waiting ?? 0) : null) + uselessMs;
  const isTranslated = protocol !== null && !speaks(instance, protocol);
  const timeUsd = (round.usdPerSecond * translatedMs(waitMs, isTranslated)) / 1_000;
  const priceUsd = (costUsd + timeUsd) / expectedSuccess(instance);
  const score = isLate ? priceUsd * round.ifFull : priceUsd;
  draft.possible++;
  if (isFull) draft.full++;
  if (isBehind(ranking, place, score)) return;
  const countedMs = isLate ? waitMs * round.ifFull : waitMs;
  offer(ranking, {
    instance,
    tier,
    place,
    costUsd,
    waitMs,
    countedMs,
    score,
    isFull,
    isTranslated,
    residency,
  });
}

/**
 * @param instances every known instance of the capability
 * @param seed any 32-bit integer; decides ties
 */
export function choose(instances: readonly InstanceSnapshot[], request: RouteRequest, seed: number): Choice {
  const filter = createFilter(request);
  const round = beginRound(request);
  const { draft, ranking } = round;
  for (const instance of instances) {
    const costUsd = expectedCost(instance, request);
    const verdict = excludeInstance(instance, filter, costUsd);
    if (verdict === null) rank(instance, costUsd, round);
    else exclude(draft, { instance, verdict }, request);
  }
  const tie = settleTie(ranking, seed);
  if (tie !== null) {
    draft.best = tie.winner;
    draft.shown = gatherShown(ranking.first, tie);
  }
  return draft;
}
