/**
 * Finds an instance for a call and claims a slot on it.
 *
 * A call waits up to two seconds for the best instance when it is full, or for any instance when there is none: a batch
 * call stays on the free queue, and the price of waiting is in the score. Callers of one capability queue, so that a
 * released slot wakes one of them and not all. A step's call that finds no slot then waits in line, as a row; it takes
 * no slot before earlier ones in the line (N4).
 */

import {
  type Chosen,
  ClaimSearch,
  isRefusal,
  type NothingFound,
  seedOf,
} from '@capstan/core/call/claim-search';
import { explainMiss, isWorthWaiting, timeInLine } from '@capstan/core/call/no-claim';
import type { ClaimEnd } from '@capstan/core/call/types';
import type { Json } from '@capstan/core/contracts/primitives';
import { createCostOfInput } from '@capstan/core/money/cost-expressions';
import { createKeyOfInput } from '@capstan/core/residency/affinity-key';
import type { NativeCost } from '@capstan/core/routing/call-bound';
import {
  ableFor,
  anySlot,
  lineOf,
  rankOf,
  refusalOf,
  type SlotRefusal,
} from '@capstan/core/routing/call-line';
import { halfOpenTier } from '@capstan/core/routing/ranking';
import type { RankedInstance } from '@capstan/core/routing/types';
import type { Ctx } from '../../context.ts';
import type { CallRequest, Claimed } from '../../parts/calls/routed-call.ts';
import { noteWork, turnFor } from '../../parts/expression-work.ts';
import { findInputErrors, pickInput } from '../../parts/fleet/specs.ts';
import { newId } from '../../parts/ids.ts';
import { vetInstance } from '../registry/vetting.ts';
import { type ClaimBestEnd, claimBest, isDueTrial } from './reservation.ts';

type Found = Exclude<ClaimEnd<Claimed>, { kind: 'none' }>;
type SearchEnd = Found | NothingFound;

/** @param tried instances that already failed this call */
export async function claimInstance(
  ctx: Ctx,
  target: CallRequest,
  tried: ReadonlySet<string>,
): Promise<ClaimEnd<Claimed>> {
  const { waitQueue } = ctx;
  const { capability } = target.route;
  const scope = ctx.fleet.seenBy(target.projectId).scopeOf(capability);
  const beganAt = performance.now();
  const deadline = beganAt + target.maxWaitMs;
  const turn = turnFor();
  if (turn !== null) await turn;
  const search = new ClaimSearch({
    seed: seedOf(target.key),
    route: target.route,
    tried,
    costOf: createCostOfInput(target.input, { note: noteWork }),
    native: nativeCostOf(target),
    projectId: target.projectId,
    keyOf: createKeyOfInput(target.input, noteWork),
  });
  const key = search.keyIn(ctx.fleet.seenBy(target.projectId).of(capability));
  const line = lineOf({ ...target.route, scope });
  const own = { target, search, key, line, queue: queueOf(line, key), beganAt, deadline };
  const inLine = countInLine(ctx, target);
  if (inLine > 0 && target.inLine?.isCalled === false) {
    return toClaimEnd(ctx, own, lookOnceMore(ctx, own, inLine)); // N4
  }
  const isOutside = target.step === null;
  const first =
    inLine > 0 && isOutside // it takes a slot that the line leaves free
      ? lookOnceMore(ctx, own, inLine)
      : await searchInstance(ctx, own, waitQueue.count(own.queue));
  if (!isHopeful(first, tried)) return toClaimEnd(ctx, own, first);
  const place = { queue: own.queue, priority: target.route.priority, deadline };
  const { result, ahead } = await waitQueue.enter(place, () => waitAndSearch(ctx, { ...own, tried }));
  const last = result ?? lookOnceMore(ctx, own, ahead + countInLine(ctx, target));
  const waitedMs = first.choice.best === null ? 0 : performance.now() - beganAt;
  return { ...toClaimEnd(ctx, own, last), waitedMs };
}

/** The cost for instances that get the input in the client's own protocol. */
function nativeCostOf({ forms }: CallRequest): NativeCost | undefined {
  if (forms === undefined) return undefined;
  return { protocol: forms.protocol, costOf: createCostOfInput(forms.native, { note: noteWork }) };
}

/** Calls of steps in the line of this call's route that go before it. */
function countInLine({ fleet }: Ctx, { projectId, route }: CallRequest): number {
  if (!fleet.hasLines()) return 0;
  const scope = fleet.seenBy(projectId).scopeOf(route.capability);
  return fleet.inLine(lineOf({ ...route, scope }), rankOf(route.priority));
}

/** Chooses without a claim, so that a call that cannot have a slot reports the current state. */
function lookOnceMore({ fleet }: Ctx, { target, search }: OwnSearch, waiting: number): NothingFound {
  search.forgetMoment();
  return { kind: 'none', ...search.choose(fleet.seenBy(target.projectId), { waiting }) };
}

function isHopeful(end: SearchEnd, tried: ReadonlySet<string>): end is NothingFound {
  return end.kind === 'none' && isWorthWaiting(end.choice, tried);
}

interface OwnSearch {
  readonly target: CallRequest;
  readonly search: ClaimSearch;
  /** Of what the call needs loaded; null: nothing. */
  readonly key: string | null;
  /** Until when the call itself waits for a slot, on the clock of `performance.now()`. */
  readonly deadline: number;
}

interface HopefulSearch extends OwnSearch {
  /** On the clock of `performance.now()`. */
  readonly beganAt: number;
  readonly line: string;
  readonly queue: string;
  readonly tried: ReadonlySet<string>;
}

/** A call that waits repeats that after this time. */
const wantAgainMs = 500;

