/** The number of steps of definitions that this process has listed runs of. */
import { LRUCache } from 'lru-cache';

/** The number of steps of a definition, by its digest: it never changes, so it is cached. */
export type StepSizes = LRUCache<string, number>;

export function createStepSizes(): StepSizes {
  return new LRUCache({ max: 1_000 });
}
