/**
 * The state of a local run's steps and items, and its log; a server keeps these in rows of the database. An end is
 * written once. A waiting unit wakes at its deadline or when its wait is satisfied; a wake before the wait is
 * remembered.
 */
import type { EventType } from '../contracts/event.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import type { StepState } from '../contracts/run-step.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import type { UnitEnd, UnitWaiting } from '../run/drive.ts';
import { endedStepStates } from '../run/ended-steps.ts';
import type { Wait } from '../run/machine-state.ts';
import type { LocalRun, LocalStep, UnitName, UnitRecord } from './local-run.ts';

export function findUnit({ units }: LocalRun, { id, item }: UnitName): UnitRecord | undefined {
  return units.get(id)?.get(item);
}

/** The record of a unit; creates it if missing. */
export function unitOf(run: LocalRun, { id, item }: UnitName): UnitRecord {
  const known = findUnit(run, { id, item });
  if (known !== undefined) return known;
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
    isSkipped: false,
    stopListening: null,
    isWoken: false,
  };
  const units = run.units.get(id) ?? new Map<number, UnitRecord>();
  run.units.set(id, units.set(item, record));
  return record;
}

/** Begins the unit if it has not begun. */
export function openUnit(run: LocalRun, unit: UnitName): UnitRecord {
  const known = findUnit(run, unit);
  if (known?.startedAt != null) return known;
  moveUnit(run, unit, { state: 'running' });
  return unitOf(run, unit);
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

interface UnitMove {
  readonly state: StepState;
  readonly output?: Json | undefined;
  readonly error?: Failure | undefined;
  /** Data of the event; default: the error. */
  readonly data?: Json;
}

/** Changes the state of a unit, and logs the event. */
export function moveUnit(run: LocalRun, unit: UnitName, { state, output, error, data }: UnitMove): void {
  const record = unitOf(run, unit);
  if (endedStepStates.has(record.state)) return;
  record.state = state;
  if (output !== undefined) record.output = output;
  if (error !== undefined) record.error = error;
  if (state === 'succeeded' || state === 'skipped') delete record.error;
  if (endedStepStates.has(state)) record.finishedAt = run.world.time.now();
  else record.startedAt ??= run.world.time.now();
  const type = eventOf[state];
  if (type === undefined) return;
  logEvent(run, { type, unit, data: data ?? (error === undefined ? {} : { error: { ...error } }) });
}

interface NewEvent {
  readonly type: EventType;
  /** Absent: the event is about the run. */
  readonly unit?: UnitName;
  readonly data?: Json;
}

export function logEvent({ events, world, beganAt }: LocalRun, { type, unit, data = {} }: NewEvent): void {
  events.push({
    seq: events.length + 1,
    at_ms: world.time.now() - beganAt,
    type,
    ...(unit === undefined ? {} : { step_id: unit.id }),
    ...(unit === undefined || unit.item === 0 ? {} : { item: unit.item }),
    data,
  });
}

export const cancelledEnd = {
  state: 'cancelled',
  error: { code: 'run_cancelled', message: 'the step was cancelled' },
} as const satisfies UnitEnd;

type OutputEnd = UnitEnd & { readonly output?: Json };

/** The result of a unit so far: its end, or its wait. */
export type UnitOutcome = OutputEnd | UnitWaiting;

export function endUnit(run: LocalRun, unit: UnitName, { output, ...end }: OutputEnd): UnitEnd {
  moveUnit(run, unit, { ...end, output });
  return end;
}

export function settleUnit(run: LocalRun, unit: UnitName, outcome: UnitOutcome): UnitEnd | UnitWaiting {
  if (outcome.state !== 'waiting') return endUnit(run, unit, outcome);
  moveUnit(run, unit, { state: 'waiting', data: { awaiting: outcome.wait.awaiting } });
  return outcome;
}

/** Wakes a unit whose wait may be satisfied. */
export function wakeUnit(run: LocalRun, name: UnitName): void {
  const unit = unitOf(run, name);
  if (unit.stopListening === null) {
    unit.isWoken = true;
    return;
  }
  unit.stopListening();
  unit.stopListening = null;
  run.driven?.send({ type: 'step_woken', step: run.compiled.indexOf.get(unit.id) ?? 0, item: unit.item });
}

export function listenForUnit(run: LocalRun, name: UnitName, { until }: Wait): void {
  const unit = unitOf(run, name);
  const wake = (): void => wakeUnit(run, unit);
  unit.stopListening?.();
  unit.stopListening = until === null ? () => undefined : run.world.time.at(until, wake);
  if (!unit.isWoken) return;
  unit.isWoken = false;
  void Promise.resolve().then(wake);
}

/** The items of a step by number, from 1, without those that never began. */
function itemsOf({ units }: LocalRun, id: string): ReadonlyMap<number, UnitRecord> {
  return new Map([...(units.get(id) ?? [])].filter(([item]) => item > 0).sort(([a], [b]) => a - b));
}

/**
 * The output of the unit; for a step with `for_each` the list of its items' outputs, with null for an item without one.
 */
export function outputOf(run: LocalRun, { id, items, output = null }: UnitRecord): Json {
  if (items === undefined) return output;
  const done = itemsOf(run, id);
  return items.map((_, index) => {
    const item = done.get(index + 1);
    return item?.state === 'succeeded' ? (item.output ?? null) : null;
  });
}

/** The cost of a step, including its items or rounds. */
export function costOf(run: LocalRun, { id, item, costNano }: UnitRecord): bigint {
  if (item > 0) return costNano;
  return [...itemsOf(run, id).values()].reduce((sum, item) => sum + item.costNano, costNano);
}

/** In the order of the definition, items after their step. */
export function listSteps(run: LocalRun): LocalStep[] {
  return run.definition.steps.flatMap(({ id }) => [
    toStep(run, unitOf(run, { id, item: 0 })),
    ...[...itemsOf(run, id).values()].map((item) => toStep(run, item)),
  ]);
}

function toStep(run: LocalRun, record: UnitRecord): LocalStep {
  const { id, item, state, error, attempts, startedAt, finishedAt } = record;
  return {
    id,
    item,
    state,
    ...(state === 'succeeded' ? { output: outputOf(run, record) } : {}),
    ...(error === undefined ? {} : { error }),
    attempts,
    cost_usd: fromNanoUsd(costOf(run, record)),
    started_at_ms: startedAt === null ? null : startedAt - run.beganAt,
    finished_at_ms: finishedAt === null ? null : finishedAt - run.beganAt,
  };
}
