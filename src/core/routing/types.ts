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
  readonly state: Exclude<InstanceState, 'draining' | 'evicted'>;
  /** reported: a success costs what its output says. */
  readonly settle: 'computed' | 'reported';
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
  /** Moving average of what its successful calls cost, USD; null before the first. */
  readonly mean_cost_usd: number | null;
  readonly success_count: number;
  readonly failure_count: number;
  /** When its breaker lets one call through again, by the database's clock; null = closed. */
  readonly breaker_until_ms: number | null;
  /** Carries the tag `local`, or has a loopback endpoint. */
  readonly is_local: boolean;
}

/** Why the caller of `choose` has ruled out an instance for this call. */
export type RuledOut = Extract<Verdict, 'already_tried' | 'down' | 'input_invalid' | 'lost_claim'>;

export interface RouteRequest {
  readonly capability: string;
  /** Semver range; null = any version. */
  readonly versionRange: string | null;
  /** Tags that the instance must all carry. */
  readonly tags: readonly string[];
  readonly priority: Priority;
  /** The most that this call may cost, USD; null = no ceiling. */
  readonly ceilingUsd: number | null;
  /**
   * The most that its run, and each run above it, may cost in all, USD; absent or null = no ceiling. Unlike the ceiling of
   * a call it can be raised, so it rules out no instance: it limits the time of a call, and the budget refuses what is dearer.
   */
  readonly runCeilingUsd?: number | null;
  readonly timeoutMs: number;
  /** The most that the tightest budget lets it reserve, USD; null = unlimited, or not known yet. */
  readonly headroomUsd: number | null;
  /** It is the day's of all projects: a project does not learn the figure. */
  readonly hidesHeadroom?: boolean;
  /** The database's clock. */
  readonly nowMs: number;
  /** Duration assumed for an instance without a call of its own. */
  readonly priorMs: number;
  readonly ruledOut: ReadonlyMap<string, RuledOut>;
  /** Instances that seemed idle and are not. */
  readonly busy: ReadonlySet<string>;
  /** Half-open instances that this call may try: they count as they would with a closed breaker. */
  readonly trials?: ReadonlySet<string>;
  /** Instances that failed this call in earlier attempts, each with how many of those were counted. */
  readonly failedBefore?: ReadonlyMap<string, number>;
  /** Other calls of the capability that wait in line; 0 when not given. */
  readonly waiting?: number;
}

/** What the caller asks of whoever takes the call. */
export type RouteConstraints = Pick<
  RouteRequest,
  'capability' | 'versionRange' | 'tags' | 'priority' | 'ceilingUsd' | 'runCeilingUsd' | 'timeoutMs'
>;

/** An instance that could take the call. */
export interface RankedInstance {
  readonly instance: InstanceSnapshot;
  readonly tier: number;
  /** What comes before the score (R6): another one than the tier when it has failed this call in an earlier attempt. */
  readonly place: number;
  readonly costUsd: number;
  readonly waitMs: number;
  readonly score: number;
  /** All its slots are held: the call would wait for it. */
  readonly isFull: boolean;
}

export interface Choice {
  /** Null when no instance is possible. */
  readonly best: RankedInstance | null;
  /** The best and up to 19 more, by tier and score. */
  readonly shown: readonly RankedInstance[];
  /** How many are possible, and how many of them are full. */
  readonly possible: number;
  readonly full: number;
  /** Up to 20 of the others, in the order of the snapshot. */
  readonly excluded: readonly { readonly instance: InstanceSnapshot; readonly verdict: Verdict }[];
  /** How many were excluded, by reason. */
  readonly verdicts: ReadonlyMap<Verdict, number>;
  /** The least that a call on an instance excluded for its price would have to be allowed, USD. */
  readonly minimumUsd: number | null;
  /** When the first open breaker lets a call through. */
  readonly reopensAtMs: number | null;
}
