/**
 * One pass of a search: the best instance, and with what was learnt of it the next best, until one is claimed or the best
 * is full. The choice is the router's own wherever it is made; the ports say whether an instance may take the input, and
 * hold a slot and the money on it.
 */
import type { JsonObject } from '../../contracts/primitives.ts';
import type { Shortage } from '../money/shortage.ts';
import { toInputs } from '../routing/replay.ts';
import type { Choice, InstanceSnapshot, RankedInstance, RouteRequest } from '../routing/types.ts';
import type { ChoiceFacts, ClaimSearch, FailedBefore, FleetNow } from './claim-search.ts';

/** A choice, written down: snapshots of the fleet change in place while something is waited for. */
export interface Chosen {
  readonly request: RouteRequest;
  readonly choice: Choice;
  readonly best: RankedInstance;
  /** The best as it was when it was chosen. */
  readonly instance: InstanceSnapshot;
  /** What the choice was made from. */
  readonly inputs: JsonObject;
}

/** Why a chosen instance was not claimed; the search goes on with what this says. */
export type Missed =
  /** Another router was faster. */
  | { readonly kind: 'full' }
  /** It is no longer what it was. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'over_budget'; readonly shortage: Shortage }
  /** Nobody knew that earlier attempts of the call have failed. */
  | { readonly kind: 'failed_before'; readonly failures: FailedBefore };

export interface SearchPorts<Found> {
  readonly fleet: FleetNow;
  /** Whether it may take the input; what speaks against it, or was learnt of it, is noted in the search. */
  fits(best: RankedInstance, search: ClaimSearch): Promise<boolean>;
  claim(chosen: Chosen): Promise<Found | Missed>;
  /** Reads the fleet again: it has changed. */
  refresh(): Promise<void>;
}

export interface NothingFound {
  readonly kind: 'none';
  readonly request: RouteRequest;
  readonly choice: Choice;
}

export async function searchInstance<Found extends { readonly kind: string }>(
  ports: SearchPorts<Found>,
  search: ClaimSearch,
  facts: ChoiceFacts,
): Promise<Found | NothingFound> {
  for (;;) {
    const { request, choice } = search.choose(ports.fleet, facts);
    const { best } = choice;
    if (best === null || best.isFull) return { kind: 'none', request, choice };
    const instance = { ...best.instance };
    const chosen = { request, choice, best, instance, inputs: toInputs(choice, request, search.seed) };
    if (!(await ports.fits(best, search))) continue;
    const found = await ports.claim(chosen);
    if (!isMissed(found)) return found;
    await note({ search, refresh: ports.refresh }, best, found);
  }
}

const missed: ReadonlySet<string> = new Set<Missed['kind']>(['full', 'gone', 'over_budget', 'failed_before']);

function isMissed(found: { readonly kind: string }): found is Missed {
  return missed.has(found.kind);
}

async function note(
  { search, refresh }: { readonly search: ClaimSearch; readonly refresh: () => Promise<void> },
  { instance: { instance_id }, tier }: RankedInstance,
  found: Missed,
): Promise<void> {
  switch (found.kind) {
    case 'full':
      // No longer idle: it is chosen again as what it is. Not even a slot free: somebody was faster.
      if (tier === 0) search.noteBusy(instance_id);
      else search.noteLost(instance_id);
      return;
    case 'gone':
      search.noteLost(instance_id);
      return refresh();
    case 'over_budget':
      return search.noteShortage(found.shortage);
    case 'failed_before':
      search.noteFailures(found.failures);
  }
}
