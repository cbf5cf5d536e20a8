/**
 * Decides whether steps happen, and how often: evaluates `when` and the length of `for_each` from stored values once
 * all their dependencies have ended. Only the decisions are sent to the workflow. A step that is skipped or fails by
 * its condition is written here; a repeated request gets the same answer and writes nothing twice.
 */

import type { CompiledStep } from '@capstan/core/definition/compile';
import { evaluateCondition } from '@capstan/core/expression/condition';
import type { StepVerdict } from '@capstan/core/run/machine';
import { type MachineStepState, packStates } from '@capstan/core/run/machine-state';
import { judgeCondition, judgeItems } from '@capstan/core/run/step-rules';
import type { Ctx } from '../../context.ts';
import { listKeptItems } from '../../db/run/rerun.ts';
import { recordDecisions, type StepDecision } from '../../db/step/step-progress.ts';
import { evaluateInRun, type RunValues, readItems, stepOf } from '../run-data/evaluation.ts';

export interface DecideRequest {
  readonly run_id: string;
  readonly step_ids: readonly string[];
}

/** Within the activity's minute. */
const longestMs = 10_000;
/** In UTF-16 units. */
const largestAnswer = 262_144;

/**
 * @returns verdicts in the order of the steps, at least one. Steps beyond the limits of time and answer size are left
 * for another request. @throws AppError `not_found`
 */
export async function decideSteps(
  { db, contexts, results }: Pick<Ctx, 'db' | 'contexts' | 'results'>,
  { run_id, step_ids }: DecideRequest,
): Promise<readonly StepVerdict[]> {
  const context = await contexts.open(run_id);
  const beganAt = performance.now();
  const verdicts: StepVerdict[] = [];
  let size = 0;
  for (const stepId of step_ids) {
    const step = stepOf(context, stepId);
    const decided = await decide({ context, results }, step);
    const kept = { values: { context, results }, step, rerun_of: context.rerun_of };
    const verdict = await withKept(db, kept, decided);
    verdicts.push(verdict);
    size += verdict.type === 'fail' ? verdict.error.message.length : 0;
    if (size > largestAnswer || performance.now() - beganAt > longestMs) break;
  }
  const decisions = verdicts.flatMap((verdict, at) => toDecision(step_ids[at] ?? '', verdict));
  if (decisions.length > 0) await recordDecisions(db, run_id, decisions);
  return verdicts;
}

async function decide(values: RunValues, step: CompiledStep): Promise<StepVerdict> {
  if (step.when !== null) {
    const left = judgeCondition(await evaluateInRun(values, step.when, evaluateCondition));
    if (left !== null) return left;
  }
  if (step.until !== null) return { type: 'go', items: 1 };
  return judgeItems(await readItems(values, step));
}

interface DecidedStep {
  readonly values: RunValues;
  readonly step: CompiledStep;
  readonly rerun_of: string | null;
}

/** Adds the items, or the rounds, of which a rerun has results. */
async function withKept(
  db: Ctx['db'],
  { values, step, rerun_of }: DecidedStep,
  verdict: StepVerdict,
): Promise<StepVerdict> {
  if (rerun_of === null || verdict.type !== 'go' || verdict.items === undefined) return verdict;
  const { run_id } = values.context;
  const step_id = step.definition.id;
  const rows = await listKeptItems(db, run_id, step_id);
  if (rows.length === 0) return verdict;
  const items = step.until === null ? verdict.items : rows.length; // kept rounds are the first ones
  const states: MachineStepState[] = Array.from({ length: items }, () => 'pending');
  for (const { item, state } of rows) if (item <= states.length) states[item - 1] = state;
  return { ...verdict, items, kept: packStates(states) };
}

function toDecision(step_id: string, verdict: StepVerdict): StepDecision[] {
  switch (verdict.type) {
    case 'skip':
      return [{ step_id, state: 'skipped' }];
    case 'fail':
      return [{ step_id, state: 'failed', error: verdict.error }];
    case 'go':
      return verdict.items === undefined ? [] : [{ step_id, state: 'running', items: verdict.items }];
  }
}
