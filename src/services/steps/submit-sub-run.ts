/**
 * The run that a step with `pipeline` starts. The worker writes the row, at most one for each execution of the step; a
 * server starts it. What is wrong with it is the step's failure.
 */
import type { Failure, JsonObject, Priority } from '../../contracts/primitives.ts';
import { lowestCeiling } from '../../core/routing/estimate.ts';
import { findDepthFault, toStartFailure } from '../../core/run/sub-run.ts';
import { readRunEnd } from '../../db/run/run.ts';
import { findSubRun } from '../../db/run/run-origin.ts';
import { AppError } from '../../errors/app-error.ts';
import { insertAdmittedRun } from '../runs/insert-admitted-runs.ts';
import { newJob, type PrepareDependencies, prepareRun } from '../runs/prepare-run.ts';

export interface SubRunOrder {
  readonly parent: {
    readonly run_id: string;
    readonly step_id: string;
    readonly item: number;
    readonly revision: number;
  };
  readonly project_id: string;
  /** `name@version` or `name@alias` */
  readonly reference: string;
  readonly job: JsonObject;
  readonly priority: Priority;
  /** The step's ceiling; null = only its own definition's. What the runs above may cost holds in any case. */
  readonly ceilingUsd: number | null;
  /** Runs above the new one. */
  readonly depth: number;
  /** Is told when it has ended. */
  readonly parentWorkflowId: string;
}

export type SubmitSubRun = (order: SubRunOrder) => Promise<
  | { readonly run_id: string }
  | { readonly error: Failure }
  /** The run whose step it is has ended. */
  | { readonly closed: true }
>;

function isPassing({ code }: AppError): boolean {
  return code === 'unavailable' || code === 'internal';
}

async function create(dependencies: PrepareDependencies, order: SubRunOrder): Promise<string> {
  const { parent, project_id, reference, depth, parentWorkflowId } = order;
  const tooDeep = findDepthFault(depth);
  if (tooDeep !== null) throw new AppError(tooDeep.code, tooDeep.message);
  const at = reference.indexOf('@');
  const pipeline = reference.slice(0, at);
  const choice = { reference: reference.slice(at + 1) };
  const known = await dependencies.definitions.find(project_id, pipeline, choice);
  const prepared = await prepareRun(dependencies, project_id, {
    known,
    isStored: true,
    job: newJob(order.job),
    priority: order.priority,
    labels: undefined,
    budget_ceiling_usd: lowestCeiling(order.ceilingUsd, known.definition.budget_ceiling_usd ?? null),
    origin: {
      parent_run_id: parent.run_id,
      parent_step_id: parent.step_id,
      parent_item: parent.item,
      parent_revision: parent.revision,
      parent_workflow_id: parentWorkflowId,
      depth,
    },
  });
  return (await dependencies.db.transaction((trx) => insertAdmittedRun(trx, prepared, null))).run_id;
}

export function createSubmitSubRun(dependencies: PrepareDependencies): SubmitSubRun {
  return async (order) => {
    const { db } = dependencies;
    const known = await findSubRun(db, order.parent);
    if (known !== undefined) return { run_id: known };
    try {
      return { run_id: await create(dependencies, order) };
    } catch (error) {
      const first = await findSubRun(db, order.parent); // the same step, executed twice at once
      if (first !== undefined) return { run_id: first };
      if ((await readRunEnd(db, order.parent.run_id)) !== undefined) return { closed: true };
      if (!(error instanceof AppError) || isPassing(error)) throw error;
      return { error: toStartFailure(order.reference, error) };
    }
  };
}
