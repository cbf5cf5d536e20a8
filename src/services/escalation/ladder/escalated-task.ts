/** What an execution for an escalated step works with: the step as its pipeline has it, its inputs so far, and what is known. */
import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import type { Json, Priority } from '../../../contracts/primitives.ts';
import { capabilityOf } from '../../../core/definition/step-kind.ts';
import type { CorrectionTask } from '../../../core/ladder/correction.ts';
import type { Ladder } from '../../../core/ladder/ladder.ts';
import { signalsOfStep } from '../../../core/skills/signals.ts';
import type { Telemetry } from '../../../core/telemetry/telemetry.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalatedStep, EscalationRow } from '../../../db/escalation/escalation.ts';
import { type ListedRevision, listStepRevisions } from '../../../db/step/step-revision.ts';
import { AppError } from '../../../errors/app-error.ts';
import type { SpecTarget } from '../../registry/present-specs.ts';
import type { RunContexts } from '../../run-data/run-context.ts';
import type { PresentSpec, PresentSpecs } from '../levels/present-spec.ts';
import { readLadder, stepOf } from './stored-ladder.ts';

export interface EscalatedTask extends CorrectionTask {
  readonly row: EscalationRow;
  readonly ladder: Ladder;
  readonly step: EscalatedStep;
  readonly definition: StepDefinition;
  /** The priority of its calls. */
  readonly priority: Priority;
  readonly spec: PresentSpec | null;
  readonly signals: readonly string[];
  /** The last error of the history. */
  readonly error: string | null;
}

export interface TaskDependencies {
  readonly db: Db;
  readonly contexts: RunContexts;
  readonly specs: PresentSpecs;
  /** Default: nobody is told. */
  readonly telemetry?: Telemetry;
}

function findStepDefinition({ steps }: Pick<PipelineDefinition, 'steps'>, stepId: string): StepDefinition {
  const found = steps.find(({ id }) => id === stepId);
  if (found === undefined) throw new AppError('not_found', `the pipeline has no step ${stepId}`);
  return found;
}

function specTargetOf({ capability_version, tags, ...step }: StepDefinition): SpecTarget {
  return {
    capability: capabilityOf(step),
    versionRange: capability_version ?? null,
    tags: tags ?? [],
  };
}

/** A correction that nobody could be paid for has not failed. */
function listClaimed(revisions: readonly ListedRevision[]): readonly Json[] {
  return revisions.filter(({ was_claimed }) => was_claimed).map(({ input }) => input);
}

/** @param transition whose own corrections have not failed yet */
export async function readStepTask(
  { db, contexts, specs }: TaskDependencies,
  row: EscalationRow,
): Promise<EscalatedTask> {
  const step = stepOf(row) as EscalatedStep;
  const context = await contexts.open(step.run_id);
  const definition = findStepDefinition(context.definition, step.step_id);
  const [spec, revisions] = await Promise.all([
    specs.read(specTargetOf(definition)),
    listStepRevisions(db, step),
  ]);
  const earlier = revisions.filter(
    ({ escalation_id, transition }) => escalation_id !== row.escalation_id || transition !== row.transition,
  );
  const ladder = readLadder(row);
  const original = row.context;
  const capability = capabilityOf(definition);
  const signals = signalsOfStep({
    capability,
    capability_version: spec?.version ?? null,
    pipeline: context.pipeline,
    step_id: step.step_id,
    tags: definition.tags ?? [],
  });
  return {
    row,
    ladder,
    step,
    definition,
    priority: definition.priority ?? context.priority,
    capability,
    repair: ladder.policy?.repair ?? 'off',
    spec,
    original,
    current: earlier.at(-1)?.input ?? original,
    signals: [...new Set([...row.signals, ...signals])],
    failed: [original, ...listClaimed(earlier)],
    error: ladder.history.at(-1)?.error ?? null,
  };
}
