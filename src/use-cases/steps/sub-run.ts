/**
 * A step that is a child run of another pipeline: the step's input is that run's job, and that run's output is the
 * step's own. Each execution of the step has one child run, however often it is repeated, and the parent workflow gets
 * a signal when it has ended.
 */

import type { Failure, JsonObject } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import {
  ceilingOfSubRun,
  findDepthFault,
  type SubRunTerms,
  splitReference,
  termsOfSubRun,
  toStartFailure,
  toSubRunFailure,
} from '@capstan/core/run/step-rules';
import { runWorkflowId } from '@capstan/core/workflow-names';
import type { StepExecution, WaitingStep } from '@capstan/core/workflow-payloads';
import type { Db } from '../../db/connect.ts';
import { findContinued, keepVersion, readVersion } from '../../db/run/rerun.ts';
import { type EndedRun, findSubRun, readRunEnd } from '../../db/run/run.ts';
import { requestCancel } from '../../db/run/run-control.ts';
import type { StoredStep } from '../../db/step/step.ts';
import { answerStep, keepWaiting } from '../../db/step/step-progress.ts';
import { resolveInput, type StepUnit } from '../run-data/evaluation.ts';
import { insertAdmittedRun } from '../runs/admission.ts';
import { newJob, prepareRun } from '../runs/preparation.ts';
import { planContinued, type RerunPlan, type RerunPlanCtx } from '../runs/rerun/plan.ts';
import { insertRerun, orderOf } from '../runs/rerun/rerun.ts';
import { failStep, readEnd } from './step-end.ts';

type StepRunCtx = RerunPlanCtx;
type Execution = StepExecution | WaitingStep;

export async function executeSubRun(
  ctx: StepRunCtx,
  unit: StepUnit,
  stored: StoredStep | undefined,
): Promise<Execution> {
  if (stored?.sub_run_id == null) return start(ctx, unit);
  const ended = await readRunEnd(ctx.db, stored.sub_run_id);
  return ended === undefined ? waitFor(stored.sub_run_id) : take(ctx.db, unit, ended);
}

function waitFor(run_id: string): WaitingStep {
  return { kind: 'waiting', awaiting: 'run', until: null, ref: { run_id } };
}

async function start(ctx: StepRunCtx, unit: StepUnit): Promise<Execution> {
  const { db, results } = ctx;
  const { context, step, key } = unit;
  const resolved = await resolveInput({ context, results }, step, key.item);
  if ('error' in resolved) return failStep(db, unit.key, resolved.error);
  const submitted = await submitSubRun(ctx, {
    ...termsOfSubRun(step.definition, context),
    parent: { ...key },
    isItem: step.definition.for_each !== undefined,
    project_id: context.project_id,
    job: resolved.input,
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

/** The step's ceiling is the child run's own; the ceilings of the runs above apply too. */
export interface SubRunOrder extends SubRunTerms {
  readonly parent: {
    readonly run_id: string;
    readonly step_id: string;
    readonly item: number;
    readonly revision: number;
  };
  /** Of a step with `for_each`. */
  readonly isItem: boolean;
  readonly project_id: string;
  readonly job: JsonObject;
  /** Gets a signal when the child run has ended. */
  readonly parentWorkflowId: string;
}

type SubmittedSubRun =
  | { readonly run_id: string }
  | { readonly error: Failure }
  /** The parent run has ended. */
  | { readonly closed: true };

function isPassing({ code }: AppError): boolean {
  return code === 'unavailable' || code === 'internal';
}

async function create(ctx: RerunPlanCtx, order: SubRunOrder): Promise<string> {
  const { parent, project_id, depth } = order;
  const tooDeep = findDepthFault(depth);
  if (tooDeep !== null) throw new AppError(tooDeep.code, tooDeep.message);
  const version = await lookUpVersion(ctx, order);
  const earlier_run_id = await findContinued(ctx.db, parent);
  const { reference, job: input } = order;
  const plan =
    earlier_run_id === undefined
      ? null
      : await planContinued(ctx, {
          project_id,
          earlier_run_id,
          reference,
          input,
          versions: { [reference]: version },
        });
  return plan === null ? startFresh(ctx, order, version) : goOn(ctx, order, plan);
}

/** The fields that a child run has from its step. */
function termsOf({ parent, isItem, priority, depth, parentWorkflowId }: SubRunOrder) {
  const origin = {
    parent_run_id: parent.run_id,
    parent_step_id: parent.step_id,
    parent_item: parent.item,
    parent_revision: parent.revision,
    parent_workflow_id: parentWorkflowId,
    ...(isItem ? { is_below_items: true as const } : {}),
    depth,
  };
  return { priority, origin };
}

async function startFresh(ctx: RerunPlanCtx, order: SubRunOrder, version: string): Promise<string> {
  const { project_id, reference, job } = order;
  const [pipeline] = splitReference(reference);
  const known = await ctx.definitions.find(project_id, pipeline, { version });
  const prepared = await prepareRun(ctx, project_id, {
    ...termsOf(order),
    known,
    isStored: true,
    job: newJob(job),
    labels: undefined,
    budget_ceiling_usd: ceilingOfSubRun(order, known.definition),
  });
  return (await ctx.db.transaction((trx) => insertAdmittedRun(trx, prepared, null))).run_id;
}

/** Repeats the child run that the same step of an earlier run had, where it failed. */
async function goOn(ctx: RerunPlanCtx, order: SubRunOrder, plan: RerunPlan): Promise<string> {
  const { versions: _above, ...asked } = orderOf(plan);
  const prepared = await prepareRun(ctx, order.project_id, {
    ...asked,
    ...termsOf(order),
    budget_ceiling_usd: ceilingOfSubRun(order, plan.known.definition),
  });
  return ctx.db.transaction((trx) => insertRerun(trx, prepared, { plan, mostOpen: null }));
}

/**
 * The version that a reference names. An alias is looked up once for the run at the top and all runs below it: all
 * items, and all steps with the same reference, get the same version.
 */
async function lookUpVersion(
  { db, definitions }: RerunPlanCtx,
  { parent: { run_id }, project_id, reference }: SubRunOrder,
): Promise<string> {
  const known = await readVersion(db, run_id, reference);
  if (known !== undefined) return known;
  const [pipeline, name] = splitReference(reference);
  const { version } = (await definitions.find(project_id, pipeline, { reference: name })).definition;
  if (version === name) return version;
  await keepVersion(db, run_id, { reference, version });
  return (await readVersion(db, run_id, reference)) ?? version;
}

/**
 * Submits the child run of a step with `pipeline`. The worker writes the row, at most one for each execution of the
 * step; a server starts it. A fault of that run is the step's failure.
 */
export async function submitSubRun(ctx: RerunPlanCtx, order: SubRunOrder): Promise<SubmittedSubRun> {
  const { db } = ctx;
  const known = await findSubRun(db, order.parent);
  if (known !== undefined) return { run_id: known };
  try {
    return { run_id: await create(ctx, order) };
  } catch (error) {
    const first = await findSubRun(db, order.parent); // the same step, executed twice in parallel
    if (first !== undefined) return { run_id: first };
    if ((await readRunEnd(db, order.parent.run_id)) !== undefined) return { closed: true };
    if (!(error instanceof AppError) || isPassing(error)) throw error;
    return { error: toStartFailure(order.reference, error) };
  }
}
