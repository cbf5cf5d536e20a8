/** What an execution for a step works with: the step as its pipeline has it, its inputs so far, and what is known. */
import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import type { Json, Priority } from '../../../contracts/primitives.ts';
import { capabilityOf } from '../../../core/definition/step-kind.ts';
import { isEqual } from '../../../core/expression/equality.ts';
import { signalsOfStep } from '../../../core/skills/signals.ts';
import { findProtectedChange } from '../../../core/skills/template/protected.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalatedStep, EscalationRow } from '../../../db/escalation/escalation.ts';
import { listStepRevisions } from '../../../db/step/step-revision.ts';
import { AppError } from '../../../errors/app-error.ts';
import type { SpecTarget } from '../../registry/present-specs.ts';
import type { RunContexts } from '../../run-data/run-context.ts';
import type { PresentSpec, PresentSpecs } from '../levels/present-spec.ts';
import { readLadder, type StoredLadder, stepOf } from './stored-ladder.ts';

export interface StepTask {
  readonly row: EscalationRow;
  readonly ladder: StoredLadder;
  readonly step: EscalatedStep;
  readonly definition: StepDefinition;
  readonly priority: Priority;
  readonly spec: PresentSpec | null;
  /** The author's input. */
  readonly original: Json;
  /** The input that failed last. */
  readonly current: Json;
  /** Of `current`. */
  readonly revision: number;
  readonly signals: readonly string[];
  /** Inputs that have failed. */
  readonly failed: readonly Json[];
  readonly error: string | null;
}

export interface TaskDependencies {
  readonly db: Db;
  readonly contexts: RunContexts;
  readonly specs: PresentSpecs;
}

export function findStepDefinition(
  { steps }: Pick<PipelineDefinition, 'steps'>,
  stepId: string,
): StepDefinition {
  const found = steps.find(({ id }) => id === stepId);
  if (found === undefined) throw new AppError('not_found', `the pipeline has no step ${stepId}`);
  return found;
}

export function specTargetOf({ capability_version, tags, ...step }: StepDefinition): SpecTarget {
  return {
    capability: capabilityOf(step),
    versionRange: capability_version ?? null,
    tags: tags ?? [],
  };
}

/** @param transition whose own corrections have not failed yet */
export async function readStepTask(
  { db, contexts, specs }: TaskDependencies,
  row: EscalationRow,
): Promise<StepTask> {
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
  const signals = signalsOfStep({
    capability: capabilityOf(definition),
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
    priority: context.priority,
    spec,
    original,
    current: earlier.at(-1)?.input ?? original,
    revision: earlier.at(-1)?.revision ?? ladder.revision,
    signals: [...new Set([...row.signals, ...signals])],
    failed: [original, ...earlier.map(({ input }) => input)],
    error: ladder.history.at(-1)?.error ?? null,
  };
}

export type CorrectionFault = {
  readonly code: 'input_invalid' | 'change_refused' | 'tried';
  readonly message: string;
};

/** Why a corrected input is not executed; null when it may be. @param isDecided a person may repeat an input */
export function findCorrectionFault(
  { spec, original, failed }: StepTask,
  input: Json,
  isDecided = false,
): CorrectionFault | null {
  const change = findProtectedChange(original, input);
  if (change !== null && !isDecided) {
    const message = `the corrected input is refused: ${change.pointer || '/'} ${change.reason}`;
    return { code: 'change_refused', message };
  }
  const findings = spec?.find(input) ?? [];
  if (findings.length > 0) {
    const seen = findings.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
    const message = `the corrected input does not match the input schema: ${seen}`;
    return { code: 'input_invalid', message };
  }
  const isTried = !isDecided && failed.some((one) => isEqual(one, input));
  return isTried ? { code: 'tried', message: 'this input has failed before' } : null;
}
