/**
 * Requests for models on instances that hold one model each, through the router's own choice and the rules of its
 * lines, in virtual time: beside today's choice, which knows nothing of what is loaded.
 */
import { ClaimSearch, type Fleet, seedOf } from '@capstan/core/call/claim-search';
import { callTurns, type KeyedMember, mostMembers, Patience } from '@capstan/core/residency/keyed-line';
import {
  anyKey,
  applyFolded,
  distrustMs,
  foldValue,
  type LoadTimes,
  paceWeight,
  readTimes,
  reportKeys,
  serveKey,
  timeWeight,
} from '@capstan/core/residency/residency';
import { countCallable } from '@capstan/core/routing/call-line';
import { priorDuration } from '@capstan/core/routing/estimate';
import { averageWeights } from '@capstan/core/routing/observed-calls';
import type { InstanceSnapshot, Residency, RouteConstraints } from '@capstan/core/routing/types';
import { createRandom } from '../shared/random.ts';
import type { Trace } from './trace.ts';

/** What the router learns of an instance besides its calls. wrong: other keys than it has. */
export type Reports = 'none' | 'right' | 'wrong';

export interface Setting {
  readonly instances: number;
  /** Work per second of an instance; null: all requests arrive at once. */
  readonly load: number | null;
  /** blind: as if no capability declared an affinity. */
  readonly choice: 'blind' | 'resident';
  readonly reports: Reports;
  readonly seed: number;
}

export interface Played {
  readonly setting: Setting;
  /** Seconds until the work of a request begins: in line, and for the load. */
  readonly waits: readonly number[];
  readonly cold: number;
  /** Seconds in which instances were busy: what rented ones cost. */
  readonly busyS: number;
  /** The 95th percentile of the model that waited the longest, of those with 20 requests. */
  readonly worstModelS: number;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };
type Instance = Writable<InstanceSnapshot>;

const capability = 'image';
const route: RouteConstraints = {
  capability,
  versionRange: null,
  tags: [],
  priority: 'standard',
  ceilingUsd: null,
  timeoutMs: 3_600_000,
};

interface Request extends KeyedMember {
  readonly number: number;
  readonly atMs: number;
  readonly model: string;
  readonly workMs: number;
  waitedMs: number;
  letGoMs: number;
}

interface Call {
  readonly request: Request;
  readonly instance: Instance;
  readonly residency: Residency | undefined;
  readonly endsAtMs: number;
  readonly tookMs: number;
}

function createInstance(number: number): Instance {
  return {
    instance_id: `ins_${String(number).padStart(8, '0')}`,
    name: capability,
    version: '1.0.0',
    endpoint: `http://10.0.0.${number}:8100`,
    cost_type: 'free',
    rate_usd: 0,
    tags: [],
    max_concurrency: 1,
    state: 'up',
    settle: 'computed',
    spec_digest: 'known',
    held: 0,
    reported_extra: 0,
    duration_ms: null,
    deviation_ms: null,
    mean_cost_usd: null,
    success_count: 0,
    failure_count: 0,
    breaker_until_ms: null,
    is_local: false,
    affinity: '{{ input.model }}',
    resident: [],
    distrusted: {},
    pace: null,
    last_call_ms: null,
    busy_since_ms: null,
  };
}

/** The averages that the database would hold. */
class Books {
  readonly #times = new Map<string, { warmMs: number | null; coldMs: number | null }>();

  of = (_owner: string, key: string): LoadTimes | undefined => this.#times.get(key);

  note(key: string, isCold: boolean, durationMs: number): void {
    for (const one of [key, anyKey]) {
      const times = this.#times.get(one) ?? { warmMs: null, coldMs: null };
      const side = isCold ? 'coldMs' : 'warmMs';
      times[side] = applyFolded(times[side], foldValue(undefined, durationMs, timeWeight));
      this.#times.set(one, times);
    }
  }
}

function fold(average: number | null, value: number): number {
  const { kept, weights } = averageWeights(1);
  return average === null ? value : kept * average + (weights[0] as number) * value;
}

