/** The inputs and results of `choose`: the instances of one capability at one moment, and the caller's request. */
import type { CostModel, RoutedState } from '../contracts/capability.ts';
import type { OnBudget, Verdict } from '../contracts/decision.ts';
import type { Priority } from '../contracts/primitives.ts';
import type { Lengths } from '../money/holds.ts';
import type { Overran } from '../money/overruns.ts';

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
  readonly state: RoutedState;
  /** reported: a success costs what its output reports. */
  readonly settle: 'computed' | 'reported';
  /** Digest of its vetted spec; null before it was read. */
  readonly spec_digest: string | null;
  /** Slots that hold a call from Capstan, on any router. */
  readonly held: number;
  /** Work reported by the instance beyond the calls held then; 0 when the report is old. */
  readonly reported_extra: number;
  /** Moving average of its successful calls; null before the first. */
  readonly duration_ms: number | null;
  /** Moving average of the deviation from that average. */
  readonly deviation_ms: number | null;
  /** Moving average of the cost of its successful calls, USD; null before the first. */
  readonly mean_cost_usd: number | null;
  readonly success_count: number;
  readonly failure_count: number;
  /** Expressions over the input: the most that a call may cost, and its likely cost; null or absent = its rate. */
  readonly worst_case?: string | null;
  readonly expected_cost?: string | null;
  /** Where its prices are from, for a person. */
  readonly price_source?: string | null;
  /** Expressions over the input: what a call costs before its first token, and what each token adds; null or absent = none. */
  readonly start_cost?: string | null;
  readonly token_cost?: string | null;
  /** A closed connection ends its work. */
  readonly stops?: boolean;
  /** It may answer later, and whether a call keeps its slot until then; null or absent = it answers in place. */
  readonly answers_later?: 'held' | 'freed' | null;
  /** How many of its ended calls used so many units (core/money/holds.ts); null or absent = none is known. */
  readonly lengths?: Lengths | null;
  /** By project, overruns of its calls; absent = none. */
  readonly overran?: Overran;
  /** An expression over the input: the key of what a call needs loaded (../residency/residency.ts); null or absent = none. */
  readonly affinity?: string | null;
  /** Keys that it has loaded, as far as it is known, the latest first, and how many it holds at once. */
  readonly resident?: readonly string[];
  readonly max_resident?: number | null;
  /** Until when a listed key is not trusted, Unix ms. */
  readonly distrusted?: Readonly<Record<string, number>>;
  /** Its calls with a key take this multiple of the usual time; null = unknown. */
  readonly pace?: number | null;
  /** When its last call ended, and since when it has the oldest of those that it has now, Unix ms; null = none. */
  readonly last_call_ms?: number | null;
  readonly busy_since_ms?: number | null;
  /** When its breaker allows a trial call, by the database's clock; null = closed. */
  readonly breaker_until_ms: number | null;
  /** The project that registered it. */
  readonly owner_project?: string;
  /** Protocols of models that it speaks itself; null or absent = none. */
  readonly protocols?: readonly string[] | null;
  /** Has the tag `local`, or a loopback endpoint. */
  readonly is_local: boolean;
  /** The machine whose slots its calls take, too; null or absent = none. */
  readonly host?: string | null;
  /** The slots of the host that a call takes. */
  readonly takes?: number | null;
  /** The calls for which the host bears the instance in parallel, and those for which it has room now; null = no host. */
  readonly host_calls?: number | null;
  readonly host_room?: number | null;
}

/** Whether an instance takes requests of the protocol as they are. */
export function speaks({ protocols }: Pick<InstanceSnapshot, 'protocols'>, name: string): boolean {
  return protocols?.includes(name) === true;
}

/** Whether it may speak the protocol: before it is vetted, this is unknown. */
export function maySpeak(
  instance: Pick<InstanceSnapshot, 'protocols' | 'spec_digest'>,
  name: string,
): boolean {
  return instance.spec_digest === null || speaks(instance, name);
}

/** Why the caller of `choose` has ruled out an instance for this call. */
export type RuledOut = Extract<Verdict, 'already_tried' | 'down' | 'input_invalid' | 'lost_claim'>;

/** The cost of one call by its input, USD. */
export interface CallBound {
  /** The most that the call may cost; null: the price by its rate. */
  readonly worstUsd: number | null;
  /** Null: the estimate by its rate. */
  readonly expectedUsd: number | null;
  /** Why its declared worst case does not count. */
  readonly fault?: string;
  /** How its cost grows while it runs, if it can be stopped; absent: it cannot. */
  readonly growth?: Growth;
}

/** How the cost of a call grows while it runs. */
export interface Growth {
  /** By the text of its answer, or by its time. */
  readonly unit: 'token' | 'ms';
  /** Before its first unit, USD. */
  readonly startUsd: number;
  readonly unitUsd: number;
  /** What it is expected to hold at its end, USD; absent: too few calls are known. */
  readonly expected?: { readonly meanUsd: number; readonly deviationUsd: number };
}

