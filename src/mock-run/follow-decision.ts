/** What a person decided about a step that failed, or that nobody did in time. */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { capabilityOf } from '../core/definition/step-settings.ts';
import { proposeCorrections } from '../core/ladder/correction.ts';
import { followDecision, undecidedFailure } from '../core/ladder/human-review.ts';
import type { SchemaFinding } from '../core/repair/candidate.ts';
import type { ReviewMatter } from '../core/review-actions.ts';
import { type ClimbEnd, climb, inReview, taskOf } from './correct-step.ts';
import type { AskedMock, ClimbingStep, LocalRun } from './local-run.ts';
import { requireAction } from './mock-reviewer.ts';
import type { MockDecision } from './mocks.ts';
import { MockFault } from './mocks.ts';
import { logEvent } from './run-journal.ts';

export type DecidedStep = ClimbEnd & { readonly output?: Json };

/** Goes on with a step whose review is over. */
export async function resumeReviewed(run: LocalRun, climbing: ClimbingStep): Promise<DecidedStep> {
  const { review, unit, failure } = climbing;
  if (review === null) throw new MockFault(`nobody was asked about step ${unit.id}`);
  const { decision, dueAt } = review.asked;
  const isOver = decision !== null || run.world.time.now() >= (dueAt ?? Infinity);
  if (!isOver) return inReview(run, climbing, review.asked);
  logEvent(run, { type: 'step.reviewed', unit, data: { action: decision?.action ?? 'expired' } });
  if (decision === null) return { state: 'failed', error: undecidedFailure(failure) };
  return follow(run, { climbing, review, decision });
}

interface ReviewedStep {
  readonly climbing: ClimbingStep;
  readonly review: AskedMock;
  readonly decision: MockDecision;
}

async function follow(run: LocalRun, { climbing, review, decision }: ReviewedStep): Promise<DecidedStep> {
  requireAction(climbing.unit.id, matterOf(run, climbing, review), decision);
  const { review_id, round } = review.asked;
  const outcome = await followDecision(climbing.ladder, decision, {
    review_id,
    round,
    input: decidedInput(run, climbing, decision),
    level: climbing.level,
    readCurrent: () => Promise.resolve(taskOf(run, climbing).current),
  });
  switch (outcome.kind) {
    case 'goes_on':
      climbing.ladder = outcome.next;
      return climb(run, climbing);
    case 'answered':
      requireOutput(run, climbing, outcome.output);
      return { state: 'succeeded', output: outcome.output };
    case 'skipped':
      return { state: 'skipped' };
    case 'failed':
      return { state: 'failed', error: outcome.error };
  }
}

function matterOf(run: LocalRun, climbing: ClimbingStep, { kind }: AskedMock): ReviewMatter {
  const { allow_output = false, optional = false } = climbing.step.definition;
  const proposals = proposeCorrections(taskOf(run, climbing));
  return {
    kind,
    run_id: run.runId,
    subject: null,
    escalation_id: null,
    payload: { proposals, allow_output, optional },
  };
}

/** As the API would have refused it. */
function refuse({ step }: ClimbingStep, what: string, findings: readonly SchemaFinding[]): MockFault {
  const seen = findings.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return new MockFault(`the ${what} decided for step ${step.definition.id} is not possible: ${seen}`);
}

function requireOutput({ world }: LocalRun, climbing: ClimbingStep, output: Json): void {
  const faults = world.fleet.checkOutput(capabilityOf(climbing.step.definition), output);
  if (faults.length > 0) throw refuse(climbing, 'output', faults);
}

/** @returns undefined for a decision that brings none */
function decidedInput(run: LocalRun, climbing: ClimbingStep, decision: MockDecision): JsonObject | undefined {
  if (decision.action !== 'approve' && decision.action !== 'edit') return undefined;
  const task = taskOf(run, climbing);
  const chosen =
    decision.action === 'edit' ? decision.input : proposeCorrections(task)[decision.proposal ?? 0]?.input;
  if (chosen === undefined) {
    throw new MockFault(`there is no such input to ${decision.action} for step ${climbing.unit.id}`);
  }
  const faults = task.spec?.find(chosen) ?? [];
  if (faults.length > 0) throw refuse(climbing, 'input', faults);
  return chosen as JsonObject;
}
