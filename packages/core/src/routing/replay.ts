/**
 * R1. The inputs of a decision, kept so that it can be repeated. The shown instances are enough: they include the best,
 * the least by score and the least by wait, and these three settle the tie as all did.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { choose } from './choose.ts';
import type { CallBound, Choice, InstanceSnapshot, Residency, RouteRequest, RuledOut } from './types.ts';

/**
 * The fields of an instance that `choose` reads or shows, in the order of a stored row. Their names are shown with a decision and
 * not stored with it. A new one goes to the end.
 */
const columns = [
  ...(['instance_id', 'endpoint', 'version', 'state', 'tags', 'is_local', 'cost_type', 'rate_usd'] as const),
  ...(['max_concurrency', 'held', 'reported_extra', 'duration_ms', 'deviation_ms'] as const),
  ...(['success_count', 'failure_count', 'breaker_until_ms', 'protocols', 'price_source'] as const),
  ...(['host', 'host_calls', 'host_room'] as const),
] satisfies (keyof InstanceSnapshot)[];

/** The fields of what a call finds loaded, in the order of a stored row. The key is a place among the stored keys. */
const residencyColumns = [
  ...([
    'key',
    'isResident',
    'isListed',
    'warmMs',
    'loadMs',
    'pace',
    'isLearnt',
    'leftMs',
    'usedAtMs',
  ] as const),
] satisfies (keyof Residency)[];

interface StoredResidency {
  /** Each once: all instances with one affinity have the same. */
  readonly keys: readonly string[];
  /** Of the shown instances; null: the call has no key there. */
  readonly rows: readonly (readonly (boolean | number | null)[] | null)[];
}

interface Inputs {
  readonly request: {
    readonly capability: string;
    readonly version_range: string | null;
    readonly tags: readonly string[];
    readonly priority: RouteRequest['priority'];
    readonly ceiling_usd: number | null;
    readonly run_ceiling_usd: number | null;
    readonly timeout_ms: number;
    readonly left_ms?: number | undefined;
    readonly headroom_usd: number | null;
    /** The project may not see the figure. */
    readonly hides_headroom?: true | undefined;
    readonly now_ms: number;
    readonly prior_ms: number;
    readonly ruled_out: readonly (readonly [instanceId: string, why: RuledOut])[];
    readonly busy: readonly (readonly [instanceId: string, held: number])[];
    readonly trials: readonly string[];
    readonly waiting: number;
    readonly protocol?: RouteRequest['protocol'];
    readonly failed_before: readonly (readonly [instanceId: string, failures: number])[];
    readonly on_budget?: RouteRequest['onBudget'];
    /** Of the shown instances. */
    readonly bounds?: readonly (readonly [instanceId: string, bound: CallBound])[] | undefined;
    readonly residency?: StoredResidency | undefined;
    readonly patience_ms?: number | undefined;
  };
  readonly seed: number;
  /** A row each: less than half the size of objects. */
  readonly instances: readonly (readonly Json[])[];
}

/** @returns request, seed, and the shown instances as a table */
export function toInputs({ shown }: Choice, request: RouteRequest, seed: number): JsonObject {
  const inputs: Inputs = {
    request: {
      capability: request.capability,
      version_range: request.versionRange,
      tags: request.tags,
      priority: request.priority,
      ceiling_usd: request.ceilingUsd,
      run_ceiling_usd: request.runCeilingUsd ?? null,
      timeout_ms: request.timeoutMs,
      left_ms: request.leftMs ?? undefined,
      headroom_usd: request.headroomUsd,
      hides_headroom: request.hidesHeadroom ? true : undefined,
      now_ms: request.nowMs,
      prior_ms: request.priorMs,
      ruled_out: [...request.ruledOut],
      busy: [...request.busy],
      trials: [...(request.trials ?? [])],
      waiting: request.waiting ?? 0,
      protocol: request.protocol ?? undefined,
      failed_before: [...(request.failedBefore ?? [])],
      on_budget: request.onBudget,
      bounds: request.bounds && listBounds(shown, request.bounds),
      residency: request.residency && toRows(shown, request.residency),
      patience_ms: request.patienceMs,
    },
    seed,
    instances: shown.map(({ instance }) => columns.map((column) => instance[column] ?? null)),
  };
  return inputs as unknown as JsonObject;
}

