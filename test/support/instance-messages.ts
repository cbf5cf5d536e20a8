/** Messages between a test and its process of instances, and the lines of their journal. */
import type { CostModel, SharedWith } from '@capstan/core/contracts/capability';

/** One instance of a process. */
export interface FleetMember {
  readonly port: number;
  readonly name: string;
  readonly cost_model: CostModel;
  readonly max_concurrency: number;
  readonly tags: readonly string[];
  /** A call takes a random time between the two. */
  readonly minMs: number;
  readonly maxMs: number;
  /** The share of calls that end with 500. */
  readonly failureShare: number;
  /** Default: none, it serves the project that registers it. */
  readonly shared_with?: SharedWith;
}

export interface ToInstances {
  readonly port: number;
  /** Every call ends with 500, until this is changed. */
  readonly fails: boolean;
}

export type FromInstances = 'ready';

/** A line of the journal. An end without status: the caller disconnected. */
export interface JournalEntry {
  readonly at: number;
  readonly port: number;
  readonly kind: 'start' | 'begin' | 'end';
  readonly key?: string;
  readonly number?: number;
  readonly status?: number | null;
}