class Simulation {
  readonly #setting: Setting;
  readonly #instances: readonly Instance[];
  readonly #books = new Books();
  /** What is loaded in truth. */
  readonly #loaded = new Map<Instance, string>();
  readonly #random: () => number;
  readonly #loads: readonly number[];
  readonly #ends: Call[] = [];
  /** By the number of the request. */
  readonly waits: number[] = [];
  #line: Request[] = [];
  #nowMs = 0;
  /** When a request was last called that passed no other. */
  #turnAtMs = Number.NEGATIVE_INFINITY;
  /** W4 */
  readonly #patience = new Patience<Request>();
  cold = 0;
  busyMs = 0;

  constructor(setting: Setting, loads: readonly number[]) {
    this.#setting = setting;
    this.#loads = loads;
    this.#random = createRandom(setting.seed + 1).uniform;
    this.#instances = Array.from({ length: setting.instances }, (_, at) => createInstance(at));
  }

  #fleet(): Fleet {
    const instances = this.#instances;
    const hasAffinity = this.#setting.choice === 'resident';
    return { instances, priorMs: priorDuration(instances), hasAffinity, loads: this.#books.of };
  }

  /** Plays until a time. */
  runUntil(ms: number): void {
    while (this.#ends.length > 0 && (this.#ends[0] as Call).endsAtMs <= ms) {
      const call = this.#ends.shift() as Call;
      this.#nowMs = call.endsAtMs;
      this.#end(call);
      this.#serve();
    }
    this.#nowMs = ms;
  }

  arrive(request: Request): void {
    this.runUntil(request.atMs);
    if (this.#line.length === 0 && this.#begin(request, false)) return;
    this.#line.push(request);
    this.#serve();
  }

  /** Calls the calls in line whose turn it is. */
  #serve(): void {
    if (this.#line.length === 0) return;
    const called = this.#setting.choice === 'resident' ? this.#callByKeys() : this.#callNext();
    const begun = new Set(called.filter((request) => this.#begin(request, true)));
    this.#line = this.#line.filter((request) => !begun.has(request));
  }

  #callNext(): readonly Request[] {
    const { instances } = this.#fleet();
    return this.#line.slice(0, countCallable(route, instances, { called: 0, nowMs: this.#nowMs }));
  }

  #callByKeys(): readonly Request[] {
    const nowMs = this.#nowMs;
    const members = this.#line.slice(0, mostMembers);
    for (const request of members) {
      request.waitedMs = nowMs - request.atMs;
      request.letGoMs = this.#patience.letGoMs(request, nowMs);
    }
    const sinceTurnMs = (): number => nowMs - this.#turnAtMs;
    const { called, letting } = callTurns(route, this.#fleet(), { members, nowMs, sinceTurnMs });
    this.#patience.note(members, letting, nowMs);
    if (called.some(({ isPassing }) => !isPassing)) this.#turnAtMs = nowMs;
    return called.map(({ member }) => member);
  }

  /** @returns whether an instance took it */
  #begin(request: Request, isCalled: boolean): boolean {
    const { model } = request;
    const search = new ClaimSearch({
      seed: seedOf(`${this.#setting.seed}-${request.number}`),
      route,
      tried: [],
      keyOf: () => model,
    });
    const fleet = this.#fleet();
    const nowMs = this.#nowMs;
    const { choice, request: asked } = search.choose(
      { of: () => fleet, nowMs: () => nowMs },
      {
        waiting: 0,
        ...(isCalled ? { patienceMs: 0 } : {}),
      },
    );
    const { best } = choice;
    if (best === null || best.isFull) return false;
    this.#start(request, best.instance as Instance, asked.residency?.get(best.instance.instance_id));
    return true;
  }

  #start(request: Request, instance: Instance, residency: Residency | undefined): void {
    const { model, atMs, workMs } = request;
    const isCold = this.#loaded.get(instance) !== model;
    const loadMs = isCold
      ? 1_000 * (this.#loads[Math.floor(this.#random() * this.#loads.length)] as number)
      : 0;
    this.#loaded.set(instance, model);
    instance.held = 1;
    instance.busy_since_ms = this.#nowMs;
    instance.resident = serveKey(instance.resident ?? [], model, instance.max_resident ?? 1);
    if (isCold) this.cold += 1;
    this.waits[request.number] = (this.#nowMs - atMs + loadMs) / 1_000;
    const tookMs = workMs + loadMs;
    this.busyMs += tookMs;
    this.#schedule({ request, instance, residency, tookMs, endsAtMs: this.#nowMs + tookMs });
  }

  #schedule(call: Call): void {
    const at = this.#ends.findIndex(({ endsAtMs }) => endsAtMs > call.endsAtMs);
    this.#ends.splice(at < 0 ? this.#ends.length : at, 0, call);
  }

  #end({ request: { model }, instance, residency, tookMs }: Call): void {
    instance.held = 0;
    instance.busy_since_ms = null;
    instance.last_call_ms = this.#nowMs;
    instance.duration_ms = fold(instance.duration_ms, tookMs);
    instance.success_count = instance.success_count * 0.98 + 1;
    if (residency !== undefined) this.#learn(instance, residency, tookMs);
    this.#report(instance, model);
  }

