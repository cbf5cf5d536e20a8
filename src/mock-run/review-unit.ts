/** A step that asks a person: the answer becomes its output. */
import type { StepDefinition } from '../contracts/pipeline.ts';
import type { Json } from '../contracts/primitives.ts';
import { parseDuration } from '../core/duration.ts';
import { rejectedByPerson } from '../core/ladder/stop-reason.ts';
import { createSchemaCompiler } from '../schemas/schema-compiler.ts';
import type { Executed } from './call-unit.ts';
import { type LocalContext, stepOf } from './local-context.ts';
import { MockFault } from './mock-fault.ts';
import { type MockReview, requireAction } from './mock-reviewer.ts';
import type { MockDecision } from './mocks.ts';
import type { UnitRecord } from './run-journal.ts';
import { keyOfUnit, type UnitResults } from './unit-results.ts';

const defaultTimeout = '24h';

/** @returns asks, or follows what was answered */
export function createReviewUnits(
  context: LocalContext,
  results: UnitResults,
): (unit: UnitRecord) => Executed {
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
