/**
 * Finds an instance for a call and claims a slot on it.
 *
 * The best instance is waited for when it is full, up to two seconds: a batch call stays on the free queue, and
 * the price of waiting is in the score. Callers of one capability wait in line, so that a released slot wakes
 * one of them and not all.
 */
import type { Decision } from '../../contracts/decision.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { worstCase } from '../../core/money/price.ts';
import { choose } from '../../core/routing/choose.ts';
import { explainChoice } from '../../core/routing/explain.ts';
import type { Choice, RankedInstance, RouteRequest } from '../../core/routing/types.ts';
import { type Claim, type ClaimResult, claimAttempt, type StepKey } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { newId, newToken } from '../ids.ts';
import type { InstanceFeed } from '../registry/instance-feed.ts';
import type { InputCheck } from './input-check.ts';
import type { WaitingLine } from './waiting-line.ts';

export interface CallTarget {
  readonly projectId: string;
  /** The same for every attempt; sent as Idempotency-Key. */
  readonly key: string;
  readonly step: StepKey | null;
  readonly route: Omit<RouteRequest, 'tried' | 'refusing'>;
  readonly input: JsonObject;
}

export interface Claimed {
  readonly kind: 'claimed';
  readonly claim: Claim;
  readonly instance: RankedInstance['instance'];
  readonly number: number;
  readonly counted: number;
  readonly timeoutMs: number;
}

export type ClaimEnd =
  | Claimed
  | { readonly kind: 'answered'; readonly output: ClaimResult['output'] }
  | { readonly kind: 'closed' }
  /** Nothing could take it now; the decision says why. */
  | { readonly kind: 'none'; readonly decision: Decision; readonly choice: Choice };

export interface ClaimDependencies {
  readonly db: Db;
  readonly feed: InstanceFeed;
  readonly line: WaitingLine;
  readonly checkInput: InputCheck;
  readonly leaseMs: number;
  readonly maxWaitMs: number;
}

/** @param tried instances that already failed this call; grows by the caller */
export const claimInstance = async (
  dependencies: ClaimDependencies,
  target: CallTarget,
  tried: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ClaimEnd> => {
  const { feed, line, maxWaitMs } = dependencies;
  const deadline = performance.now() + maxWaitMs;
  const search = { refusing: new Set<string>(), lost: new Set<string>(), seed: seedOf(target.key) };
  const first = await tryClaim(dependencies, target, tried, search);
  if (first.kind !== 'none' || first.choice.ranked.length === 0) return first;
  return line.enter(
    target.route.capability,
    deadline,
    async () => {
      let last: ClaimEnd = first;
      while (performance.now() < deadline && !signal.aborted) {
        search.lost.clear();
        last = await tryClaim(dependencies, target, tried, search);
        if (last.kind !== 'none' || last.choice.ranked.length === 0) return last;
        await feed.waitForRelease(target.route.capability, deadline - performance.now(), signal);
      }
      return last;
    },
    first,
  );
};

interface Search {
  readonly refusing: Set<string>;
  /** Instances whose last slot another router took a moment ago. */
  readonly lost: Set<string>;
  readonly seed: number;
}

/** One pass: candidates in order until one is claimed or the best of the rest is full. */
const tryClaim = async (
  dependencies: ClaimDependencies,
  target: CallTarget,
  tried: ReadonlySet<string>,
  search: Search,
): Promise<ClaimEnd> => {
  const decisionId = newId('decision');
  const { route } = target;
  let choice = chooseNow(dependencies, target, tried, search);
  for (;;) {
    const best = choice.ranked.find(({ instance }) => !search.lost.has(instance.instance_id));
    if (best === undefined || best.isFull) {
      const decision = explainChoice(decisionId, route.capability, choice, null, search.lost);
      return { kind: 'none', decision, choice };
    }
    const check = await dependencies.checkInput(best.instance, target.input);
    if (check !== 'accepted') {
      (check === 'refused' ? search.refusing : search.lost).add(best.instance.instance_id);
      choice = chooseNow(dependencies, target, tried, search);
      continue;
    }
    const end = await claimOne(dependencies, target, best, choice, decisionId, search.lost);
    if (end !== null) return end;
    search.lost.add(best.instance.instance_id);
  }
};

const chooseNow = (
  { feed }: ClaimDependencies,
  { route }: CallTarget,
  tried: ReadonlySet<string>,
  { refusing, seed }: Search,
): Choice => choose(feed.candidates(route.capability), { ...route, tried, refusing }, seed);

/** Null when the slot was lost to somebody faster. */
const claimOne = async (
  { db, feed, leaseMs }: ClaimDependencies,
  target: CallTarget,
  best: RankedInstance,
  choice: Choice,
  decisionId: string,
  lost: ReadonlySet<string>,
): Promise<ClaimEnd | null> => {
  const { instance } = best;
  const timeoutMs = enforcedTimeout(target.route, instance);
  const reserved = worstCase(instance, timeoutMs);
  const decision = explainChoice(decisionId, target.route.capability, choice, best, lost);
  const claim: Claim = {
    attempt_id: newId('attempt'),
    token: newToken(),
    key: target.key,
    project_id: target.projectId,
    step: target.step,
    capability: target.route.capability,
    instance_id: instance.instance_id,
    must_be_idle: best.tier === 0,
    lease_ms: leaseMs,
    reserved_nano: reserved,
    decision: { ...decision, reserved_usd: fromNanoUsd(reserved) },
  };
  feed.noteClaim(instance.instance_id);
  const result = await claimAttempt(db, claim).catch((error: unknown) => {
    feed.noteRelease(instance.instance_id);
    throw error;
  });
  if (result.outcome === 'claimed') {
    return { kind: 'claimed', claim, instance, number: result.number, counted: result.counted, timeoutMs };
  }
  feed.noteRelease(instance.instance_id);
  if (result.outcome === 'answered') return { kind: 'answered', output: result.output };
  return result.outcome === 'closed' ? { kind: 'closed' } : null;
};

/** A ceiling on a rate per second is a limit on time, so that it is a true ceiling. */
const enforcedTimeout = (
  { timeoutMs, ceilingUsd }: CallTarget['route'],
  { cost_type, rate_usd }: RankedInstance['instance'],
): number =>
  ceilingUsd === null || cost_type !== 'per_second' || rate_usd === 0
    ? timeoutMs
    : Math.max(1, Math.min(timeoutMs, Math.floor((ceilingUsd / rate_usd) * 1_000)));

const seedOf = (key: string): number => {
  let seed = 0;
  for (let at = 0; at < key.length; at++) seed = (Math.imul(seed, 31) + key.charCodeAt(at)) | 0;
  return seed;
};
