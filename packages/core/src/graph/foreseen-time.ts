/**
 * Foresees how long a run takes, in virtual time: its units of work (calls, items, waits) take slots of instances as
 * its steps become ready. A list schedule: nothing that could start is kept waiting.
 *
 * - V1: a unit may start when its step's dependencies are done and its step has room. Units get slots in this order; of
 *   two at the same time, the earlier step goes first. Each gets the slot on which it ends soonest.
 * - V2: calls that instances hold already, or have in line, go before all of the run, each for a whole duration.
 * - V3: calls within child runs are known as sums of time only: no run takes less than such a sum over its slots.
 * - V4: a call whose key is not loaded on its instance loads it first, and those after it find it there.
 */
import { serveKey } from '../residency/residency.ts';
import { createGraph } from './dag.ts';
import { createHeap, type Heap } from './heap.ts';

/** An instance that may take a call. */
export interface CallPlace {
  readonly instanceId: string;
  readonly slots: number;
  /** Calls that it holds or has in line. */
  readonly ahead: number;
  /** Of one call, without a load. */
  readonly durationMs: number;
  /** Of its key; absent: it has none there. */
  readonly load?: PlaceLoad;
}

interface PlaceLoad {
  readonly key: string;
  readonly ms: number;
  /** Keys that the instance has loaded before the run, the latest first, and the most that it holds at once. */
  readonly resident: readonly string[];
  readonly most: number;
}

/** Equal units of a step. */
export interface UnitGroup {
  readonly count: number;
  readonly durationMs: number;
  /** In order of preference; none: it needs no slot. */
  readonly places: readonly CallPlace[];
  /** Of the calls within one of them. */
  readonly within?: Workload;
}

export interface ForeseenStep {
  readonly id: string;
  /** Indexes. */
  readonly dependencies: readonly number[];
  /** None: it does not happen, or its list is empty. */
  readonly groups: readonly UnitGroup[];
  readonly maxParallel: number;
}

/** Milliseconds of calls, and the slots for them, by the instances that may take them. */
export type Workload = ReadonlyMap<string, { readonly ms: number; readonly slots: number }>;

export interface ForeseenTime {
  readonly durationMs: number;
  /** How long the units of each step wait for slots, all together. */
  readonly waitedMs: readonly number[];
  readonly workload: Workload;
}

function sumWorkload(groups: readonly UnitGroup[]): Workload {
  const sum = new Map<string, { ms: number; slots: number }>();
  const add = (key: string, slots: number, ms: number): void => {
    sum.set(key, { slots, ms: (sum.get(key)?.ms ?? 0) + ms });
  };
  for (const { count, places, within } of groups) {
    for (const [key, { ms, slots }] of within ?? []) add(key, slots, ms * count);
    if (places.length === 0) continue;
    const slots = places.reduce((all, place) => all + place.slots, 0);
    const fastestMs = Math.min(...places.map(({ durationMs }) => durationMs));
    const key = places.map(({ instanceId }) => instanceId).sort();
    add(key.join(' '), slots, fastestMs * count);
  }
  return sum;
}

/** When the slots of an instance are free. */
class Slots {
  readonly #busy: Heap<number> = createHeap((one, other) => one < other);
  /** Not used yet. */
  #idle: number;

  constructor({ slots, ahead, durationMs }: CallPlace) {
    this.#idle = slots;
    for (let call = 0; call < ahead; call++) this.take(0, durationMs); // V2
  }

  freeAtMs(nowMs: number): number {
    return this.#idle > 0 ? nowMs : Math.max(nowMs, this.#busy.peek() ?? nowMs);
  }

