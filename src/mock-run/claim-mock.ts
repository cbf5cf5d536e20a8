/** Finds an instance for a local call by the router's own rules, and holds a slot and the money for it. */
import type { ErrorCode } from '../contracts/errors.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import type { CancelSignal } from '../core/cancellation.ts';
import { worstCase } from '../core/money/price.ts';
import { choose } from '../core/routing/choose.ts';
import { enforcedTimeout, priorDuration } from '../core/routing/estimate.ts';
import { explainChoice } from '../core/routing/explain.ts';
import type { Choice, InstanceSnapshot, RouteRequest, RuledOut } from '../core/routing/types.ts';
import type { LocalContext } from './local-context.ts';
import type { Shortage } from './run-budget.ts';

export type RouteWish = Pick<
  RouteRequest,
  'capability' | 'versionRange' | 'tags' | 'priority' | 'ceilingUsd' | 'timeoutMs'
>;

export type LocalClaim =
  | {
      readonly kind: 'claimed';
      readonly instance: InstanceSnapshot;
      readonly reserved: bigint;
      readonly timeoutMs: number;
    }
  | {
      readonly kind: 'none';
      readonly error: Failure;
      /** Time does not cure it. */
      readonly isFinal: boolean;
    };

/** As long as a router waits for a slot before it is asked again. */
const longestWaitMs = 2_000;

/** @param tried instances that already failed this call */
export async function claimMock(
  context: LocalContext,
  wish: RouteWish,
  input: JsonObject,
  tried: ReadonlySet<string>,
  stop: CancelSignal,
): Promise<LocalClaim> {
  const { time, fleet } = context.world;
  const deadline = time.now() + longestWaitMs;
  for (;;) {
    const end = tryClaim(context, wish, input, tried);
    if (end.kind === 'claimed' || end.error.code !== 'overloaded' || stop.aborted) return end;
    if (time.now() >= deadline) return end;
    await fleet.waitForRelease(wish.capability, deadline - time.now(), stop);
  }
}

interface Refusal {
  readonly pointer: string;
  readonly message: string;
}

interface Search {
  readonly ruledOut: Map<string, RuledOut>;
  readonly refusals: Refusal[];
  shortage: Shortage | null;
}

function tryClaim(
  context: LocalContext,
  wish: RouteWish,
  input: JsonObject,
  tried: ReadonlySet<string>,
): LocalClaim {
  const { fleet, time, seed } = context.world;
  const instances = fleet.instances(wish.capability);
  const ruledOut = new Map<string, RuledOut>([...tried].map((id) => [id, 'already_tried']));
  const search: Search = { ruledOut, refusals: [], shortage: null };
  for (;;) {
    const { shortage } = search;
    const headroomUsd = shortage === null ? null : headroomOf(shortage);
    const known = { nowMs: time.now(), priorMs: priorDuration(instances), busy: new Set<string>() };
    const request: RouteRequest = { ...wish, ...known, headroomUsd, ruledOut: search.ruledOut };
    const choice = choose(instances, request, seed);
    if (choice.best === null || choice.best.isFull) return explainNone(request, choice, search);
    const { instance } = choice.best;
    const faults = fleet.findInputFaults(wish.capability)(input);
    if (faults.length > 0) {
      search.ruledOut.set(instance.instance_id, 'input_invalid');
      search.refusals.push(...faults.map(({ pointer, message }) => ({ pointer, message })));
      continue;
    }
    const timeoutMs = enforcedTimeout(instance, request);
    const reserved = worstCase(instance, timeoutMs);
    search.shortage = context.budget.reserve(reserved);
    if (search.shortage !== null) continue;
    fleet.take(instance);
    return { kind: 'claimed', instance, reserved, timeoutMs };
  }
}

function headroomOf({ limitUsd, spentUsd, reservedUsd }: Shortage): number {
  return Math.max(0, limitUsd - spentUsd - reservedUsd);
}

function explainNone(request: RouteRequest, choice: Choice, search: Search): LocalClaim {
  const { best, verdicts, minimumUsd } = choice;
  const { refusals, shortage } = search;
  const none = (code: ErrorCode, isFinal: boolean, message: string, details?: Json): LocalClaim => ({
    kind: 'none',
    isFinal,
    error: { code, message, ...(details === undefined ? {} : { details }) },
  });
  const { reason } = explainChoice('', request, choice, false);
  if (best !== null) return none('overloaded', false, reason);
  if (verdicts.has('input_invalid')) {
    const findings = refusals.map(({ pointer, message }) => `${pointer || '/'} ${message}`);
    const message = `the input does not match the input schema: ${[...new Set(findings)].join('; ')}`;
    return none('input_invalid', true, message, { errors: refusals.map((one) => ({ ...one })) });
  }
  if (verdicts.has('over_budget') && shortage !== null)
    return explainShortage(shortage, minimumUsd ?? 0, none);
  if (verdicts.has('over_ceiling')) {
    return none('ceiling_too_low', true, reason, { minimum_usd: minimumUsd });
  }
  return none('no_instance', false, reason);
}

/** Once calls under way have settled for nothing it would fit, or it never does. */
function explainShortage(
  { limitUsd, spentUsd, reservedUsd }: Shortage,
  minimumUsd: number,
  none: (code: ErrorCode, isFinal: boolean, message: string, details: Json) => LocalClaim,
): LocalClaim {
  const wouldFit = spentUsd + minimumUsd <= limitUsd;
  const message = `the budget of the run has no room for ${minimumUsd} USD: limit ${limitUsd}, spent ${spentUsd}, reserved ${reservedUsd}`;
  const details = { scope: 'run', limit_usd: limitUsd, spent_usd: spentUsd, reserved_usd: reservedUsd };
  return none(wouldFit ? 'budget_reserved' : 'budget_exhausted', !wouldFit, message, {
    ...details,
    minimum_usd: minimumUsd,
  });
}