/** First in its queue: it searches again whenever a slot may be free. @returns null when its time was over */
async function waitAndSearch(ctx: Ctx, hopeful: HopefulSearch): Promise<SearchEnd | null> {
  const { target, search, key, line, queue, tried, beganAt, deadline } = hopeful;
  const { fleet, waitQueue, slotLeases } = ctx;
  const { signal, route } = target;
  const { capability, priority } = route;
  const wish = { capability, line: `${line} ${priority}`, key, sinceMs: beganAt };
  while (performance.now() < deadline && !signal.aborted) {
    if ((await target.isHeld?.()) === true) return null; // C9
    search.forgetMoment();
    const end = await searchInstance(ctx, hopeful, waitQueue.count(queue) - 1);
    if (!isHopeful(end, tried)) return end;
    if (end.choice.best !== null) slotLeases.want(end.choice.best.instance);
    const leftMs = Math.min(deadline - performance.now(), wantAgainMs);
    await fleet.waitForRelease(wish, leftMs, signal);
  }
  return null;
}

/** One pass over the instances, without waiting. */
async function searchInstance(ctx: Ctx, own: OwnSearch, waiting: number): Promise<SearchEnd> {
  const { target, search } = own;
  const { fleet, halfOpenProbes } = ctx;
  const seen = fleet.seenBy(target.projectId);
  const { findDue } = halfOpenProbes;
  const patienceMs = patienceOf(own);
  const facts = target.isAtMostOnce ? { waiting, patienceMs } : { waiting, patienceMs, findDue };
  for (;;) {
    const chosen = search.next(seen, facts);
    if (chosen.kind === 'none') return chosen;
    if (!(await isFitting(ctx, chosen.best, own))) continue;
    const end = await (isDueTrial(chosen) ? claimTrial : claimBest)(ctx, target, chosen);
    if (!isRefusal(end)) return end;
    search.learn(chosen, end);
    if (end.kind === 'gone') await fleet.refresh();
  }
}

/** The trial begins during the claim, and is returned when the claim fails. */
async function claimTrial(ctx: Ctx, target: CallRequest, chosen: Chosen): Promise<ClaimBestEnd> {
  const { halfOpenProbes } = ctx;
  const { instance_id } = chosen.instance;
  halfOpenProbes.take(instance_id);
  let isClaimed = false;
  try {
    const end = await claimBest(ctx, target, chosen);
    isClaimed = end.kind === 'claimed';
    return end;
  } finally {
    if (!isClaimed) halfOpenProbes.giveBack(instance_id);
  }
}

/** N5: what the call would not take if it were called now. */
function findRefusal({ fleet }: Ctx, { target, search }: OwnSearch): SlotRefusal {
  const { route, projectId } = target;
  const seen = fleet.seenBy(projectId);
  const { best } = search.choose(seen, { waiting: 0, patienceMs: 0 }).choice;
  if (best?.isFull !== true) return anySlot;
  return refusalOf(best.instance, ableFor(route, seen.of(route.capability).instances, fleet.nowMs()));
}

function toClaimEnd(ctx: Ctx, own: OwnSearch, end: SearchEnd): ClaimEnd<Claimed> {
  const { target, search, key } = own;
  if (end.kind === 'claimed' && search.wrong !== undefined) return { ...end, wrong: search.wrong };
  if (end.kind !== 'none') return end;
  const { request, choice } = end;
  const { decision, error, isFinal, ...noClaim } = explainMiss(newId('decision'), end, search);
  const isOutside = target.step === null;
  const inLineMs = isOutside && noClaim.isFull === true ? timeInLine(choice, request.waiting ?? 0) : 0;
  const retryAfterMs = Math.max(noClaim.retryAfterMs, inLineMs);
  const details = { ...(error.details as object), decision } as unknown as Json;
  return {
    kind: 'none',
    ...noClaim,
    wish: { key, ...(isOutside ? anySlot : findRefusal(ctx, own)) },
    decision,
    isFinal,
    retryAfterMs,
    error: { ...error, details },
  };
}

/**
 * Whether the instance's own spec is known and accepts the input. An unknown spec is read now, and so is the health of
 * an instance whose breaker is half open; then the choice is made again with the new facts.
 */
async function isFitting(
  ctx: Ctx,
  { instance, tier }: RankedInstance,
  { target, search }: OwnSearch,
): Promise<boolean> {
  const { validator, fleet, breakers } = ctx;
  const { instance_id, spec_digest } = instance;
  const isDoubtful = spec_digest === null || tier === halfOpenTier;
  if (isDoubtful && search.noteVetting(instance_id)) {
    const isUsable = (await vetInstance(ctx, instance_id)) === 'usable';
    if (!isUsable && tier === halfOpenTier) await breakers.reopen(instance_id);
    if (isUsable) await fleet.refresh();
    else search.noteDown(instance_id);
    return false;
  }
  if (spec_digest === null) {
    search.noteDown(instance_id);
    return false;
  }
  const compiled = await validator.of(spec_digest);
  const errors = await findInputErrors(compiled, pickInput(target, instance, compiled));
  if (errors.length > 0) search.noteRefusal(instance_id, errors);
  return errors.length === 0;
}

/** W4: a step's call waits in line as long as it takes; one that was called has its slot; others wait themselves. */
function patienceOf({ target: { step, inLine }, deadline }: OwnSearch): number | undefined {
  if (inLine?.isCalled === true) return 0;
  return step !== null && inLine !== undefined ? undefined : Math.max(0, deadline - performance.now());
}

/** The callers that wait for the same slots. */
function queueOf(line: string, key: string | null): string {
  return key === null ? line : JSON.stringify([line, key]);
}
