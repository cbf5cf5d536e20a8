/** The estimated duration and cost of a call on an instance. */
import {
  type AdmittedCall,
  aheadAt,
  certainty,
  countAdmitted,
  type GrowingCall,
  type HoldTerms,
  holdFor,
  unitsPerSecond,
} from '../money/holds.ts';
import { toNanoUsd } from '../money/nano-usd.ts';
import { worstCase } from '../money/reservation.ts';
import { ownMs } from '../residency/residency.ts';
import type { Growth, InstanceSnapshot, Residency, RouteRequest } from './types.ts';

/** Assumed when neither the instance nor its capability has finished a call. */
const priorDurationMs = 30_000;

/** The duration assumed for instances without a call of their own: the median of the others, ms. */
export function priorDuration(instances: readonly Pick<InstanceSnapshot, 'duration_ms'>[]): number {
  const known = instances.flatMap(({ duration_ms }) => (duration_ms === null ? [] : [duration_ms]));
  return known.sort((a, b) => a - b)[Math.floor(known.length / 2)] ?? priorDurationMs;
}

/** The calls that run on it in parallel, as far as its host bears them. */
export function slotsOf({
  max_concurrency,
  host_calls,
}: Pick<InstanceSnapshot, 'max_concurrency' | 'host_calls'>): number {
  return host_calls == null ? max_concurrency : Math.min(max_concurrency, host_calls);
}

/** The slots that are free on it and on its host. @param held its own, as the caller knows them */
export function freeSlots(
  { max_concurrency, host_room }: Pick<InstanceSnapshot, 'max_concurrency' | 'host_room'>,
  held: number,
): number {
  const own = max_concurrency - held;
  return Math.max(0, host_room == null ? own : Math.min(own, host_room));
}

/** Its calls, or as many of its slots as others on its host leave it not. */
export function callsAhead(instance: InstanceSnapshot, depth: number): number {
  const { host_room } = instance;
  return host_room == null ? depth : Math.max(depth, slotsOf(instance) - host_room);
}

/** Time until a call that joins `depth` others now would end. */
export function expectedWait(instance: InstanceSnapshot, depth: number, priorMs: number): number {
  const durationMs = instance.duration_ms ?? priorMs;
  const slots = slotsOf(instance);
  const ahead = callsAhead(instance, depth);
  return ahead < slots ? durationMs : durationMs * (1 + Math.floor(ahead / slots));
}

/** Time until one of its slots is free for a call behind the waiting ones. Calls of others on its host end as its own do. */
export function lineMs(instance: InstanceSnapshot, { leftMs, warmMs }: Residency, waiting: number): number {
  const { reported_extra, held, max_concurrency, host_room } = instance;
  const isFullOfOthers = host_room === 0 && held < max_concurrency;
  const firstMs = isFullOfOthers ? Math.max(leftMs, warmMs) : leftMs;
  return firstMs + (warmMs * (waiting + reported_extra)) / slotsOf(instance);
}

/** Time until a call with a key would end. @param waiting calls before it where all slots are held; null: one is free */
export function keyedWait(instance: InstanceSnapshot, residency: Residency, waiting: number | null): number {
  const own = ownMs(residency);
  if (waiting !== null) return lineMs(instance, residency, waiting) + own;
  const { held, reported_extra } = instance;
  return own + residency.warmMs * Math.floor(callsAhead(instance, held + reported_extra) / slotsOf(instance));
}

/** The duration of a long call, about the 90th percentile. */
export function longCallMs(durationMs: number, deviationMs: number | null): number {
  return durationMs + 1.6 * (deviationMs ?? 0);
}

/** Expected cost, USD: by the input where the instance declares it, else by its rate. */
export function expectedCost(
  instance: InstanceSnapshot,
  request: Pick<RouteRequest, 'priorMs' | 'bounds' | 'residency'>,
): number {
  const usual = usualCost(instance, request);
  const bound = request.bounds?.get(instance.instance_id);
  if (bound === undefined) return usual;
  const most = instance.cost_type === 'per_call' ? instance.rate_usd : Number.POSITIVE_INFINITY;
  return Math.min(bound.expectedUsd ?? usual, bound.worstUsd ?? most, most);
}

type UsualTimes = Pick<RouteRequest, 'priorMs' | 'residency'>;

/** A rate per second is charged for a long call, so that luck is not rewarded. */
function usualCost(instance: InstanceSnapshot, times: UsualTimes): number {
  const { cost_type, rate_usd, deviation_ms } = instance;
  if (cost_type === 'free') return 0;
  if (cost_type === 'per_call') return rate_usd;
  return (rate_usd * longCallMs(usualMs(instance, times), deviation_ms)) / 1_000;
}