  #learn(instance: Instance, residency: Residency, tookMs: number): void {
    const { key } = residency;
    const { isClear, isCold, isDistrusted, durationMs, ratio } = readTimes(residency, tookMs);
    if (!isClear) return;
    this.#books.note(key, isCold, durationMs);
    instance.pace = applyFolded(instance.pace ?? 1, foldValue(undefined, ratio, paceWeight));
    if (isDistrusted) instance.distrusted = { ...instance.distrusted, [key]: this.#nowMs + distrustMs };
  }

  #report(instance: Instance, model: string): void {
    const { reports } = this.#setting;
    if (reports === 'none') return;
    const others = Array.from({ length: 8 }, () => `model-${Math.floor(this.#random() * 40)}`);
    const keys = reports === 'right' ? [model] : others;
    instance.resident = reportKeys(instance.resident ?? [], keys, false);
    instance.max_resident = keys.length; // the most that it has reported
  }
}

export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/**
 * @param modelOf by index
 * @param times how often each request was played
 * @returns the 95th percentile of the model that waited the longest, of those with 20 requests
 */
export function findWorstModel(waits: readonly number[], modelOf: (at: number) => string, times = 1): number {
  const byModel = new Map<string, number[]>();
  for (const [at, wait] of waits.entries()) {
    const own = byModel.get(modelOf(at)) ?? [];
    own.push(wait);
    byModel.set(modelOf(at), own);
  }
  const known = [...byModel.values()].filter((own) => own.length >= 20 * times);
  return Math.max(0, ...known.map((own) => percentile(own, 0.95)));
}

/** Requests arrive at random, in the order of the trace. */
export function simulate({ requests, loads }: Trace, setting: Setting): Played {
  const simulation = new Simulation(setting, loads);
  const { exponential } = createRandom(setting.seed);
  const meanMs = (1_000 * requests.reduce((sum, { workS }) => sum + workS, 0)) / requests.length;
  const gapMs = setting.load === null ? 0 : meanMs / (setting.instances * setting.load);
  let atMs = 0;
  for (const [number, { model, workS }] of requests.entries()) {
    atMs += exponential() * gapMs;
    const rest = { rank: 2, key: model, awaits: null, refuses: null, isCalled: false };
    simulation.arrive({ number, atMs, model, workMs: 1_000 * workS, ...rest, waitedMs: 0, letGoMs: 0 });
  }
  simulation.runUntil(Number.POSITIVE_INFINITY);
  const { waits, cold, busyMs } = simulation;
  const worstModelS = findWorstModel(waits, (at) => requests[at]?.model ?? '');
  return { setting, waits, cold: cold / waits.length, busyS: busyMs / 1_000, worstModelS };
}
