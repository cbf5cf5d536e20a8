/**
 * Executes short steps without a queue, by local activities. One activity executes the units that become ready together
 * and the steps that follow them. It runs only while nothing else of the run is in flight, because a local activity
 * delays all signals to the workflow. For the same reason, a run pauses briefly for signals after half a second of
 * this.
 */

import type { DrivenRun, Unit } from '@capstan/core/run/drive';
import { areLast, inlineFollowers, isAlone } from '@capstan/core/run/inline-batch';
import { type MachineState, unitState } from '@capstan/core/run/machine-state';
import { nameUnit, summarizeBatch } from '@capstan/core/workflow-names';
import type { RunPipelineResult } from '@capstan/core/workflow-payloads';
import { ActivityCancellationType, proxyLocalActivities, sleep, TemporalFailure } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { InlineBatchEnd, InlineBatchUnit, InlineEnd } from '../activities/step-activities.ts';

const longestStretchMs = 500;
/** Units in a batch: their results share one event. */
const mostUnits = 200;

/** State of a run that affects its end. */
export interface RunCourse {
  /** A unit has waited or escalated, so only the run itself may close it. */
  hasWaited: boolean;
  /** The result, if the run was closed with its last steps; null: it was not. */
  closed: RunPipelineResult | null;
}

export interface InlineBatchesDependencies {
  readonly run_id: string;
  readonly run: Pick<DrivenRun, 'state'>;
  readonly course: RunCourse;
  /** Version of the last change of the run's ceiling; 0 = unchanged since the start. */
  readonly budgetVersion: () => number;
  /** Runs a local activity under the mutex. */
  readonly inTurn: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

export interface InlineBatches {
  /**
   * The end of a step that followed in a batch, before the machine requests it; undefined: it has not begun in a batch.
   */
  takeKnown(unit: Unit): InlineEnd | undefined;
  /** Resolves to the unit's end; `again` and `left` mean that it goes to the queue. */
  execute(unit: Unit): Promise<InlineEnd>;
}

function isDone(end: InlineEnd | undefined): boolean {
  return typeof end === 'object' && !('waiting' in end);
}

interface Waiting {
  readonly unit: Unit;
  readonly tell: (end: InlineEnd) => void;
}

export function createInlineBatches(dependencies: InlineBatchesDependencies): InlineBatches {
  return new BatchQueue(dependencies);
}

class BatchQueue implements InlineBatches {
  readonly #dependencies: InlineBatchesDependencies;
  #waiting: Waiting[] = [];
  #isScheduled = false;
  /** Units that wait for a batch, or are in one. */
  #open = 0;
  /** Time since the run last paused for signals. */
  #stretchMs = 0;
  /** Ends of steps that followed, by id, or that the queue executes them; the machine has not requested them yet. */
  readonly #followed = new Map<string, InlineEnd>();
  /** Successes that the machine may not have received yet. */
  readonly #unacknowledged = new Set<Unit>();

  constructor(dependencies: InlineBatchesDependencies) {
    this.#dependencies = dependencies;
  }

  takeKnown(unit: Unit): InlineEnd | undefined {
    const end = unit.item === 0 ? this.#followed.get(unit.step.id) : undefined;
    this.#followed.delete(unit.step.id);
    if (isDone(end)) this.#unacknowledged.add(unit);
    return end;
  }

  execute(unit: Unit): Promise<InlineEnd> {
    return new Promise((resolve) => {
      const tell = (end: InlineEnd): void => {
        this.#open -= 1;
        if (isDone(end)) this.#unacknowledged.add(unit);
        resolve(end);
      };
      this.#open += 1;
      this.#add([{ unit, tell }]);
    });
  }

  #add(more: readonly Waiting[]): void {
    this.#waiting.push(...more);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    void this.#flush();
  }

  async #flush(): Promise<void> {
    const { run, inTurn } = this.#dependencies;
    do
      await Promise.resolve(); // B1: until the machine has requested all units that may begin now
    while (this.#isBehind());
    this.#isScheduled = false;
    const batch = this.#waiting;
    this.#waiting = [];
    if (isAlone(run.state, this.#open) && !run.state.isPaused) await inTurn(() => this.#execute(batch));
    else this.#leave(batch);
  }

  #leave(batch: readonly Waiting[]): void {
    for (const { tell } of batch) tell('left');
  }

  #isBehind(): boolean {
    const { state } = this.#dependencies.run;
    for (const unit of this.#unacknowledged) {
      if (unitState(state, { step: unit.index, item: unit.item }) !== 'running')
        this.#unacknowledged.delete(unit);
    }
    return this.#unacknowledged.size > 0;
  }

