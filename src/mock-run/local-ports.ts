/**
 * The ports of a run against mocks: everything they do stays in memory. A unit happens as far as it can, and answers an
 * end or what it waits for; come again when the wait is over, it goes on where it was.
 */
import type { StepDefinition } from '../contracts/pipeline.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { findPipeline } from '../core/definition/checks/check-availability.ts';
import { parseDuration } from '../core/duration.ts';
import { rejectedByPerson } from '../core/ladder/human-review.ts';
import type { RunPorts, Unit, UnitEnd, UnitResult, UnitWaiting } from '../core/run/drive.ts';
import {
  ceilingOfSubRun,
  findDepthFault,
  reviewTimeoutOf,
  termsOfSubRun,
  toStartFailure,
  toSubRunFailure,
} from '../core/run/step-rules.ts';
import { createSchemaCompiler } from '../schemas/schema-compiler.ts';
import { climbUnit, executeCallUnit, followReview } from './call-unit.ts';
import { isCancelled, type LocalRun, stepOf, type UnitName, type UnitRecord } from './local-run.ts';
import { decideStep, evaluate } from './local-values.ts';
import { type MockReview, requireAction } from './mock-reviewer.ts';
import { type MockDecision, MockFault } from './mocks.ts';
import {
  cancelledEnd,
  endUnit,
  listenForUnit,
  logEvent,
  moveUnit,
  openUnit,
  unitOf,
  waitUnit,
  wakeUnit,
} from './run-journal.ts';

