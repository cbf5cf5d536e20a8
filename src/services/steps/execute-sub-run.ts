/**
 * A step that is a run of another pipeline: its input is that run's job, that run's output is its own. The run is there
 * once for each execution of the step, however often it is asked for; whoever started it is told when it has ended.
 */

import { resolveStepSettings } from '../../core/definition/compile/step-settings.ts';
import { toSubRunFailure } from '../../core/run/sub-run.ts';
import { runWorkflowId } from '../../core/workflow-payloads/workflow-ids.ts';
import type { Db } from '../../db/connect.ts';
import { type EndedRun, readRunEnd } from '../../db/run/run.ts';
import { requestCancel } from '../../db/run/run-control.ts';
import type { StandingStep } from '../../db/step/step.ts';
import { answerStep, keepWaiting } from '../../db/step/step-open.ts';
import type { StepResults } from '../run-data/step-results.ts';
import { resolveInput, type StepUnit } from '../run-data/step-unit.ts';
import { failStep, readEnd, type StepExecution, type WaitingStep } from './step-end.ts';
import type { SubmitSubRun } from './submit-sub-run.ts';

export interface SubRunDependencies {
  readonly db: Db;
  readonly results: StepResults;
  readonly submitSubRun: SubmitSubRun;
}

type Execution = StepExecution | WaitingStep;

export async function executeSubRun(
  dependencies: SubRunDependencies,
  unit: StepUnit,
  standing: StandingStep | undefined,
): Promise<Execution> {
  const { db } = dependencies;
  if (standing?.sub_run_id == null) return start(dependencies, unit);
  const ended = await readRunEnd(db, standing.sub_run_id);
  return ended === undefined ? waitFor(standing.sub_run_id) : take(db, unit, ended);
}

function waitFor(run_id: string): WaitingStep {
  return {
    kind: 'waiting',
    awaiting: 'run',
    until: null,
    ref: { run_id },
  };
}

async function start({ db, results, submitSubRun }: SubRunDependencies, unit: StepUnit): Promise<Execution> {
  const { context, step, key } = unit;
  const resolved = await resolveInput(context, step, results, key.item);
  if ('error' in resolved) return failStep(db, unit.key, resolved.error);
  const settings = resolveStepSettings(context.definition, step.definition);
  const submitted = await submitSubRun({
    parent: { ...key },
    project_id: context.project_id,
    reference: step.definition.pipeline ?? '',
    job: resolved.input,
    priority: settings.priority ?? context.priority,
    ceilingUsd: step.definition.budget_ceiling_usd ?? null,
    depth: context.depth + 1,
    parentWorkflowId: runWorkflowId({ pipeline: context.definition.pipeline, run_id: key.run_id }),
  });
  if ('error' in submitted) return failStep(db, unit.key, submitted.error);
  if ('closed' in submitted) return readEnd(db, key);
  const { run_id } = submitted;
  const wait = { awaiting: 'run', until: null, for_ms: null, begins: true, data: { run_id } } as const;
  const held = await keepWaiting(db, key, { ...wait, sub_run_id: run_id });
  if (held !== undefined) return waitFor(run_id);
  const reason = 'the step that started it has ended';
  await requestCancel(db, { project_id: context.project_id, run_id }, { reason, mode: 'graceful' });
  return readEnd(db, key);
}

async function take(db: Db, unit: StepUnit, run: EndedRun): Promise<Execution> {
  const { run_id, pipeline, version, state, error } = run;
  if (state === 'succeeded') {
    await answerStep(db, unit.key, { state: 'succeeded', output: run.output, data: { run_id } });
    return readEnd(db, unit.key);
  }
  const named = `${pipeline}@${version}`;
  return failStep(db, unit.key, toSubRunFailure({ run_id, pipeline: named, state, error }));
}
