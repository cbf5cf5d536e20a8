/**
 * Reports to the database which keys instances have loaded, and what calls with keys have shown: keys that begin to be served within
 * a tenth of a second, so that other routers know; times about every two seconds. All of it is an estimate: what cannot
 * be written is dropped.
 */
import {
  anyKey,
  distrustMs,
  foldValue,
  paceWeight,
  readTimes,
  type SeenTimes,
  timeWeight,
} from '@capstan/core/residency/residency';
import type { InstanceSnapshot, Residency } from '@capstan/core/routing/types';
import { LRUCache } from 'lru-cache';
import {
  dropKeys,
  foldLessons,
  foldLoadTimes,
  type InstanceLesson,
  type LoadReport,
  recordResident,
  serveKeys,
} from '../../db/instance/residency.ts';
import type { PartBase } from '../part.ts';
import type { FleetPoller } from './fleet-poller.ts';

type Owned = Pick<InstanceSnapshot, 'instance_id' | 'name' | 'owner_project'>;

export interface ResidencyRecorder {
  /** A call with the key begins. */
  noteServed(instance: Owned, key: string): void;
  /** It has failed, where the key was not loaded before: nothing shows that it is now. */
  noteUnloaded(instance: Owned, key: string): void;
  /** What the instance reports beside an answer. */
  noteReport(instance: Owned, keys: readonly string[]): void;
  /** A call that has succeeded. */
  recordCall(instance: Owned, residency: Residency, durationMs: number): void;
  /** Writes what is collected. @throws the database's errors */
  flush(): Promise<void>;
  /** Writes what is collected and ends. */
  close(): Promise<void>;
}

interface ResidencyCtx extends PartBase {
  readonly fleet: Pick<FleetPoller, 'noteServed' | 'noteUnloaded' | 'nowMs'>;
}

const serveWithinMs = 100;
const learnEveryMs = 2_000;
const lostMs = 3_600_000;

type Keyed = Pick<SeenTimes, 'isCold' | 'durationMs'>;

/** What this process has seen since its last report. */
class Collected {
  readonly served = new Map<string, readonly string[]>();
  readonly unloaded = new Map<string, Set<string>>();
  readonly reported = new Map<string, readonly string[]>();
  readonly times = new Map<string, LoadReport>();
  readonly lessons = new Map<string, InstanceLesson>();

  addServed(instanceId: string, key: string): void {
    const others = this.served.get(instanceId) ?? [];
    this.served.set(instanceId, [key, ...others.filter((one) => one !== key)]);
    this.unloaded.get(instanceId)?.delete(key);
  }

  addUnloaded(instanceId: string, key: string): void {
    const served = this.served.get(instanceId)?.filter((one) => one !== key) ?? [];
    if (served.length > 0) this.served.set(instanceId, served);
    else this.served.delete(instanceId);
    this.unloaded.set(instanceId, (this.unloaded.get(instanceId) ?? new Set()).add(key));
  }

  addTime({ owner_project = '', name }: Owned, key: string, { isCold, durationMs }: Keyed): void {
    const id = JSON.stringify([owner_project, name, key]);
    const { warm, cold } = this.times.get(id) ?? {};
    const folded = foldValue(isCold ? cold : warm, durationMs, timeWeight);
    const sides = isCold ? { warm, cold: folded } : { warm: folded, cold };
    this.times.set(id, { owner_project, name, key, ...sides });
  }

  addLesson(instance_id: string, ratio: number, distrusted: InstanceLesson['distrusted']): void {
    const known = this.lessons.get(instance_id);
    const pace = foldValue(known?.pace, ratio, paceWeight);
    this.lessons.set(instance_id, { instance_id, pace, distrusted: { ...known?.distrusted, ...distrusted } });
  }
}

/** Writes after a pause what was collected by then. */
class LateWriter {
  readonly #write: () => Promise<void>;
  readonly #pauseMs: number;
  readonly #logger: PartBase['logger'];
  #timer: NodeJS.Timeout | undefined;

  constructor(write: () => Promise<void>, pauseMs: number, logger: PartBase['logger']) {
    this.#write = write;
    this.#pauseMs = pauseMs;
    this.#logger = logger;
  }

