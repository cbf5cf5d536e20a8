/**
 * The parts of a plan: the forecast of a run, of its steps, of one execution of a step and of one call, with their
 * costs.
 *
 * A call's forecast names the instance that would take it now, its time and its cost: the router's own choice, without
 * a claim. Equal calls that the same instances refuse are examined once, so that a thousand steps are cheap.
 */

import { findResidency } from '@capstan/core/call/claim-search';
import { explainMiss, type NoClaim } from '@capstan/core/call/no-claim';
import type { Candidate } from '@capstan/core/contracts/decision';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { PlannedCost, PlannedStepView } from '@capstan/core/contracts/plan';
import type { JsonObject, Priority } from '@capstan/core/contracts/primitives';
import type { CompiledStep } from '@capstan/core/definition/compile';
import type { Meter } from '@capstan/core/expression/meter';
import type { CriticalPath } from '@capstan/core/graph/dag';
import type { CallPlace, UnitGroup, Workload } from '@capstan/core/graph/foreseen-time';
import { createCostOfInput } from '@capstan/core/money/cost-expressions';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import { createKeyOfInput, type KeyOfInput } from '@capstan/core/residency/affinity-key';
import { ownMs } from '@capstan/core/residency/residency';
import { boundsOf } from '@capstan/core/routing/call-bound';
import {
  callsAhead,
  countAtOnce,
  expectedCost,
  likelyCost,
  lowestCeiling,
  slotsOf,
} from '@capstan/core/routing/estimate';
import { findPriceRange, type Headroom } from '@capstan/core/routing/price-range';
import type { Choice, RankedInstance, RouteConstraints } from '@capstan/core/routing/types';
import type { Ctx } from '../../context.ts';
import type { CheckCtx } from '../../parts/definitions/definition-facts.ts';
import type { KnownDefinition } from '../../parts/definitions/known-definitions.ts';
import { noteWork, turnFor } from '../../parts/expression-work.ts';
import type { ProjectFleet } from '../../parts/fleet/fleet-view.ts';
import type { FindKept } from '../calls/cache.ts';
import {
  type ChoicePreview,
  findRefusals,
  noRefusals,
  previewChoice,
  type Refusals,
} from '../routing/decisions.ts';
import type { PlanWork } from './partial-evaluation.ts';

/** A run to be planned. */
export interface RunTask {
  readonly definition: PipelineDefinition;
  /** Null = unknown. */
  readonly job: JsonObject | null;
  readonly jobId: string;
  readonly priority: Priority;
  readonly ceilingUsd: number | null;
  /** Runs above it. */
  readonly depth: number;
}

/** Without a call, `chosen` is null and there are no candidates. */
interface Forecast extends Pick<PlannedStepView, 'chosen' | 'reason'> {
  readonly candidates: readonly Candidate[];
  readonly cost: CostRange;
  readonly durationMs: number;
  /** How many such calls the room of the run and of the day admits at once; null: any number, or there is no call. */
  readonly atOnce: number | null;
  /** Instances that may take the call, the best first; none without a call. */
  readonly places: readonly CallPlace[];
  /** The part of its expected cost for loading the key, nano-USD; absent: it has none, or finds it loaded. */
  readonly load?: { readonly key: string; readonly nano: bigint };
}

/** One execution: of a step, or of one of its items. */
export interface UnitForecast extends Forecast {
  /** Number of calls that would take the result of an equal call; absent for none. */
  readonly cached?: number;
  /** Of a child run. */
  readonly within?: Workload;
  readonly findings: readonly Finding[];
}

export interface StepForecast extends Omit<UnitForecast, 'places' | 'within' | 'load'> {
  /** Absent without `for_each`; null = known only during the run. */
  readonly items?: number | null;
  /** The most rounds of a step with `repeat`. */
  readonly rounds?: number;
  /** Its executions. */
  readonly groups: readonly UnitGroup[];
}

export interface RunForecast {
  readonly steps: readonly (StepForecast & Pick<PlannedStepView, 'id' | 'happens'>)[];
  readonly cost: CostRange;
  /** With the slots of instances, and the calls that they hold or have in line. */
  readonly durationMs: number;
  readonly workload: Workload;
  readonly path: CriticalPath;
  readonly findings: readonly Finding[];
}

/** The state of one plan, which the runs that its steps start share. */
export interface PlanContext {
  readonly ctx: PlanCtx;
  readonly projectId: string;
  readonly headroom: Headroom;
  /** Of the project, for steps that name none. */
  readonly onBudget: RouteConstraints['onBudget'] | null;
  readonly findKept: FindKept;
  /** Names of capabilities that are registered. */
  readonly registered: ReadonlySet<string>;
  /** Grows: called capabilities that are not registered. */
  readonly missing: Set<string>;
  /** How many inputs of items, and steps of child runs, may still be examined one by one. */
  readonly inputBudget: { left: number; isShort: boolean };
  readonly work: PlanWork;
  /** Prices by the inputs of all calls draw on it. */
  readonly prices: Meter;
  /** Number of forecast executions, by which the planner yields now and then. */
  units: number;
  /** Equal calls that the same instances refuse. */
  readonly calls: Map<string, CallForecast>;
  /** Forecasts child runs. */
  readonly forecastRun: (context: PlanContext, task: RunTask) => Promise<RunForecast>;
  /** Equal child runs. */
  readonly runs: Map<string, Promise<RunForecast>>;
  /** Valid definitions that count as stored. */
  readonly beside: readonly PipelineDefinition[];
  /** By `name@version` or `name@alias`. */
  readonly pipelines: Map<string, Promise<KnownDefinition>>;
}

