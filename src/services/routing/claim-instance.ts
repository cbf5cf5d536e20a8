/**
 * Finds an instance for a call and claims a slot on it.
 *
 * The best instance is waited for when it is full, and any instance when there is none, up to two seconds: a
 * batch call stays on the free queue, and the price of waiting is in the score. Callers of one capability wait in line, so that a released slot wakes
 * one of them and not all.
 */
import type { Decision } from '../../contracts/decision.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { worstCase } from '../../core/money/price.ts';
import { choose } from '../../core/routing/choose.ts';
import { explainChoice } from '../../core/routing/explain.ts';
import type { Choice, RankedInstance, RouteRequest } from '../../core/routing/types.ts';
import { type Claim, type ClaimResult, claimAttempt, type StepKey, settleAttempt } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { newId, newToken } from '../ids.ts';
import type { InstanceFeed } from '../registry/instance-feed.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import type { WaitingLine } from './waiting-line.ts';

export interface CallTarget {
  readonly projectId: string;
  /** The same for every attempt; sent as Idempotency-Key. */
  readonly key: string;
  readonly step: StepKey | null;
  readonly route: Omit<RouteRequest, 'tried' | 'refusing'>;
  readonly input: JsonObject;
  /** Sent at most once, so that the claim must survive a crash of the database. */
  readonly isAtMostOnce: boolean;
  /** How long it may wait for a slot, or for an instance to appear. */
  readonly maxWaitMs: number;
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
  | {
      readonly kind: 'none';
      readonly decision: Decision;
      readonly choice: Choice;
      /** What the specs of instances say against the input. */
      readonly refusals: readonly SchemaError[];
    };

export type SchemaError = { readonly pointer: string; readonly message: string };

export interface ClaimDependencies {
  readonly db: Db;
  readonly feed: InstanceFeed;
  readonly line: WaitingLine;
  readonly registry: Pick<RegistryService, 'vet'>;
  readonly validator: Pick<SchemaValidator, 'validateInput'>;
  readonly leaseMs: number;
}

/** @param tried instances that already failed this call; grows by the caller */
export const claimInstance = async (
  dependencies: ClaimDependencies,
  target: CallTarget,
  tried: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ClaimEnd> => {
  const { feed, line } = dependencies;
  const deadline = performance.now() + target.maxWaitMs;
  const search: Search = {
    seed: seedOf(target.key),
    refusing: new Set(),
    refusals: [],
    busy: new Set(),
    lost: new Set(),
    vetted: new Set(),
  };
  const first = await tryClaim(dependencies, target, tried, search);
  if (!isWorthWaiting(first, tried)) return first;
  return line.enter(
    target.route.capability,
    deadline,
    async () => {
      let last: ClaimEnd = first;
      while (performance.now() < deadline && !signal.aborted) {
        search.lost.clear();
        search.busy.clear();
        last = await tryClaim(dependencies, target, tried, search);
        if (!isWorthWaiting(last, tried)) return last;
        await feed.waitForRelease(target.route.capability, deadline - performance.now(), signal);
      }
      return last;
    },
    first,
  );
};

/** A slot may become free, or an instance appear; a refused input or price stays refused. */
const isWorthWaiting = (end: ClaimEnd, tried: ReadonlySet<string>): boolean => {
  if (end.kind !== 'none') return false;
  if (end.choice.ranked.length > 0) return true;
  const isFinal = end.choice.excluded.some(
    ({ verdict }) => verdict === 'input_invalid' || verdict === 'over_ceiling',
  );
  return !isFinal && tried.size === 0;
};

interface Search {
  /** Instances whose spec refuses the input, and why. */
  readonly refusing: Set<string>;
  readonly refusals: SchemaError[];
  /** Instances that seemed idle and are not. */
  readonly busy: Set<string>;
  /** Instances whose last slot another router took a moment ago. */
  readonly lost: Set<string>;
  /** Instances whose spec was read for this search. */
  readonly vetted: Set<string>;
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
      return { kind: 'none', decision, choice, refusals: search.refusals };
    }
    if (!(await isFitting(dependencies, best.instance, target.input, search))) {
      choice = chooseNow(dependencies, target, tried, search);
      continue;
    }
    const end = await claimOne(dependencies, target, best, choice, decisionId, search.lost);
    if (end !== null) return end;
    // No longer idle: it is chosen again as what it is. Not even a slot free: somebody was faster.
    (best.tier === 0 ? search.busy : search.lost).add(best.instance.instance_id);
    choice = chooseNow(dependencies, target, tried, search);
  }
};

/**
 * Whether the instance's own spec is known and accepts the input. A spec that is not known yet is read now, and
 * then the choice is made again with what was learnt.
 */
const isFitting = async (
  { registry, validator, feed }: ClaimDependencies,
  { instance_id, name, version, spec_digest }: RankedInstance['instance'],
  input: JsonObject,
  search: Search,
): Promise<boolean> => {
  if (spec_digest === null) {
    const isKnown = !search.vetted.has(instance_id) && (await registry.vet(instance_id)) === 'usable';
    search.vetted.add(instance_id);
    if (isKnown) await feed.refresh();
    else search.lost.add(instance_id);
    return false;
  }
  const result = await validator.validateInput(name, version, spec_digest, input);
  if (result.ok) return true;
  search.refusing.add(instance_id);
  search.refusals.push(...result.errors);
  return false;
};

const chooseNow = (
  { feed }: ClaimDependencies,
  { route }: CallTarget,
  tried: ReadonlySet<string>,
  { refusing, busy, seed }: Search,
): Choice => {
  const known = feed.candidates(route.capability);
  const instances =
    busy.size === 0
      ? known
      : known.map((one) => (busy.has(one.instance_id) ? { ...one, held: Math.max(1, one.held) } : one));
  return choose(instances, { ...route, tried, refusing }, seed);
};

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
    durable: target.isAtMostOnce,
  };
  feed.noteClaim(instance.instance_id);
  const result = await claimAttempt(db, claim).catch((error: unknown) => {
    feed.noteRelease(instance.instance_id);
    void releaseUnsent(db, claim);
    throw error;
  });
  if (result.outcome === 'claimed') {
    return { kind: 'claimed', claim, instance, number: result.number, counted: result.counted, timeoutMs };
  }
  feed.noteRelease(instance.instance_id);
  if (result.outcome === 'answered') return { kind: 'answered', output: result.output };
  return result.outcome === 'closed' ? { kind: 'closed' } : null;
};

/** The claim may have been made although its answer was lost; then it is given back, for nothing was sent. */
const releaseUnsent = (db: Db, { attempt_id, token }: Claim): Promise<unknown> =>
  settleAttempt(db, {
    ...{ attempt_id, token, state: 'released', ambiguity: 'not_sent', counted: false },
    ...{ settled_nano: 0n, certainty: 'exact', duration_ms: 0, output: undefined, event_data: {} },
    ...{ step_state: 'retrying', error: { code: 'unavailable', message: 'the claim was not answered' } },
  }).catch(() => undefined);

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
