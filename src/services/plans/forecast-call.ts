/**
 * Who would take a call now, and what it would take and cost: the router's own choice, without a claim. Calls that ask
 * for the same and are refused by the same instances are looked at once, so that a thousand steps are cheap.
 */

import type { Candidate } from '../../contracts/decision.ts';
import type { ErrorCode } from '../../contracts/errors.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { explainNoClaim } from '../../core/call/no-claim.ts';
import { toNanoUsd } from '../../core/money/nano-usd.ts';
import { likelyCost, lowestCeiling } from '../../core/routing/estimate.ts';
import type { Headroom } from '../../core/routing/headroom.ts';
import { findPriceRange } from '../../core/routing/price-range.ts';
import type { RouteConstraints } from '../../core/routing/types.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import type { FleetPoller } from '../routing/fleet/fleet-poller.ts';
import {
  type ChoicePreview,
  findRefusals,
  noRefusals,
  previewChoice,
  type Refusals,
} from '../routing/preview-choice.ts';
import { type CostRange, noCost } from './cost-range.ts';

/** Why nobody could take a call, as the call itself would say it. */
export interface Trouble {
  readonly code: ErrorCode;
  readonly message: string;
  /** Time does not cure it: the step would fail. */
  readonly isFinal: boolean;
}

export interface CallForecast {
  readonly chosen: string | null;
  readonly reason: string;
  readonly candidates: readonly Candidate[];
  readonly cost: CostRange;
  readonly durationMs: number;
  readonly trouble: Trouble | null;
}

export interface PlannedCall {
  readonly route: RouteConstraints;
  /** Deliveries after the first. */
  readonly retryMax: number;
  /** Null = not known before the run. */
  readonly input: JsonObject | null;
}

export type ForecastCall = (call: PlannedCall) => Promise<CallForecast>;

export interface CallDependencies {
  readonly fleet: Pick<FleetPoller, 'of' | 'nowMs'>;
  readonly validator: Pick<SchemaValidator, 'validateInput'>;
}

/** For one plan. */
export function createForecastCall({ fleet, validator }: CallDependencies, headroom: Headroom): ForecastCall {
  const known = new Map<string, CallForecast>();
  return async ({ route, retryMax, input }) => {
    const { instances } = fleet.of(route.capability);
    const refusals = input === null ? noRefusals : await findRefusals(validator, instances, input);
    const key = JSON.stringify([route, retryMax, [...refusals.ruledOut.keys()], refusals.errors]);
    const forecast = known.get(key) ?? forecastCall(fleet, { route, retryMax, refusals, headroom });
    known.set(key, forecast);
    return forecast;
  };
}

function forecastCall(
  fleet: CallDependencies['fleet'],
  {
    route,
    retryMax,
    refusals,
    headroom,
  }: Omit<PlannedCall, 'input'> & { readonly refusals: Refusals; readonly headroom: Headroom },
): CallForecast {
  const { ruledOut } = refusals;
  const preview = previewChoice(fleet, route, { ...withinRun(headroom, route), ruledOut });
  const { request, choice, decision } = preview;
  const { chosen, reason, candidates } = decision;
  const prices = findPriceRange(fleet.of(route.capability).instances, request);
  const worst = (prices?.mostNano ?? 0n) * BigInt(1 + retryMax);
  const { best } = choice;
  const least = toNanoUsd(prices?.leastUsd ?? 0);
  const expected = toNanoUsd(
    best === null ? (prices?.likelyUsd ?? 0) : likelyCost(best.instance, request, best.costUsd),
  );
  return {
    chosen,
    reason,
    candidates,
    cost: prices === null ? noCost : { least, expected, worst, limit: worst },
    durationMs: best?.instance.duration_ms ?? request.priorMs,
    trouble: best === null ? findTrouble(preview, refusals) : null,
  };
}

/** What a run may spend in all bounds each of its calls, like what is left of the day. */
function withinRun(
  { headroomUsd, hidesHeadroom }: Headroom,
  { runCeilingUsd = null }: RouteConstraints,
): Headroom {
  const least = lowestCeiling(headroomUsd, runCeilingUsd);
  return { headroomUsd: least, hidesHeadroom: hidesHeadroom === true && least !== runCeilingUsd };
}

function findTrouble({ request, choice, decision }: ChoicePreview, { errors }: Refusals): Trouble {
  if (choice.verdicts.has('over_budget')) {
    return { code: 'budget_exhausted', message: decision.reason, isFinal: false };
  }
  const { error, isFinal } = explainNoClaim({
    choice,
    reason: decision.reason,
    refusals: errors,
    shortage: null,
    nowMs: request.nowMs,
  });
  return { ...error, isFinal };
}
