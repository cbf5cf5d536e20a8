/**
 * The ports of a local run: everything they do stays in memory. A step that asks a person has the answer as its
 * output.
 */

import type { StepDefinition } from '../contracts/pipeline.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { resolveStepSettings } from '../core/definition/step-settings.ts';
import { parseDuration } from '../core/duration.ts';
import { rejectedByPerson } from '../core/ladder/human-review.ts';
import type { RunPorts, Unit, UnitEnd } from '../core/run/drive.ts';
import type { RunPlan } from '../core/run/plan.ts';
import { findDepthFault, toStartFailure, toSubRunFailure } from '../core/run/step-failures.ts';
import { createSchemaCompiler } from '../schemas/schema-compiler.ts';
import { createCallUnits, type Executed } from './call-unit.ts';
import {
  decideStep,
  type EndedRun,
  evaluate,
  type LocalContext,
  type SubRun,
  stepOf,
} from './local-context.ts';
import { type MockReview, requireAction } from './mock-reviewer.ts';
import { type MockDecision, MockFault } from './mocks.ts';
import {
  cancelledEnd,
  createUnitResults,
  keyOfUnit,
  type RunWaits,
  type UnitName,
  type UnitRecord,
  type UnitResults,
} from './run-journal.ts';

/** What belongs to whoever drives the run. */
type DriverPorts = Pick<RunPorts, 'historyPressure' | 'continueAsNew'>;

/** The ports of a local run: everything they do stays in memory. */
export function createLocalPorts(
  context: LocalContext,
  plan: RunPlan,
  waits: RunWaits,
  { onFault, ...driver }: DriverPorts & { readonly onFault: (error: unknown) => void },
): RunPorts {
  const { journal, stop, climbing } = context;
  return {
    ...driver,
    ...guardPorts(createUnitPorts(context), onFault),
    decide: async (steps) => steps.map(({ id }) => decideStep(context, id)),
    listen: ({ step, item }, wait) => waits.listen({ id: step.id, item }, wait),
    record: (changes) => {
      for (const { step, item, state, error } of changes) {
        const id = plan.steps[step]?.id ?? '';
        journal.move({ id, item }, state, error === undefined ? {} : { error });
      }
    },
    cancelRunning: () => {
      stop.abort('cancelled');
      climbing.abort('cancelled');
    },
    cancelEscalations: () => climbing.abort('cancelled'),
  };
}

type UnitPorts = Pick<RunPorts, 'executeStep' | 'escalateStep' | 'resumeStep' | 'giveUpStep'>;

function nameOf({ step, item }: Unit): UnitName {
  return { id: step.id, item };
}

/**
 * One step, or one item of it, whatever its kind: makes it happen as far as it can, and answers an end or what it waits
 * for. Come again when the wait is over, it goes on where it was. All it answers is in the journal already.
 */
function createUnitPorts(context: LocalContext): UnitPorts {
  const { journal, scope, world } = context;
  const results = createUnitResults(journal);
  const calls = createCallUnits(context, results);
  const subRuns = createSubRunUnits(context, results);
  const askPerson = createReviewUnits(context, results);

  const pause = (unit: UnitRecord): Executed => {
    const { wait = '0s' } = stepOf(context, unit.id).definition;
    const until = (unit.startedAt ?? 0) + parseDuration(wait);
    if (world.time.now() >= until) return results.succeed(unit, null);
    return results.wait(unit, { awaiting: 'time', until, ref: null });
  };

  const execute = async (planned: Unit): Promise<Executed> => {
    const unit = journal.open(nameOf(planned));
    const { kind, input } = stepOf(context, unit.id);
    if (kind === 'wait') return pause(unit);
    const resolved = evaluate(input, scope, journal, unit);
    if ('error' in resolved) return results.end(unit, { state: 'failed', error: resolved.error });
    const value = resolved.value as JsonObject;
    switch (kind) {
      case 'call':
        return calls.execute(unit, value, planned.step.escalates === true);
      case 'run':
        return subRuns.execute(unit, value);
      case 'review':
        return askPerson(unit);
    }
  };

  return {
    executeStep: execute,
    escalateStep: (planned) => calls.climb(nameOf(planned)),
    resumeStep: (planned, { ladder }) => (ladder === true ? calls.follow(nameOf(planned)) : execute(planned)),
    giveUpStep: async (planned): Promise<UnitEnd> => {
      const unit = nameOf(planned);
      subRuns.cancel(unit);
      const error = calls.failureOf(unit);
      return results.end(
        unit,
        context.isCancelled() || error === undefined ? cancelledEnd : { state: 'failed', error },
      );
    },
  };
}

const defaultTimeout = '24h';

