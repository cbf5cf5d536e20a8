/**
 * The ports of a run against mocks, with all state in memory. A unit runs as far as it can, and returns an end or a
 * wait; when resumed after the wait, it continues from there.
 */
import type { StepDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { findPipeline } from '../definition/checks/check-availability.ts';
import { parseDuration } from '../duration.ts';
import { summarizeFindings } from '../json/values.ts';
import { endOfQuestion } from '../ladder/human-review.ts';
import { endWithoutEvent, eventTimeoutOf, listStepsBefore, toEventKey } from '../outside-events/rules.ts';
import type { RunPorts, Unit, UnitEnd, UnitResult } from '../run/drive.ts';
import type { Wait } from '../run/machine-state.ts';
import {
  ceilingOfSubRun,
  findDepthFault,
  reviewTimeoutOf,
  termsOfSubRun,
  toInput,
  toStartFailure,
  toSubRunFailure,
  toTitle,
} from '../run/step-rules.ts';
import { createSchemaCompiler } from '../schemas/schema-compiler.ts';
import { executeCallUnit } from './call-unit.ts';
import { climbUnit, followReview } from './correct-step.ts';
import {
  type EndedRun,
  isCancelled,
  type LocalRun,
  stepOf,
  type UnitName,
  type UnitRecord,
} from './local-run.ts';
import { decideStep, evaluate, judgeAnswer, judgeLocalRound } from './local-values.ts';
import { MockFault } from './mocks.ts';
import type { MockEvent } from './outside/mock-events.ts';
import { isOver, requireAction } from './outside/mock-reviewer.ts';
import {
  cancelledEnd,
  endUnit,
  listenForUnit,
  logEvent,
  moveUnit,
  openUnit,
  settleUnit,
  type UnitOutcome,
  unitOf,
  wakeUnit,
} from './run-journal.ts';

export function createLocalPorts(run: LocalRun, continueAsNew: RunPorts['continueAsNew']): RunPorts {
  const { plan, stop, climbing, world } = run;
  return {
    continueAsNew,
    restChanged: () => void Promise.resolve().then(() => run.onRest(run)),
    historyPressure: world.historyPressure,
    decide: async (steps) => steps.map(({ id }) => decideStep(run, id)),
    judgeRound: (unit) =>
      guard(
        run,
        Promise.resolve().then(() => judgeLocalRound(run, nameOf(unit))),
      ),
    executeStep: (unit) => guard(run, executeUnit(run, unit)),
    escalateStep: (unit) => guard(run, climbUnit(run, unitOf(run, nameOf(unit)))),
    resumeStep: (unit, wait) => guard(run, resumeUnit(run, unit, wait)),
    giveUpStep: (unit, _wait, why) => guard(run, giveUpUnit(run, unit, why)),
    callOff: (unit, why) => callOffUnit(run, nameOf(unit), why),
    judgeAnswer: (unit) => guard(run, judgeAnswer(run, nameOf(unit))),
    listen: (unit, wait) => listenForUnit(run, nameOf(unit), wait),
    record: (changes) => {
      for (const { step, item, state, error } of changes) {
        moveUnit(run, { id: plan.steps[step]?.id ?? '', item }, { state, error });
      }
    },
    cancelRunning: () => {
      stop.abort('cancelled');
      climbing.abort('cancelled');
    },
    cancelEscalations: () => climbing.abort('cancelled'),
  };
}

function nameOf({ step, item }: Unit): UnitName {
  return { id: step.id, item };
}

/** A port that throws has found a mistake in the mocks: it is reported, and the run does not continue. */
function guard<Result>({ world }: LocalRun, work: Promise<Result>): Promise<Result> {
  return work.catch((error: unknown) => {
    world.onFault(error);
    return new Promise<Result>(() => undefined);
  });
}

async function executeUnit(run: LocalRun, planned: Unit): Promise<UnitResult> {
  const unit = openUnit(run, nameOf(planned));
  const { kind, input: template } = stepOf(run, unit.id);
  if (kind === 'wait') return settleUnit(run, unit, pause(run, unit));
  if (kind === 'event') return settleUnit(run, unit, awaitEvent(run, unit));
  const evaluated = evaluate(run, template, unit);
  const resolved = 'error' in evaluated ? evaluated : toInput(evaluated.value);
  if ('error' in resolved) return endUnit(run, unit, { state: 'failed', error: resolved.error });
  const input = resolved.value;
  if (kind === 'set') return settleUnit(run, unit, { state: 'succeeded', output: input });
  if (kind === 'call') {
    return executeCallUnit(run, unit, { input, escalates: planned.step.escalates === true });
  }
  return settleUnit(run, unit, kind === 'run' ? executeSubRun(run, unit, input) : askPerson(run, unit));
}

function resumeUnit(run: LocalRun, planned: Unit, { ladder, awaiting }: Wait): Promise<UnitResult> {
  if (ladder !== true) return executeUnit(run, planned);
  const unit = unitOf(run, nameOf(planned));
  return awaiting === 'review' ? followReview(run, unit) : climbUnit(run, unit);
}

/** Its end is known before its call has stopped, as on a server. */
function callOffUnit(run: LocalRun, name: UnitName, why: Failure): void {
  const unit = unitOf(run, name);
  moveUnit(run, unit, { state: 'cancelled', error: why });
  unit.stop?.abort('cancelled');
}

async function giveUpUnit(run: LocalRun, planned: Unit, why?: Failure): Promise<UnitEnd> {
  const unit = unitOf(run, nameOf(planned));
  unit.subRun?.driven?.send({ type: 'cancel_requested' });
  leaveLine(run, unit);
  if (unit.event !== undefined) run.world.outside.leave(unit.event);
  if (why !== undefined) return endUnit(run, unit, { state: 'cancelled', error: why });
  const error = unit.ladder?.failure;
  const isCalledOff = isCancelled(run) || error === undefined;
  return endUnit(run, unit, isCalledOff ? cancelledEnd : { state: 'failed', error });
}

function leaveLine({ world: { fleet } }: LocalRun, { queued }: UnitRecord): void {
  if (queued === undefined) return;
  fleet.lines.leave(queued);
  fleet.lines.serve(new Set([queued.route.capability]));
}

function pause(run: LocalRun, unit: UnitRecord): UnitOutcome {
  const { wait = '0s' } = stepOf(run, unit.id).definition;
  const until = (unit.startedAt ?? 0) + parseDuration(wait);
  return run.world.time.now() >= until
    ? { state: 'succeeded', output: null }
    : { state: 'waiting', wait: { awaiting: 'time', until, ref: null } };
}

/** The output of a step that waits for an event is the payload. */
function awaitEvent(run: LocalRun, unit: UnitRecord): UnitOutcome {
  const { definition, key } = stepOf(run, unit.id);
  const { name = '', key: written, schema = {} } = definition.event ?? {};
  if (unit.event === undefined) {
    const value = key === null ? { value: written ?? '' } : evaluate(run, key, unit);
    const found = written === undefined ? { value: '' } : toEventKey(value);
    if ('error' in found) return { state: 'failed', error: found.error };
    unit.event = run.world.outside.wait({
      name,
      key: found.value,
      schema,
      dueAt: run.world.time.now() + parseDuration(eventTimeoutOf(definition)),
      since: run.beganAt,
      takenBefore: listTakenBefore(run, unit),
      wake: () => wakeUnit(run, unit),
    });
  }
  const { event, dueAt: until } = unit.event;
  if (event !== null) return { state: 'succeeded', output: event.payload };
  if (run.world.time.now() < until) {
    return { state: 'waiting', wait: { awaiting: 'event', until, ref: { event: name } } };
  }
  run.world.outside.leave(unit.event);
  return endWithoutEvent(definition, unit.event);
}

/** V3 */
function listTakenBefore(run: LocalRun, { id }: UnitName): Set<MockEvent> {
  const units = listStepsBefore(run.compiled, id).flatMap((before) => [
    ...(run.units.get(before)?.values() ?? []),
  ]);
  return new Set(units.flatMap(({ event }) => event?.event ?? []));
}

/** A step that runs another pipeline: starts the run once, waits for it, and takes its output. */
function executeSubRun(run: LocalRun, unit: UnitRecord, job: JsonObject): UnitOutcome {
  const terms = termsOfSubRun(stepOf(run, unit.id).definition, run);
  const { reference, priority, depth } = terms;
  const tooDeep = findDepthFault(depth);
  if (tooDeep !== null) return { state: 'failed', error: toStartFailure(reference, tooDeep) };
  if (unit.subRun === undefined) {
    const definition = findPipeline(run.world.pipelines, reference);
    if (definition === undefined) {
      throw new MockFault(`there is no pipeline ${reference}; name its file in pipelines`);
    }
    const ceilingUsd = ceilingOfSubRun(terms, definition);
    const onEnd = (): void => wakeUnit(run, unit);
    const onRest = (child: ChildOfUnit): void => tellRest(run, unit, child);
    const order = { definition, job, depth, priority, ceilingUsd, above: run.budget, onEnd, onRest };
    unit.subRun = run.world.startRun(run.world, order);
  }
  const { ended, budget, runId } = unit.subRun;
  unit.costNano = budget.spentNano();
  return ended === null
    ? { state: 'waiting', wait: { awaiting: 'run', until: null, ref: { run_id: runId } } }
    : takeSubRun(ended, { run_id: runId, pipeline: reference });
}

type ChildOfUnit = Pick<LocalRun, 'runId' | 'driven'>;

function tellRest({ driven, compiled }: LocalRun, { id, item }: UnitRecord, child: ChildOfUnit): void {
  const step = compiled.indexOf.get(id) ?? 0;
  const rests = child.driven?.state.isAtRest === true;
  driven?.send({ type: 'child_rest', step, item, child: child.runId, rests });
}

function takeSubRun(
  { outcome, error, output = null }: EndedRun,
  named: { readonly run_id: string; readonly pipeline: string },
): UnitOutcome {
  if (outcome === 'succeeded') return { state: 'succeeded', output };
  const isRefused = outcome === 'refused' && error !== null;
  return {
    state: 'failed',
    error: isRefused
      ? toStartFailure(named.pipeline, error)
      : toSubRunFailure({ ...named, state: outcome, error }),
  };
}

/** The output of a review step is the person's answer. */
function askPerson(run: LocalRun, unit: UnitRecord): UnitOutcome {
  const { definition, title } = stepOf(run, unit.id);
  const { reviewer, time } = run.world;
  const dueMs = parseDuration(reviewTimeoutOf(definition));
  const asked = title === null ? null : toTitle(evaluate(run, title, unit));
  if (asked !== null && 'error' in asked) return { state: 'failed', error: asked.error };
  unit.review ??= reviewer.open({ kind: 'step', step: unit.id }, dueMs, () => wakeUnit(run, unit));
  const { review } = unit;
  if (!isOver(review, time.now())) {
    const { dueAt: until, review_id: ref } = review;
    return { state: 'waiting', wait: { awaiting: 'review', until, ref } };
  }
  const { decision } = review;
  if (decision === null) return endOfUnanswered(definition);
  logEvent(run, { type: 'step.reviewed', unit, data: { action: decision.action } });
  requireAction(definition, { ...review, decision });
  const end = endOfQuestion(decision);
  if (end.state === 'succeeded') requireAnswer(definition, end.output);
  return end;
}

function endOfUnanswered(step: StepDefinition): UnitEnd {
  if (step.review?.on_timeout === 'skip') return { state: 'skipped' };
  const message = `nobody decided within ${reviewTimeoutOf(step)}`;
  return { state: 'failed', error: { code: 'step_timeout', message } };
}

/** @throws MockFault where the API would refuse the answer */
function requireAnswer({ id, review }: StepDefinition, output: Json): void {
  const faults = createSchemaCompiler().compile(review?.schema ?? {})(output);
  if (faults.length === 0) return;
  const seen = summarizeFindings(faults);
  throw new MockFault(`the output decided for step ${id} does not match its schema: ${seen}`);
}