export function createLocalPorts(run: LocalRun, continueAsNew: RunPorts['continueAsNew']): RunPorts {
  const { plan, stop, climbing, world } = run;
  return {
    continueAsNew,
    historyPressure: world.historyPressure,
    decide: async (steps) => steps.map(({ id }) => decideStep(run, id)),
    executeStep: (unit) => guard(run, executeUnit(run, unit)),
    escalateStep: (unit) => guard(run, climbUnit(run, unitOf(run, nameOf(unit)))),
    resumeStep: (unit, { ladder }) => guard(run, resumeUnit(run, unit, ladder === true)),
    giveUpStep: (unit) => guard(run, giveUpUnit(run, unit)),
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

/** A port that throws has met a mistake of the mocks: it is told, and the run does not go on from there. */
function guard<Result>({ world }: LocalRun, work: Promise<Result>): Promise<Result> {
  return work.catch((error: unknown) => {
    world.onFault(error);
    return new Promise<Result>(() => undefined);
  });
}

async function executeUnit(run: LocalRun, planned: Unit): Promise<UnitResult> {
  const unit = openUnit(run, nameOf(planned));
  const { kind, input: template } = stepOf(run, unit.id);
  if (kind === 'wait') return pause(run, unit);
  const resolved = evaluate(run, template, unit);
  if ('error' in resolved) return endUnit(run, unit, { state: 'failed', error: resolved.error });
  const input = resolved.value as JsonObject;
  switch (kind) {
    case 'call':
      return executeCallUnit(run, unit, { input, escalates: planned.step.escalates === true });
    case 'run':
      return executeSubRun(run, unit, input);
    case 'review':
      return askPerson(run, unit);
  }
}

function resumeUnit(run: LocalRun, planned: Unit, isLadder: boolean): Promise<UnitResult> {
  return isLadder ? followReview(run, unitOf(run, nameOf(planned))) : executeUnit(run, planned);
}

async function giveUpUnit(run: LocalRun, planned: Unit): Promise<UnitEnd> {
  const unit = unitOf(run, nameOf(planned));
  unit.subRun?.driven?.send({ type: 'cancel_requested' });
  const error = unit.ladder?.failure;
  return endUnit(
    run,
    unit,
    isCancelled(run) || error === undefined ? cancelledEnd : { state: 'failed', error },
  );
}

type Executed = UnitEnd | UnitWaiting;

function pause(run: LocalRun, unit: UnitRecord): Executed {
  const { wait = '0s' } = stepOf(run, unit.id).definition;
  const until = (unit.startedAt ?? 0) + parseDuration(wait);
  if (run.world.time.now() >= until) return endUnit(run, unit, { state: 'succeeded', output: null });
  return waitUnit(run, unit, { awaiting: 'time', until, ref: null });
}

/** A step that is a run of another pipeline: started once, waited for, its output taken. */
function executeSubRun(run: LocalRun, unit: UnitRecord, job: JsonObject): Executed {
  const terms = termsOfSubRun(stepOf(run, unit.id).definition, run);
  const { reference, priority, depth } = terms;
  const tooDeep = findDepthFault(depth);
  if (tooDeep !== null) {
    return endUnit(run, unit, { state: 'failed', error: toStartFailure(reference, tooDeep) });
  }
  if (unit.subRun === undefined) {
    const definition = findPipeline(run.world.pipelines, reference);
    if (definition === undefined) {
      throw new MockFault(`there is no pipeline ${reference}; name its file in pipelines`);
    }
    const ceilingUsd = ceilingOfSubRun(terms, definition);
    const onEnd = (): void => wakeUnit(run, unit);
    const order = { definition, job, depth, priority, ceilingUsd, above: run.budget, onEnd };
    unit.subRun = run.world.startRun(run.world, order);
  }
  const { ended, budget, runId } = unit.subRun;
  unit.costNano = budget.spentNano();
  return ended === null
    ? waitUnit(run, unit, { awaiting: 'run', until: null, ref: runId })
    : takeSubRun(run, unit, unit.subRun);
}

function takeSubRun(run: LocalRun, unit: UnitRecord, { runId: run_id, ended }: LocalRun): UnitEnd {
  const { outcome = 'waiting', error = null, output = null } = ended ?? {};
  if (outcome === 'succeeded') return endUnit(run, unit, { state: 'succeeded', output });
  const { pipeline = '' } = stepOf(run, unit.id).definition;
  const failure =
    outcome === 'refused' && error !== null
      ? toStartFailure(pipeline, error)
      : toSubRunFailure({ run_id, pipeline, state: outcome, error });
  return endUnit(run, unit, { state: 'failed', error: failure });
}

/** A step that asks a person has the answer as its output. */
function askPerson(run: LocalRun, unit: UnitRecord): Executed {
  const { definition } = stepOf(run, unit.id);
  unit.review ??= openReview(run, unit, definition);
  const { decision, dueAt, review_id } = unit.review;
  if (decision !== null) return follow(run, unit, decision);
  if (dueAt !== null && run.world.time.now() >= dueAt) return expire(run, unit, definition);
  return waitUnit(run, unit, { awaiting: 'review', until: dueAt, ref: review_id });
}

function openReview(run: LocalRun, unit: UnitRecord, step: StepDefinition): MockReview {
  const dueMs = parseDuration(reviewTimeoutOf(step));
  return run.world.reviewer.open({ step: unit.id }, dueMs, () => wakeUnit(run, unit));
}

function follow(run: LocalRun, unit: UnitRecord, decision: MockDecision): UnitEnd {
  const { definition } = stepOf(run, unit.id);
  const { action, note } = decision;
  logEvent(run, { type: 'step.reviewed', unit, data: { action } });
  const payload = { optional: definition.optional ?? false };
  const matter = { kind: 'step', run_id: run.runId, subject: null, escalation_id: null, payload } as const;
  requireAction(unit.id, matter, decision);
  if (action === 'reject') return endUnit(run, unit, { state: 'failed', error: rejectedByPerson(note) });
  if (action === 'skip') return endUnit(run, unit, { state: 'skipped' });
  return endUnit(run, unit, { state: 'succeeded', output: requireOutput(definition, decision) });
}

function expire(run: LocalRun, unit: UnitRecord, step: StepDefinition): UnitEnd {
  if (step.review?.on_timeout === 'skip') return endUnit(run, unit, { state: 'skipped' });
  const message = `nobody decided within ${reviewTimeoutOf(step)}`;
  return endUnit(run, unit, { state: 'failed', error: { code: 'step_timeout', message } });
}

/** @throws MockFault as the API would refuse it */
function requireOutput({ id, review }: StepDefinition, { output = null }: MockDecision): Json {
  const faults = createSchemaCompiler().compile(review?.schema ?? {})(output);
  if (faults.length === 0) return output;
  const seen = faults.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  throw new MockFault(`the output decided for step ${id} does not match its schema: ${seen}`);
}
