/** One claim for a call that may come, and its way back when none comes. */
import { createClaimSearch, seedOf } from '../../../core/call/claim-search.ts';
import type { RankedInstance } from '../../../core/routing/types.ts';
import { newId } from '../../ids.ts';
import type { AttemptWriter } from '../attempt-writer.ts';
import { type ClaimDependencies, searchOnce } from '../claim-instance.ts';
import type { FleetPoller } from '../fleet/fleet-poller.ts';
import { releaseClaim } from '../release-claim.ts';
import type { CallRequest, Claimed } from '../routed-call.ts';

/** Up, its breaker closed, and less than half taken. */
function isSpare({ tier, instance: { held, max_concurrency } }: RankedInstance): boolean {
  return tier <= 1 && 2 * (held + 1) <= max_concurrency;
}

/** A claim for a call like this one, made without waiting; null where it could stand in somebody's way. */
export async function prefetchClaim(
  dependencies: ClaimDependencies,
  like: CallRequest,
): Promise<Claimed | null> {
  const { fleet, queue } = dependencies;
  const target = { ...like, key: newId('call'), isPrefetch: true };
  const search = createClaimSearch({ seed: seedOf(target.key), route: target.route, tried: [] });
  const waiting = queue.count(target.route.capability);
  const { best } = search.choose(fleet, { waiting }).choice;
  if (best === null || !isSpare(best)) return null;
  const end = await searchOnce(dependencies, { target, search }, waiting);
  return end.kind === 'claimed' ? end : null;
}

export interface GiveBackDependencies {
  readonly attemptWriter: Pick<AttemptWriter, 'settle'>;
  readonly fleet: Pick<FleetPoller, 'noteRelease'>;
}

export function giveBack({ attemptWriter, fleet }: GiveBackDependencies, { claim }: Claimed): void {
  void releaseClaim(attemptWriter, claim, 'no call came for it').then(() =>
    fleet.noteRelease(claim.instance_id),
  );
}
