/**
 * What a local run knows of its steps and items, and its log; the part that rows of the database play otherwise.
 *
 * Where the ends and waits of a local run's steps and items are written.
 *
 * Who waits for what in a local run; a call that comes before anybody waits for it is remembered.
 */

import type { ErrorCode } from '../contracts/errors.ts';
import type { EventType } from '../contracts/event.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import type { StepState } from '../contracts/run.ts';
import { fromNanoUsd } from '../core/money/nano-usd.ts';
import type { UnitEnd, UnitWaiting } from '../core/run/drive.ts';
import { endedStepStates } from '../core/run/ended-steps.ts';
import type { Wait } from '../core/run/machine-state.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface UnitName {
  readonly id: string;
  /** 0 = the step as a whole. */
  readonly item: number;
}

export interface UnitRecord extends UnitName {
  state: StepState;
  output?: Json;
  error?: Failure;
  attempts: number;
  /** Failures that count against `retry.max`, of the input as it is now. */
  counted: number;
  /** Instances that have failed it, as it is now, and how many of those failures count. */
  readonly failedOn: Map<string, number>;
  costNano: bigint;
  startedAt: number | null;
  finishedAt: number | null;
  /** The items of a step with `for_each`. */
  items?: readonly Json[];
  /** When it began to wait for an instance. */
  missingSince?: number;
  subRunId?: string;
  reviewId?: string;
}

/** Times in ms since the run began. */
export interface LocalStep extends UnitName {
  readonly state: StepState;
  readonly output?: Json;
  readonly error?: Failure;
  readonly attempts: number;
  readonly cost_usd: number;
  readonly started_at_ms: number | null;
  readonly finished_at_ms: number | null;
}

export interface LocalEvent {
  readonly seq: number;
  readonly at_ms: number;
  readonly type: EventType;
  readonly step_id?: string;
  readonly item?: number;
  readonly data: Json;
}

type Ending = { readonly output?: Json; readonly error?: Failure };

export interface RunJournal {
  find(unit: UnitName): UnitRecord | undefined;
  /** Begins it if it has not begun. */
  open(unit: UnitName): UnitRecord;
  /** Tells of a change; an end is written once. */
  move(unit: UnitName, state: StepState, part?: Ending & { readonly data?: Json }): void;
  log(type: EventType, unit: UnitName | null, data?: Json): void;
  /** Those of a step by number, from 1; the ones that never began are missing. */
  itemsOf(id: string): ReadonlyMap<number, UnitRecord>;
  /** The output of the unit; for a step with `for_each` the list of its items' outputs, null for one that has none. */
  outputOf(record: UnitRecord): Json;
  steps(ids: readonly string[]): LocalStep[];
  readonly events: readonly LocalEvent[];
}

const eventOf: Partial<Record<StepState, EventType>> = {
  running: 'step.started',
  retrying: 'step.retrying',
  waiting: 'step.waiting',
  in_review: 'step.in_review',
  succeeded: 'step.succeeded',
  failed: 'step.failed',
  unknown: 'step.failed',
  skipped: 'step.skipped',
  cancelled: 'step.cancelled',
};