function listBounds(
  shown: Choice['shown'],
  bounds: ReadonlyMap<string, CallBound>,
): [instanceId: string, bound: CallBound][] {
  return shown.flatMap(({ instance: { instance_id } }): [string, CallBound][] => {
    const bound = bounds.get(instance_id);
    return bound === undefined ? [] : [[instance_id, bound]];
  });
}

function toRows(shown: Choice['shown'], residency: ReadonlyMap<string, Residency>): StoredResidency {
  const keys: string[] = [];
  const rows = shown.map(({ instance: { instance_id } }) => {
    const found = residency.get(instance_id);
    if (found === undefined) return null;
    const at = keys.includes(found.key) ? keys.indexOf(found.key) : keys.push(found.key) - 1;
    return residencyColumns.map((column) => (column === 'key' ? at : found[column]));
  });
  return { keys, rows };
}

function readRows({ request: { residency }, instances }: Inputs): RouteRequest['residency'] {
  if (residency === undefined) return undefined;
  const { keys, rows } = residency;
  const found = rows.flatMap((row, place): [string, Residency][] => {
    if (row === null) return [];
    const fields = residencyColumns.map((column, at) => [
      column,
      column === 'key' ? keys[Number(row[at])] : row[at],
    ]);
    return [[String(instances[place]?.[0]), Object.fromEntries(fields)]];
  });
  return new Map(found);
}

/** @param inputs of a stored decision @returns the inputs that the project may see, with the names of the columns */
export function showInputs(inputs: JsonObject): JsonObject {
  const { request, ...others } = inputs as unknown as Inputs;
  const shown = request.hides_headroom ? { ...request, headroom_usd: null } : request;
  return { request: shown, ...others, columns, residency_columns: residencyColumns } as unknown as JsonObject;
}

const columnsText = `,"columns":${JSON.stringify(columns)},"residency_columns":${JSON.stringify(residencyColumns)}}`;

/** `showInputs` for JSON text, which is parsed only where something is hidden. */
export function showInputsText(text: string): string {
  return text.includes('"hides_headroom"')
    ? JSON.stringify(showInputs(JSON.parse(text) as JsonObject))
    : `${text.slice(0, -1)}${columnsText}`;
}

function toRequest(inputs: Inputs): RouteRequest {
  const { request } = inputs;
  return {
    capability: request.capability,
    versionRange: request.version_range,
    tags: request.tags,
    priority: request.priority,
    ceilingUsd: request.ceiling_usd,
    runCeilingUsd: request.run_ceiling_usd,
    timeoutMs: request.timeout_ms,
    leftMs: request.left_ms,
    headroomUsd: request.headroom_usd,
    nowMs: request.now_ms,
    priorMs: request.prior_ms,
    ruledOut: new Map(request.ruled_out),
    busy: new Map(request.busy),
    trials: new Set(request.trials),
    waiting: request.waiting,
    protocol: request.protocol,
    failedBefore: new Map(request.failed_before),
    onBudget: request.on_budget,
    bounds: request.bounds === undefined ? undefined : new Map(request.bounds),
    residency: readRows(inputs),
    patienceMs: request.patience_ms,
  };
}

/** The known inputs of `choose`: enough to repeat a choice, or to vary it. */
export interface KnownChoice {
  readonly instances: readonly InstanceSnapshot[];
  readonly request: RouteRequest;
  readonly seed: number;
}

/** @param stored the result of `toInputs` */
export function readInputs(stored: JsonObject): KnownChoice {
  const inputs = stored as unknown as Inputs;
  const instances = inputs.instances.map((row) =>
    Object.fromEntries(columns.map((column, at) => [column, row[at]])),
  ) as unknown as InstanceSnapshot[];
  return { instances, request: toRequest(inputs), seed: inputs.seed };
}

/** @returns endpoint of the best instance, by the stored inputs */
export function replayChoice(stored: JsonObject): string | null {
  const { instances, request, seed } = readInputs(stored);
  return choose(instances, request, seed).best?.instance.endpoint ?? null;
}
