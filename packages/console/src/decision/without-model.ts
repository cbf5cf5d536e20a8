/** The cost of past calls without one of the instances, by the original choice function. */
import type { DecisionListed } from '@capstan/core/contracts/decision';
import { choose } from '@capstan/core/routing/choose';
import { readInputs } from '@capstan/core/routing/replay';

export interface WithoutResult {
  /** Calls that would have gone to another instance. */
  readonly moved: number;
  /** Of those, calls that no instance could have taken. */
  readonly stranded: number;
  /** The extra cost of the others, by the expected cost of both. */
  readonly moreUsd: number;
}

export function without(decisions: readonly DecisionListed[], endpoint: string): WithoutResult {
  let moved = 0;
  let stranded = 0;
  let moreUsd = 0;
  for (const { chosen, inputs } of decisions) {
    if (chosen !== endpoint) continue;
    const { instances, request, seed } = readInputs(inputs);
    const was = choose(instances, request, seed).best;
    const others = instances.filter((instance) => instance.endpoint !== endpoint);
    const { best } = choose(others, request, seed);
    moved++;
    if (best === null) stranded++;
    else moreUsd += best.costUsd - (was?.costUsd ?? 0);
  }
  return { moved, stranded, moreUsd };
}