  begin(): void {
    this.#timer ??= setTimeout(() => this.quietly(), this.#pauseMs).unref();
  }

  now(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#write();
  }

  quietly(): Promise<void> {
    return this.now().catch((error: unknown) =>
      this.#logger.warn({ err: error }, 'what instances have loaded could not be written; dropped'),
    );
  }
}

/** One that fails loses no other. @throws the first error, at the end */
async function writeAll(writes: readonly (() => Promise<void>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const write of writes) await write().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

class Recorder implements ResidencyRecorder {
  readonly #ctx: ResidencyCtx;
  readonly #served: LateWriter;
  readonly #learnt: LateWriter;
  readonly #seen = new Collected();
  /** Keys that failed calls have taken off lists: a call beside them may show that they are loaded. */
  readonly #lost = new LRUCache<string, true>({ max: 1_000, ttl: lostMs });

  constructor(ctx: ResidencyCtx) {
    this.#ctx = ctx;
    this.#served = new LateWriter(() => this.#writeServed(), serveWithinMs, ctx.logger);
    this.#learnt = new LateWriter(() => this.#writeLearnt(), learnEveryMs, ctx.logger);
  }

  noteServed({ instance_id }: Owned, key: string): void {
    if (this.#ctx.fleet.noteServed(instance_id, key)) this.#addServed(instance_id, key);
  }

  #addServed(instanceId: string, key: string): void {
    this.#seen.addServed(instanceId, key);
    this.#served.begin();
  }

  noteUnloaded({ instance_id }: Owned, key: string): void {
    this.#ctx.fleet.noteUnloaded(instance_id, key);
    this.#lost.set(`${instance_id} ${key}`, true);
    this.#seen.addUnloaded(instance_id, key);
    this.#served.begin();
  }

  noteReport({ instance_id }: Owned, keys: readonly string[]): void {
    this.#seen.reported.set(instance_id, keys);
    this.#served.begin();
  }

  recordCall(instance: Owned, residency: Residency, callMs: number): void {
    const { instance_id } = instance;
    const { key } = residency;
    if (this.#lost.delete(`${instance_id} ${key}`)) {
      this.#ctx.fleet.noteServed(instance_id, key);
      this.#addServed(instance_id, key);
    }
    const times = readTimes(residency, callMs);
    if (!times.isClear) return;
    for (const one of [key, anyKey]) this.#seen.addTime(instance, one, times);
    const distrusted = times.isDistrusted ? { [key]: this.#ctx.fleet.nowMs() + distrustMs } : {};
    this.#seen.addLesson(instance_id, times.ratio, distrusted);
    this.#learnt.begin();
  }

  async flush(): Promise<void> {
    await this.#served.now();
    await this.#learnt.now();
  }

  async close(): Promise<void> {
    await this.#served.quietly();
    await this.#learnt.quietly();
  }

  async #writeServed(): Promise<void> {
    const { db } = this.#ctx;
    const { served, unloaded, reported } = this.#seen;
    const lists = [...served].map(([instance_id, keys]) => ({ instance_id, keys }));
    const losses = [...unloaded].map(([instance_id, keys]) => ({ instance_id, keys: [...keys] }));
    const reports = [...reported].map((report) => () => recordResident(db, ...report));
    served.clear();
    unloaded.clear();
    reported.clear();
    await writeAll([
      ...(lists.length > 0 ? [() => serveKeys(db, lists)] : []),
      ...(losses.length > 0 ? [() => dropKeys(db, losses)] : []),
      ...reports,
    ]);
  }

  async #writeLearnt(): Promise<void> {
    const { db } = this.#ctx;
    const { times, lessons } = this.#seen;
    const [reports, learnt] = [[...times.values()], [...lessons.values()]];
    times.clear();
    lessons.clear();
    await writeAll([
      ...(reports.length > 0 ? [() => foldLoadTimes(db, reports)] : []),
      ...(learnt.length > 0 ? [() => foldLessons(db, learnt)] : []),
    ]);
  }
}

export function createResidencyRecorder(ctx: ResidencyCtx): ResidencyRecorder {
  return new Recorder(ctx);
}