  async #execute(batch: readonly Waiting[]): Promise<void> {
    if (this.#stretchMs >= longestStretchMs) {
      // B14
      await sleep(1, { summary: 'listens for signals between short steps' }).catch(() => undefined);
      this.#stretchMs = 0;
      if (this.#dependencies.run.state.isPaused) return this.#leave(batch);
    }
    const { endOf, followers, took_ms } = await executeBatch(this.#dependencies, batch);
    this.#stretchMs += took_ms;
    for (const { step, end } of followers) this.#followed.set(step.id, end);
    const ends = batch.map((one) => ({ one, end: endOf(one.unit) }));
    const isProgress = ends.some(({ end }) => end !== 'left');
    const left: Waiting[] = [];
    for (const { one, end } of ends) {
      if (end === 'left' && isProgress) left.push(one);
      else one.tell(end);
    }
    if (left.length > 0) this.#add(left);
  }
}

interface BatchEnds extends Pick<InlineBatchEnd, 'took_ms'> {
  readonly endOf: (unit: Unit) => InlineEnd;
  /** Followers that have begun. */
  readonly followers: readonly { readonly step: Unit['step']; readonly end: InlineEnd }[];
}

async function executeBatch(
  { run_id, run: { state }, course, budgetVersion }: InlineBatchesDependencies,
  batch: readonly Waiting[],
): Promise<BatchEnds> {
  const units = batch.map(({ unit }) => unit);
  const followers = followersOf(state, units);
  const all: readonly BatchUnit[] = [...units, ...followers];
  const version = budgetVersion();
  const closes = !course.hasWaited && areLast(state, new Set(all.map(({ index }) => index)));
  try {
    const { ends, took_ms, closed } = await batchActivity(summarizeBatch(units, followers))({
      run_id,
      ...(version === 0 ? {} : { budget_version: version }),
      units: all.map(toInlineUnit),
      ...(closes ? { closes } : {}),
    });
    if (closed !== undefined) course.closed = closed;
    const known = new Map(Object.entries(ends));
    const endOf = ({ step, item }: Unit): InlineEnd => known.get(nameUnit(step.id, item)) ?? 'again';
    const ended = followers.map((unit) => ({ step: unit.step, end: endOf(unit) }));
    return { endOf, followers: ended.filter(({ end }) => end !== 'left'), took_ms };
  } catch (error) {
    if (!(error instanceof TemporalFailure)) throw error;
    return { endOf: () => 'again', followers: [], took_ms: longestStretchMs }; // B10
  }
}

interface BatchUnit extends Unit {
  /** Indexes in the batch. */
  readonly after?: readonly number[];
}

function followersOf(state: MachineState, units: readonly Unit[]): BatchUnit[] {
  const whole = units.flatMap(({ item, index }) => (item === 0 ? [index] : []));
  const followers = inlineFollowers(state, whole, mostUnits - units.length);
  const placeOf = new Map(units.map(({ index }, place) => [index, place]));
  for (const [at, { step }] of followers.entries()) placeOf.set(step, units.length + at);
  return followers.flatMap(({ step: index, after }) => {
    const step = state.plan.steps[index];
    return step === undefined
      ? []
      : [{ step, index, item: 0, after: after.map((one) => placeOf.get(one) ?? 0) }];
  });
}

function toInlineUnit(unit: BatchUnit): InlineBatchUnit {
  const { step, after = [] } = unit;
  return {
    total_timeout_ms: step.total_timeout_ms,
    ...toAskedUnit(unit),
    ...(after.length === 0 ? {} : { after }),
  };
}

/** The fields of a unit in an activity's request, for a batch or the queue. */
export function toAskedUnit({ step, item }: Unit): Pick<InlineBatchUnit, 'step_id' | 'item' | 'escalates'> {
  return {
    step_id: step.id,
    ...(item === 0 ? {} : { item }),
    ...(step.escalates === true ? { escalates: true } : {}),
  };
}

/** A local activity keeps its workflow task open, so a batch reports after a quarter of a second. */
const longestBatchMs = 5_000;

function batchActivity(summary: string): Activities['executeInline'] {
  return proxyLocalActivities<Activities>({
    summary,
    scheduleToCloseTimeout: longestBatchMs,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { maximumAttempts: 1 },
  }).executeInline;
}