  take(nowMs: number, durationMs: number): void {
    const startMs = this.freeAtMs(nowMs);
    if ((this.#busy.peek() ?? Number.POSITIVE_INFINITY) <= nowMs || this.#idle === 0) this.#busy.pop();
    else this.#idle -= 1;
    this.#busy.push(startMs + durationMs);
  }
}

/** A step that is ready, and whose units have not all started. */
interface ReadyStep {
  readonly index: number;
  /** Grows: when its next unit may start, as to its dependencies and its own limit. */
  mayStartMs: number;
  readonly left: { group: UnitGroup; count: number }[];
  /** When its units in flight end. */
  readonly ends: Heap<number>;
  inFlight: number;
  endMs: number;
}

/** More units than this are planned together, one after the other: a plan is made within a request. */
const mostUnits = 50_000;

function coarsen(group: UnitGroup, most: number): UnitGroup {
  const size = Math.ceil(group.count / most);
  if (size <= 1) return group;
  const places = group.places.map((place) => ({ ...place, durationMs: place.durationMs * size }));
  return { ...group, count: Math.ceil(group.count / size), durationMs: group.durationMs * size, places };
}

function startOf(index: number, groups: readonly UnitGroup[], readyMs: number): ReadyStep {
  const left = groups.map((group) => ({ group, count: group.count })).filter(({ count }) => count > 0);
  const ends = createHeap<number>((one, other) => one < other);
  return { index, mayStartMs: readyMs, left, ends, inFlight: 0, endMs: readyMs };
}

interface FoundPlace {
  readonly place: CallPlace;
  readonly startMs: number;
  /** With its load. */
  readonly durationMs: number;
}

class VirtualRun {
  readonly #steps: readonly ForeseenStep[];
  readonly #slots = new Map<string, Slots>();
  /** By instance: the keys that calls of the run have loaded. */
  readonly #loaded = new Map<string, readonly string[]>();
  readonly #ready = createHeap<ReadyStep>(
    (one, other) =>
      one.mayStartMs < other.mayStartMs || (one.mayStartMs === other.mayStartMs && one.index < other.index),
  );
  readonly #dependents: readonly (readonly number[])[];
  readonly #waitsFor: number[];
  readonly #readyMs: number[];
  readonly waitedMs: number[];
  endMs = 0;

  constructor(steps: readonly ForeseenStep[]) {
    this.#steps = steps;
    const { successors, predecessors } = createGraph(
      steps.map(({ id, dependencies }) => ({
        id,
        depends_on: dependencies.map((at) => steps[at]?.id ?? ''),
      })),
    );
    this.#dependents = successors;
    this.#waitsFor = predecessors.map((before) => before.length);
    this.#readyMs = steps.map(() => 0);
    this.waitedMs = steps.map(() => 0);
  }

  play(): void {
    for (const [index, count] of this.#waitsFor.entries()) if (count === 0) this.#begin(index);
    for (let step = this.#ready.pop(); step !== undefined; step = this.#ready.pop()) {
      if (step.left.length === 0) this.#end(step);
      else this.#startUnit(step);
    }
  }

  #begin(index: number): void {
    this.#ready.push(startOf(index, this.#steps[index]?.groups ?? [], this.#readyMs[index] ?? 0));
  }

  #end({ index, endMs }: ReadyStep): void {
    this.endMs = Math.max(this.endMs, endMs);
    for (const dependent of this.#dependents[index] ?? []) {
      this.#readyMs[dependent] = Math.max(this.#readyMs[dependent] ?? 0, endMs);
      this.#waitsFor[dependent] = (this.#waitsFor[dependent] ?? 0) - 1;
      if (this.#waitsFor[dependent] === 0) this.#begin(dependent);
    }
  }

  readonly #slotsOf = (place: CallPlace): Slots => {
    const known = this.#slots.get(place.instanceId) ?? new Slots(place);
    this.#slots.set(place.instanceId, known);
    return known;
  };

  #residentOn({ instanceId, load }: CallPlace): readonly string[] {
    return this.#loaded.get(instanceId) ?? load?.resident ?? [];
  }

  /** V4 */
  #durationOn(place: CallPlace): number {
    const { load, durationMs } = place;
    return load === undefined || this.#residentOn(place).includes(load.key)
      ? durationMs
      : durationMs + load.ms;
  }

  /** The place where a unit ends soonest; the first of several. */
  #findPlace(places: readonly CallPlace[], nowMs: number): FoundPlace | null {
    let found: FoundPlace | null = null;
    let soonestMs = Number.POSITIVE_INFINITY;
    for (const place of places) {
      const startMs = this.#slotsOf(place).freeAtMs(nowMs);
      const durationMs = this.#durationOn(place);
      if (startMs + durationMs >= soonestMs) continue;
      soonestMs = startMs + durationMs;
      found = { place, startMs, durationMs };
    }
    return found;
  }

  #takePlace({ place, startMs, durationMs }: FoundPlace): void {
    const { instanceId, load } = place;
    this.#slotsOf(place).take(startMs, durationMs);
    if (load !== undefined)
      this.#loaded.set(instanceId, serveKey(this.#residentOn(place), load.key, load.most));
  }

  /** V1 */
  #startUnit(step: ReadyStep): void {
    const [next] = step.left as [ReadyStep['left'][number]];
    const { group } = next;
    const found = this.#findPlace(group.places, step.mayStartMs);
    const { startMs, durationMs } = found ?? { startMs: step.mayStartMs, durationMs: group.durationMs };
    if (found !== null) this.#takePlace(found);
    this.waitedMs[step.index] = (this.waitedMs[step.index] ?? 0) + startMs - step.mayStartMs;
    step.ends.push(startMs + durationMs);
    step.inFlight += 1;
    step.endMs = Math.max(step.endMs, startMs + durationMs);
    next.count -= 1;
    if (next.count === 0) step.left.shift();
    if (step.left.length === 0) {
      this.#end(step);
      return;
    }
    if (step.inFlight === this.#steps[step.index]?.maxParallel) {
      step.mayStartMs = Math.max(step.mayStartMs, step.ends.pop() ?? 0);
      step.inFlight -= 1;
    }
    this.#ready.push(step);
  }
}

export function foreseeTime(steps: readonly ForeseenStep[]): ForeseenTime {
  const groups = steps.flatMap((step) => step.groups);
  const most = Math.max(1_000, Math.floor(mostUnits / Math.max(1, groups.length)));
  const run = new VirtualRun(
    steps.map((step) => ({ ...step, groups: step.groups.map((group) => coarsen(group, most)) })),
  );
  run.play();
  const workload = sumWorkload(groups);
  const leastMs = [...workload.values()].map(({ ms, slots }) => ms / Math.max(1, slots)); // V3
  const durationMs = leastMs.reduce((longest, ms) => Math.max(longest, ms), run.endMs);
  return { durationMs, waitedMs: run.waitedMs, workload };
}
