/** What `choose` sees: the instances of one capability at one moment, and what the caller asked for. */
import type { CostModel, InstanceState } from '../../contracts/capability.ts';
import type { Verdict } from '../../contracts/decision.ts';
import type { Priority } from '../../contracts/primitives.ts';

export interface InstanceSnapshot {
  readonly instance_id: string;
  readonly name: string;
  readonly version: string;
  readonly endpoint: string;
  readonly cost_type: CostModel['type'];
  /** USD per second or per call. */
  readonly rate_usd: number;
  readonly tags: readonly string[];
  readonly max_concurrency: number;
  readonly state: Exclude<InstanceState, 'draining'>;
  /** Digest of its vetted spec; null until it was read. */
  readonly spec_digest: string | null;
  /** Slots that hold one of our calls, in any router. */
  readonly held: number;
  /** Work reported by the instance beyond what we held then; 0 when the report is old. */
  readonly reported_extra: number;
  /** Moving average of its successful calls; null before the first. */
  readonly duration_ms: number | null;
  /** Moving average of the distance from that average. */
  readonly deviation_ms: number | null;
  readonly success_count: number;
  readonly failure_count: number;
}

export interface RouteRequest {
  readonly capability: string;
  /** Semver range; null = any version. */
  readonly versionRange: string | null;
  /** Tags that the instance must all carry. */
  readonly tags: readonly string[];
  readonly priority: Priority;
  /** The most that this call may cost, USD; null = no ceiling. */
  readonly ceilingUsd: number | null;
  readonly timeoutMs: number;
  /** Instances that already failed this call. */
  readonly tried: ReadonlySet<string>;
  /** Instances whose spec refuses the input. */
  readonly refusing: ReadonlySet<string>;
}

/** An instance that could take the call, best first in a choice. */
export interface RankedInstance {
  readonly instance: InstanceSnapshot;
  readonly tier: number;
  readonly costUsd: number;
  readonly waitMs: number;
  readonly score: number;
  /** All its slots are held: the call would wait for it. */
  readonly isFull: boolean;
}

export interface Choice {
  readonly ranked: readonly RankedInstance[];
  readonly excluded: readonly { readonly instance: InstanceSnapshot; readonly verdict: Verdict }[];
}