function usualMs({ instance_id, duration_ms }: InstanceSnapshot, { priorMs, residency }: UsualTimes): number {
  const found = residency?.get(instance_id);
  return found === undefined ? (duration_ms ?? priorMs) : ownMs(found);
}

/**
 * Mean of the success probability under a Beta(9, 1) prior, from 0.05 to the prior's 0.9. Without the upper bound,
 * instances with past successes would look cheaper than equal ones without calls, and get all calls.
 */
export function expectedSuccess({
  success_count,
  failure_count,
}: Pick<InstanceSnapshot, 'success_count' | 'failure_count'>): number {
  const mean = (success_count + 9) / (success_count + failure_count + 10);
  return Math.min(0.9, Math.max(0.05, mean));
}

type Price = Pick<InstanceSnapshot, 'cost_type' | 'rate_usd'>;
type PricedInstance = Price & Pick<InstanceSnapshot, 'instance_id'>;
export type Limits = Pick<RouteRequest, 'ceilingUsd' | 'runCeilingUsd' | 'timeoutMs' | 'bounds' | 'onBudget'>;

/** The lower of two ceilings; null is no ceiling. */
export function lowestCeiling(one: number | null, other: number | null): number | null {
  return one === null ? other : other === null ? one : Math.min(one, other);
}

/** A ceiling on a rate per second limits the time, so that it always holds. Whole ms, at least 1. */
export function enforcedTimeout({ cost_type, rate_usd }: Price, limits: Limits): number {
  const ceilingUsd = lowestCeiling(limits.ceilingUsd, limits.runCeilingUsd ?? null);
  return ceilingUsd === null || cost_type !== 'per_second' || rate_usd === 0
    ? limits.timeoutMs
    : Math.max(1, Math.min(limits.timeoutMs, Math.floor((ceilingUsd / rate_usd) * 1_000)));
}

/**
 * The maximum cost of a call: USD, rounded up to a nano-USD. A double is exact enough to rule out a call that cannot
 * fit.
 */
export function worstCaseUsd(instance: PricedInstance, limits: Limits): number {
  const nano =
    instance.cost_type === 'per_call'
      ? instance.rate_usd * 1e9
      : instance.rate_usd * enforcedTimeout(instance, limits) * 1e6;
  const ownUsd = limits.bounds?.get(instance.instance_id)?.worstUsd ?? null;
  return Math.ceil((ownUsd === null ? nano : Math.min(nano, ownUsd * 1e9)) * (1 - 1e-15)) / 1e9;
}

/** The same in nano-USD. */
export function worstCaseNano(instance: PricedInstance, limits: Limits): bigint {
  return lowerByInput(declaredNano(instance, limits), instance, limits);
}

/** The price of the call by the rate alone, nano-USD: no call is charged more. */
function declaredNano(instance: Price, limits: Limits): bigint {
  return worstCase(instance, enforcedTimeout(instance, limits));
}

function lowerByInput(declared: bigint, { instance_id }: PricedInstance, { bounds }: Limits): bigint {
  const ownUsd = bounds?.get(instance_id)?.worstUsd ?? null;
  if (ownUsd === null) return declared;
  const own = toNanoUsd(ownUsd);
  return own < declared ? own : declared;
}

/**
 * The likely cost of a success, USD. If an instance reports the cost of its calls, its price is an upper bound, and the
 * average of its calls so far is the better estimate, if known.
 */
export function likelyCost(
  instance: PricedInstance & Pick<InstanceSnapshot, 'settle' | 'mean_cost_usd'>,
  limits: Limits,
  costUsd: number,
): number {
  const { settle, mean_cost_usd, instance_id } = instance;
  if (settle !== 'reported' || mean_cost_usd === null || limits.bounds?.has(instance_id)) return costUsd;
  return Math.min(mean_cost_usd, worstCaseUsd(instance, limits));
}

/** Units that a call may use before it is looked at again: about a second of it. A quick model has more of its tokens. */
const unitsAhead = { token: 64, ms: 1_000 } as const;

export function holdTerms(
  { unit, startUsd, unitUsd }: Growth,
  mostNano: bigint,
  { lengths, duration_ms }: Pick<InstanceSnapshot, 'lengths' | 'duration_ms'>,
): HoldTerms {
  return {
    startNano: Math.ceil(startUsd * 1e9 - 1e-6),
    unitNano: unitUsd * 1e9,
    mostNano: Number(mostNano),
    ahead: aheadAt(unitsAhead[unit], unitsPerSecond(lengths ?? [], duration_ms)),
  };
}

/** The growth of a call whose hold may grow with it, and that is expected to need less than its worst case. */
type ForeseenGrowth = Growth & Required<Pick<Growth, 'expected'>>;