/** @returns asks, or follows what was answered */
function createReviewUnits(context: LocalContext, results: UnitResults): (unit: UnitRecord) => Executed {
  const { world, journal, reviewer } = context;
  const reviews = new Map<string, MockReview>();

  const open = (unit: UnitRecord, { review }: StepDefinition): MockReview => {
    const dueMs = parseDuration(review?.timeout ?? defaultTimeout);
    const opened = reviewer.open({ step: unit.id }, dueMs, () => context.wake(unit));
    reviews.set(keyOfUnit(unit), opened);
    return opened;
  };

  const follow = (unit: UnitRecord, step: StepDefinition, decision: MockDecision): Executed => {
    journal.log('step.reviewed', unit, { action: decision.action });
    const payload = { optional: step.optional ?? false };
    requireAction(
      unit.id,
      { kind: 'step', run_id: context.runId, subject: null, escalation_id: null, payload },
      decision,
    );
    if (decision.action === 'reject') {
      return results.end(unit, { state: 'failed', error: rejectedByPerson(decision.note) });
    }
    if (decision.action === 'skip') return results.end(unit, { state: 'skipped' });
    return results.succeed(unit, requireOutput(step, decision));
  };

  return (unit) => {
    const { definition } = stepOf(context, unit.id);
    const review = reviews.get(keyOfUnit(unit)) ?? open(unit, definition);
    const { decision, dueAt, review_id } = review;
    if (decision !== null) return follow(unit, definition, decision);
    if (dueAt !== null && world.time.now() >= dueAt) return expire(results, unit, definition);
    return results.wait(unit, { awaiting: 'review', until: dueAt, ref: review_id });
  };
}

function expire(results: UnitResults, unit: UnitRecord, { review }: StepDefinition): Executed {
  if (review?.on_timeout === 'skip') return results.end(unit, { state: 'skipped' });
  return results.fail(unit, 'step_timeout', `nobody decided within ${review?.timeout ?? defaultTimeout}`);
}

/** @throws MockFault as the API would refuse it */
function requireOutput({ id, review }: StepDefinition, { output = null }: MockDecision): Json {
  const faults = createSchemaCompiler().compile(review?.schema ?? {})(output);
  if (faults.length === 0) return output;
  const seen = faults.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  throw new MockFault(`the output decided for step ${id} does not match its schema: ${seen}`);
}

interface SubRunUnits {
  execute(unit: UnitRecord, job: JsonObject): Executed;
  /** Nobody waits for it any more. */
  cancel(unit: UnitName): void;
}

/** A step that is a run of another pipeline: started once, waited for, its output taken. */
function createSubRunUnits(context: LocalContext, results: UnitResults): SubRunUnits {
  const { world, depth } = context;
  const known = new Map<string, SubRun>();

  const start = ({ id, item }: UnitName, reference: string, job: JsonObject): SubRun => {
    const definition = world.findPipeline(reference);
    if (definition === undefined) {
      throw new MockFault(`there is no pipeline ${reference}; name its file in pipelines`);
    }
    const step = stepOf(context, id).definition;
    const settings = resolveStepSettings(context.definition, step);
    const sub = world.startSubRun({
      definition,
      job,
      depth: depth + 1,
      priority: settings.priority ?? context.priority,
      ceilingUsd: step.budget_ceiling_usd ?? null,
      above: context.budget,
      onEnd: () => context.wake({ id, item }),
    });
    known.set(keyOfUnit({ id, item }), sub);
    return sub;
  };

  const take = (unit: UnitRecord, reference: string, run_id: string, ended: EndedRun): UnitEnd => {
    const { outcome, error, output = null } = ended;
    if (outcome === 'succeeded') return results.succeed(unit, output);
    const failure =
      outcome === 'refused' && error !== null
        ? toStartFailure(reference, error)
        : toSubRunFailure({ run_id, pipeline: reference, state: outcome, error });
    return results.end(unit, { state: 'failed', error: failure });
  };

  return {
    execute: (unit, job) => {
      const reference = stepOf(context, unit.id).definition.pipeline ?? '';
      const tooDeep = findDepthFault(depth + 1);
      if (tooDeep !== null) {
        return results.end(unit, { state: 'failed', error: toStartFailure(reference, tooDeep) });
      }
      const sub = known.get(keyOfUnit(unit)) ?? start(unit, reference, job);
      const ended = sub.end();
      unit.costNano = sub.spentNano();
      return ended === null
        ? results.wait(unit, { awaiting: 'run', until: null, ref: sub.runId })
        : take(unit, reference, sub.runId, ended);
    },
    cancel: (unit) => known.get(keyOfUnit(unit))?.cancel(),
  };
}

/** A port that throws has met a mistake of the mocks: it is told, and the run does not go on from there. */
function guardPorts(
  { executeStep, escalateStep, resumeStep, giveUpStep }: UnitPorts,
  onFault: (error: unknown) => void,
): UnitPorts {
  const safe =
    <Rest extends readonly unknown[], Result>(port: (unit: Unit, ...rest: Rest) => Promise<Result>) =>
    (unit: Unit, ...rest: Rest): Promise<Result> =>
      port(unit, ...rest).catch((error: unknown) => {
        onFault(error);
        return new Promise<Result>(() => undefined);
      });
  return {
    executeStep: safe(executeStep),
    escalateStep: safe(escalateStep),
    resumeStep: safe(resumeStep),
    giveUpStep: safe(giveUpStep),
  };
}