/** The part of the server's context that plans read. */
export type PlanCtx = CheckCtx & Pick<Ctx, 'fleet' | 'validator' | 'media' | 'ownMedia' | 'definitions'>;

export interface PlannedUnit {
  readonly step: CompiledStep;
  /** JSON Pointer of the step in its definition. */
  readonly pointer: string;
  /** Null = known only during the run. */
  readonly input: JsonObject | null;
}

// What something costs, in nano-USD, as long as no input has to be corrected and no process of Capstan is killed:
// - least: the cheapest instances take the calls, instances that report their own costs charge nothing, and optional
//   steps do not happen;
// - expected: the chosen instances take the calls, with the average time of such calls so far, or with their average
//   cost where an instance reports its own costs;
// - worst: every delivery that the retries allow is lost and costs its whole reservation (one that is answered with an
//   error costs its time at most, one that was not sent costs nothing);
// - limit: the worst, with the maximum number of items where the number is unknown; only an instance that declares too
//   low a worst case exceeds it.
// The worst cost of a child run is its own ceiling.

export interface CostRange {
  readonly least: bigint;
  readonly expected: bigint;
  readonly worst: bigint;
  readonly limit: bigint;
}

export const noCost: CostRange = { least: 0n, expected: 0n, worst: 0n, limit: 0n };

/** The forecast of an execution that makes no call or does not happen. */
export const nobody = {
  chosen: null,
  candidates: [],
  cost: noCost,
  durationMs: 0,
  atOnce: null,
  places: [],
  findings: [],
};

export function addCosts(one: CostRange, other: CostRange): CostRange {
  return {
    least: one.least + other.least,
    expected: one.expected + other.expected,
    worst: one.worst + other.worst,
    limit: one.limit + other.limit,
  };
}

export function multiplyCost({ least, expected, worst, limit }: CostRange, times: number): CostRange {
  const n = BigInt(times);
  return { least: least * n, expected: expected * n, worst: worst * n, limit: limit * n };
}

/** Caps the cost of a child run by its own ceiling. @param ceilingUsd null = none */
export function capCost(cost: CostRange, ceilingUsd: number | null): CostRange {
  if (ceilingUsd === null) return cost;
  const ceiling = toNanoUsd(ceilingUsd);
  const cap = ceiling > cost.expected ? ceiling : cost.expected;
  const lower = (nano: bigint): bigint => (nano < cap ? nano : cap);
  return { ...cost, worst: lower(cost.worst), limit: lower(cost.limit) };
}

export function showCost({ least, expected, worst }: CostRange): PlannedCost {
  return { min: fromNanoUsd(least), expected: fromNanoUsd(expected), worst: fromNanoUsd(worst) };
}

/** The failure of a call that no instance can take, as the call itself would report it. */
type Trouble = Omit<NoClaim, 'retryAfterMs'>;

interface CallForecast extends Forecast {
  readonly trouble: Trouble | null;
}

interface PlannedCall {
  readonly route: RouteConstraints;
  /** The most that its retries allow. */
  readonly attempts: number;
  /** Null = unknown before the run. */
  readonly input: JsonObject | null;
}

export async function forecastCall(
  { ctx, projectId, calls, headroom, prices }: PlanContext,
  { route, attempts, input }: PlannedCall,
): Promise<CallForecast> {
  const fleet = ctx.fleet.seenBy(projectId);
  const known = fleet.of(route.capability);
  const refusals = input === null ? noRefusals : await findRefusals(ctx.validator, known.instances, input);
  const turn = turnFor();
  if (turn !== null) await turn;
  const costOf = input === null ? null : createCostOfInput(input, { meter: prices, note: noteWork });
  const { ruledOut: refused } = refusals;
  const bounds = boundsOf(known, costOf, { ...route, projectId, ruledOut: refused, nowMs: fleet.nowMs() });
  const ruledOut = [...refusals.ruledOut.keys()];
  const keyOf = input === null ? null : createKeyOfInput(input, noteWork);
  const caller = { route, projectId, keyOf };
  const loads = [...(findResidency(known, caller, fleet.nowMs())?.values() ?? [])].map((one) => one.key);
  const key = JSON.stringify([route, attempts, ruledOut, refusals.errors, [...(bounds ?? [])], loads]);
  const forecast = calls.get(key) ?? priceCall(fleet, { ...caller, attempts, refusals, headroom, bounds });
  calls.set(key, forecast);
  return forecast;
}