/** @returns null: the call holds its worst case */
function foreseenGrowth(
  { instance_id }: Pick<InstanceSnapshot, 'instance_id'>,
  { bounds, onBudget = 'refuse' }: Pick<Limits, 'bounds' | 'onBudget'>,
): ForeseenGrowth | null {
  const growth = bounds?.get(instance_id)?.growth;
  return onBudget === 'refuse' || growth?.expected === undefined ? null : (growth as ForeseenGrowth);
}

/** With what is learnt of its calls. */
type GrowingInstance = PricedInstance & Pick<InstanceSnapshot, 'lengths' | 'duration_ms'>;

/** How the hold of a call grows on the instance; null: it holds its worst case. */
export function growingCall(instance: GrowingInstance, limits: Limits): GrowingCall | null {
  return foreseenGrowth(instance, limits) === null ? null : meteredCall(instance, limits);
}

/** What is seen of the use of a call on its way, whatever it holds; null: nothing. */
export function meteredCall(instance: GrowingInstance, limits: Limits): GrowingCall | null {
  const growth = limits.bounds?.get(instance.instance_id)?.growth;
  if (growth === undefined) return null;
  const terms = holdTerms(growth, worstCaseNano(instance, limits), instance);
  return { terms, lengths: instance.lengths ?? [] };
}

/** The units that an ended call has used, by its cost; null: its cost does not grow. */
export function usedUnits(
  { instance_id, cost_type }: PricedInstance,
  { bounds }: Limits,
  { costUsd, durationMs }: { readonly costUsd: number; readonly durationMs: number },
): number | null {
  const growth = bounds?.get(instance_id)?.growth;
  if (growth === undefined || growth.unitUsd === 0) return null;
  if (cost_type === 'per_second') return durationMs;
  return Math.max(0, (costUsd - growth.startUsd) / growth.unitUsd);
}

/** The room that a call needs whose hold grows, USD: what it is expected to hold at its end, with certainty. */
function neededUsd({ expected: { meanUsd, deviationUsd } }: ForeseenGrowth): number {
  return meanUsd + certainty * deviationUsd;
}

/**
 * The room that a call needs, USD; the claim computes it again in integers.
 * @param costUsd the expected cost
 */
export function reservedUsd(instance: PricedInstance, limits: Limits, costUsd: number): number {
  const growth = foreseenGrowth(instance, limits);
  const worstUsd = growth === null ? worstCaseUsd(instance, limits) : neededUsd(growth);
  return isDearerThanRun(limits, costUsd) ? Math.max(worstUsd, costUsd) : worstUsd;
}

/**
 * What a call reserves, nano-USD: its worst case, and the risk that it costs more, up to the price by its rate. If the
 * expected cost exceeds the whole run's ceiling, that ceiling would cut the call short. Then the call reserves the
 * expected cost, so that the run's budget refuses it and the step waits for a raise.
 */
export function reservationOf(
  instance: PricedInstance,
  limits: Limits,
  costUsd: number,
): { readonly reserved: bigint; readonly risk: bigint } {
  if (isDearerThanRun(limits, costUsd)) return { reserved: toNanoUsd(costUsd), risk: 0n };
  const declared = declaredNano(instance, limits);
  const reserved = lowerByInput(declared, instance, limits);
  return { reserved, risk: declared - reserved };
}

function isDearerThanRun({ runCeilingUsd = null }: Limits, costUsd: number): boolean {
  return runCeilingUsd !== null && costUsd > runCeilingUsd;
}

/** The least that a call holds at its admission, and what it is expected to hold at its end. */
export function admittedCall(instance: GrowingInstance, limits: Limits, costUsd: number): AdmittedCall {
  const { reserved, risk } = reservationOf(instance, limits, costUsd);
  const growth = foreseenGrowth(instance, limits);
  if (growth === null) return { firstNano: Number(reserved), riskNano: Number(risk), expected: null };
  const terms = holdTerms(growth, worstCaseNano(instance, limits), instance);
  const { meanUsd, deviationUsd } = growth.expected;
  return {
    firstNano: holdFor(terms, { units: 0, heldNano: 0, roomNano: 0 }),
    riskNano: 0,
    expected: { mean: meanUsd * 1e9, variance: (deviationUsd * 1e9) ** 2 },
  };
}

/** How many such calls a room admits at once; null: any number. @param roomUsd null: it has no limit */
export function countAtOnce(
  instance: GrowingInstance,
  limits: Limits,
  { costUsd, roomUsd }: { readonly costUsd: number; readonly roomUsd: number | null },
): number | null {
  if (roomUsd === null || instance.rate_usd === 0) return null;
  return countAdmitted(admittedCall(instance, limits, costUsd), roomUsd * 1e9);
}