/** What a call with a key finds on an instance (../residency/residency.ts). */
export interface Residency {
  readonly key: string;
  readonly isResident: boolean;
  /** Its list has the key, which it has not served last (W2). */
  readonly isListed: boolean;
  /** Expected time of a call that finds its key, and of a load, there, ms. */
  readonly warmMs: number;
  readonly loadMs: number;
  /** How much longer than others the instance takes, which they include. */
  readonly pace: number;
  /** Whether calls with the key have shown these times. */
  readonly isLearnt: boolean;
  /** Until a call that it has now ends; 0 where it has none. */
  readonly leftMs: number;
  /** When its last known call ended, Unix ms; null: nothing is loaded, as far as it is known. */
  readonly usedAtMs: number | null;
}

export interface RouteRequest {
  readonly capability: string;
  /** Semver range; null = any version. */
  readonly versionRange: string | null;
  /** Tags that the instance must all carry. */
  readonly tags: readonly string[];
  readonly priority: Priority;
  /** The budget of this call, USD; null = no ceiling. */
  readonly ceilingUsd: number | null;
  /**
   * The budget of the run and of each run above it, USD; absent or null = no ceiling. It can be raised, unlike a call's
   * ceiling, so it rules out no instance: it limits the time of a call, and the budget refuses a more expensive one.
   */
  readonly runCeilingUsd?: number | null;
  readonly timeoutMs: number;
  /**
   * The time left for the call, where that is less than its own timeout: an instance whose calls are known to take
   * longer (90th percentile) is not chosen. Absent or null = enough.
   */
  readonly leftMs?: number | null | undefined;
  /** The amount that the tightest budget lets it reserve, USD; null = unlimited, or unknown so far. */
  readonly headroomUsd: number | null;
  /** The headroom belongs to the daily budget of all projects, whose figure is hidden. */
  readonly hidesHeadroom?: boolean;
  /** The database's clock. */
  readonly nowMs: number;
  /** Duration assumed for an instance without a call of its own. */
  readonly priorMs: number;
  readonly ruledOut: ReadonlyMap<string, RuledOut>;
  /** The least that instances hold which have more calls than listed. */
  readonly busy: ReadonlyMap<string, number>;
  /** Half-open instances that this call may try: they rank as with a closed breaker. */
  readonly trials?: ReadonlySet<string>;
  /** Instances that failed this call in earlier attempts, each with its number of counted failures. */
  readonly failedBefore?: ReadonlyMap<string, number>;
  /** By instance, for those that declare the cost of a call by its input; absent = none does, or it is unknown. */
  readonly bounds?: ReadonlyMap<string, CallBound> | undefined;
  /** Whether an instance may receive the secrets of the call; absent = the call has none. */
  readonly mayReceive?: ((instance: InstanceSnapshot) => boolean) | undefined;
  /** What becomes of it when its budgets have no more room; absent = refuse: it holds its worst case. */
  readonly onBudget?: OnBudget | undefined;
  /** The protocol of the client; absent or null = the call is in the neutral form. */
  readonly protocol?: SpokenProtocol | null | undefined;
  /** Other queued calls of the capability; of a call with a key, those with the same key; default 0. */
  readonly waiting?: number;
  /** The caller's text over the input, in place of that of the capability: the key of what must be loaded. */
  readonly affinity?: string | null | undefined;
  /** What the call finds loaded, by instance; absent = it has no key. */
  readonly residency?: ReadonlyMap<string, Residency> | undefined;
  /** How long the call itself may wait for a slot; absent = as long as it takes. */
  readonly patienceMs?: number | undefined;
}

/** The protocol in which a client speaks to a model. */
export interface SpokenProtocol {
  readonly name: string;
  /** The request cannot be translated, so only an instance that speaks the protocol can take it. */
  readonly isRequired: boolean;
}

/** The caller's constraints on the instance. */
export type RouteConstraints = Pick<
  RouteRequest,
  | 'capability'
  | 'versionRange'
  | 'tags'
  | 'priority'
  | 'ceilingUsd'
  | 'runCeilingUsd'
  | 'timeoutMs'
  | 'leftMs'
  | 'mayReceive'
  | 'onBudget'
  | 'protocol'
  | 'affinity'
>;

/** An instance that could take the call. */
export interface RankedInstance {
  readonly instance: InstanceSnapshot;
  readonly tier: number;
  /** The rank before the score (R6): differs from the tier when it has failed this call in an earlier attempt. */
  readonly place: number;
  readonly costUsd: number;
  readonly waitMs: number;
  /** The wait that settles ties: with what a full instance counts more. */
  readonly countedMs: number;
  readonly score: number;
  /** All its slots are held: the call would wait for one. */
  readonly isFull: boolean;
  /** R7: it does not speak the protocol of the client. */
  readonly isTranslated: boolean;
  /** What the call finds loaded there; absent = it has no key. */
  readonly residency?: Residency | undefined;
}

export interface Choice {
  /** Null without a candidate. */
  readonly best: RankedInstance | null;
  /** The best and up to 19 more, by tier and score. */
  readonly shown: readonly RankedInstance[];
  /** The number of candidates, and of full ones among them. */
  readonly possible: number;
  readonly full: number;
  /** Up to 20 of the others, in the order of the snapshot. */
  readonly excluded: readonly { readonly instance: InstanceSnapshot; readonly verdict: Verdict }[];
  /** The number of excluded instances, by reason. */
  readonly verdicts: ReadonlyMap<Verdict, number>;
  /** The lowest ceiling that would allow a call on an instance excluded for its price, USD. */
  readonly minimumUsd: number | null;
  /** When the first open breaker allows a call. */
  readonly reopensAtMs: number | null;
}