function priceCall(
  fleet: ProjectFleet,
  call: Omit<PlannedCall, 'input'> &
    Pick<ChoicePreview['request'], 'bounds'> & {
      readonly refusals: Refusals;
      readonly headroom: Headroom;
      readonly projectId: string;
      readonly keyOf: KeyOfInput | null;
    },
): CallForecast {
  const { route, attempts, refusals, headroom, bounds, projectId, keyOf } = call;
  const within = withinRun(headroom, route);
  const { ruledOut } = refusals;
  const preview = previewChoice(fleet, route, { ...within, ruledOut, bounds, projectId, keyOf });
  const { request, decision } = preview;
  const { chosen, reason, candidates } = decision;
  const { best } = preview.choice;
  const { instances } = fleet.of(route.capability);
  const prices = findPriceRange(instances, request);
  const whenLoaded = loadedRequest(request);
  const roomUsd = within.hidesHeadroom ? (route.runCeilingUsd ?? null) : within.headroomUsd;
  const worst = (prices?.mostNano ?? 0n) * BigInt(attempts);
  const loaded = whenLoaded === request ? prices : findPriceRange(instances, whenLoaded);
  const least = toNanoUsd(loaded?.leastUsd ?? 0);
  const expected = toNanoUsd(
    best === null ? (prices?.likelyUsd ?? 0) : likelyCost(best.instance, request, best.costUsd),
  );
  return {
    chosen,
    reason,
    candidates,
    cost: prices === null ? noCost : { least, expected, worst, limit: worst },
    durationMs: best === null ? request.priorMs : durationOf(best, request.priorMs),
    atOnce: best === null ? null : countAtOnce(best.instance, request, { costUsd: best.costUsd, roomUsd }),
    places: toPlaces(preview.choice, request),
    ...(best === null ? {} : findLoadCost(best, whenLoaded, expected)),
    trouble: best === null ? findTrouble(preview, refusals) : null,
  };
}

type AskedChoice = ChoicePreview['request'];

/** As if each key were loaded everywhere. */
function loadedRequest(request: AskedChoice): AskedChoice {
  const { residency } = request;
  if (residency === undefined) return request;
  const loaded = [...residency].map(([id, one]) => [id, { ...one, isResident: true }] as const);
  return { ...request, residency: new Map(loaded) };
}

/** @param nano what it is expected to cost */
function findLoadCost(
  { instance, residency }: RankedInstance,
  whenLoaded: AskedChoice,
  nano: bigint,
): Pick<Forecast, 'load'> {
  if (residency === undefined) return {};
  const warm = toNanoUsd(likelyCost(instance, whenLoaded, expectedCost(instance, whenLoaded)));
  return nano > warm ? { load: { key: residency.key, nano: nano - warm } } : {};
}

function durationOf({ instance, residency }: RankedInstance, priorMs: number): number {
  return residency === undefined ? (instance.duration_ms ?? priorMs) : ownMs(residency);
}

/** What the call takes there, and what it loads first. */
function timesOn(ranked: RankedInstance, priorMs: number): Pick<CallPlace, 'durationMs' | 'load'> {
  const { instance, residency } = ranked;
  if (residency === undefined) return { durationMs: durationOf(ranked, priorMs) };
  const { key, isResident, warmMs, loadMs } = residency;
  const listed = instance.resident ?? [];
  const resident = isResident ? listed : listed.filter((one) => one !== key);
  return { durationMs: warmMs, load: { key, ms: loadMs, resident, most: instance.max_resident ?? 1 } };
}

/** Instances that count: those that are up, unless none is. Beyond those that the choice shows, all are like them. */
function toPlaces({ shown, possible }: Choice, { capability, priorMs }: AskedChoice): CallPlace[] {
  const up = shown.filter(({ instance }) => instance.state === 'up');
  const places = (up.length === 0 ? shown : up).map((ranked) => ({
    instanceId: ranked.instance.instance_id,
    slots: slotsOf(ranked.instance),
    ahead: callsAhead(ranked.instance, ranked.instance.held + ranked.instance.reported_extra),
    ...timesOn(ranked, priorMs),
  }));
  const [first] = places;
  const more = possible - shown.length;
  if (first === undefined || more <= 0) return places;
  const { load, ...others } = first;
  const durationMs = first.durationMs + (load?.ms ?? 0); // each of them loads by itself
  return [
    ...places,
    { ...others, instanceId: `others of ${capability}`, durationMs, slots: first.slots * more },
  ];
}

/** A call is bounded by the run's ceiling and by the rest of the day's budget. */
function withinRun(
  { headroomUsd, hidesHeadroom }: Headroom,
  { runCeilingUsd = null }: RouteConstraints,
): Headroom {
  const least = lowestCeiling(headroomUsd, runCeilingUsd);
  return { headroomUsd: least, hidesHeadroom: hidesHeadroom === true && least !== runCeilingUsd };
}

function findTrouble(preview: ChoicePreview, { errors }: Refusals): Trouble {
  const miss = explainMiss('', preview, { refusals: errors, shortage: null });
  if (!preview.choice.verdicts.has('over_budget')) return miss;
  return { error: { code: 'budget_exhausted', message: miss.decision.reason }, isFinal: false };
}