export function createRunJournal(time: VirtualTime): RunJournal {
  const began = time.now();
  const records = new Map<string, Map<number, UnitRecord>>();
  const events: LocalEvent[] = [];

  const find = ({ id, item }: UnitName): UnitRecord | undefined => records.get(id)?.get(item);

  const add = ({ id, item }: UnitName): UnitRecord => {
    const record: UnitRecord = {
      id,
      item,
      state: 'pending',
      attempts: 0,
      counted: 0,
      failedOn: new Map(),
      costNano: 0n,
      startedAt: null,
      finishedAt: null,
    };
    const units = records.get(id) ?? new Map<number, UnitRecord>();
    records.set(id, units.set(item, record));
    return record;
  };

  const log: RunJournal['log'] = (type, unit, data = {}) => {
    events.push({
      seq: events.length + 1,
      at_ms: time.now() - began,
      type,
      ...(unit === null ? {} : { step_id: unit.id, ...(unit.item === 0 ? {} : { item: unit.item }) }),
      data,
    });
  };

  const move: RunJournal['move'] = (unit, state, { output, error, data } = {}) => {
    const record = find(unit) ?? add(unit);
    if (endedStepStates.has(record.state)) return;
    record.state = state;
    if (output !== undefined) record.output = output;
    if (error !== undefined) record.error = error;
    if (state === 'succeeded' || state === 'skipped') delete record.error;
    if (endedStepStates.has(state)) record.finishedAt = time.now();
    else record.startedAt ??= time.now();
    const type = eventOf[state];
    if (type !== undefined) log(type, unit, data ?? (error === undefined ? {} : { error: { ...error } }));
  };

  const itemsOf: RunJournal['itemsOf'] = (id) =>
    new Map([...(records.get(id) ?? [])].filter(([item]) => item > 0).sort(([a], [b]) => a - b));

  const outputOf = ({ id, items, output = null }: UnitRecord): Json => {
    if (items === undefined) return output;
    const done = itemsOf(id);
    return items.map((_, index) => {
      const item = done.get(index + 1);
      return item?.state === 'succeeded' ? (item.output ?? null) : null;
    });
  };

  const toStep = (record: UnitRecord): LocalStep => ({
    id: record.id,
    item: record.item,
    state: record.state,
    ...(record.state === 'succeeded' ? { output: outputOf(record) } : {}),
    ...(record.error === undefined ? {} : { error: record.error }),
    attempts: record.attempts,
    cost_usd: fromNanoUsd(record.costNano),
    started_at_ms: record.startedAt === null ? null : record.startedAt - began,
    finished_at_ms: record.finishedAt === null ? null : record.finishedAt - began,
  });

  return {
    find,
    move,
    log,
    itemsOf,
    outputOf,
    events,
    open: (unit) => {
      const known = find(unit);
      if (known?.startedAt != null) return known;
      move(unit, 'running');
      return find(unit) as UnitRecord;
    },
    steps: (ids) =>
      ids.flatMap((id) => {
        const whole = find({ id, item: 0 }) ?? add({ id, item: 0 });
        return [toStep(whole), ...[...itemsOf(id).values()].map(toStep)];
      }),
  };
}

export interface UnitResults {
  end(unit: UnitName, ended: UnitEnd, output?: Json): UnitEnd;
  succeed(unit: UnitName, output: Json): UnitEnd;
  fail(unit: UnitName, code: ErrorCode, message: string, details?: Json): UnitEnd;
  wait(unit: UnitName, wait: Wait): UnitWaiting;
}

export function keyOfUnit({ id, item }: UnitName): string {
  return `${id}/${item}`;
}

export const cancelledEnd: UnitEnd = {
  state: 'cancelled',
  error: { code: 'run_cancelled', message: 'the step was cancelled' },
};

export function createUnitResults(journal: RunJournal): UnitResults {
  const end: UnitResults['end'] = (unit, ended, output) => {
    const part = 'error' in ended ? { error: ended.error } : output === undefined ? {} : { output };
    journal.move(unit, ended.state, part);
    return ended;
  };
  return {
    end,
    succeed: (unit, output) => end(unit, { state: 'succeeded' }, output),
    fail: (unit, code, message, details) =>
      end(unit, {
        state: 'failed',
        error: { code, message, ...(details === undefined ? {} : { details }) },
      }),
    wait: (unit, wait) => {
      journal.move(unit, 'waiting', { data: { awaiting: wait.awaiting } });
      return { state: 'waiting', wait };
    },
  };
}

export interface RunWaits {
  /** What the unit waits for is there. */
  wake(unit: UnitName): void;
  listen(unit: UnitName, wait: Wait): void;
}

/** @param tell that the wait is over */
export function createRunWaits({ at }: VirtualTime, tell: (unit: UnitName) => void): RunWaits {
  const listening = new Map<string, () => void>();
  const early = new Set<string>();

  const wake: RunWaits['wake'] = (unit) => {
    const key = keyOfUnit(unit);
    const undo = listening.get(key);
    if (undo === undefined) {
      early.add(key);
      return;
    }
    undo();
    listening.delete(key);
    tell(unit);
  };

  return {
    wake,
    listen: (unit, { until }) => {
      const key = keyOfUnit(unit);
      listening.get(key)?.();
      listening.set(key, until === null ? () => undefined : at(until, () => wake(unit)));
      if (early.delete(key)) void Promise.resolve().then(() => wake(unit));
    },
  };
}
