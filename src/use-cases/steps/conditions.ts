/**
 * Decides whether steps happen, and how often: evaluates `when` and the length of `for_each` from stored values once
 * all their dependencies have ended. Only the decisions are sent to the workflow. A step that is skipped or fails by
 * its condition is written here; a repeated request gets the same answer and writes nothing twice.
 */

import type { CompiledStep } from '@capstan/core/definition/compile';
import { evaluateCondition } from '@capstan/core/expression/condition';
import type { AnswerVerdict } from '@capstan/core/run/drive';
import type { StepVerdict } from '@capstan/core/run/machine';
import { packStates, unpackStates } from '@capstan/core/run/machine-state';
import {
  evaluateSafely,
  judgeCondition,
  judgeItems,
  judgeWhenOfItems,
  listSkipped,
  refuseStep,
  toAnswerVerdict,
} from '@capstan/core/run/step-rules';
import type { Ctx } from '../../context.ts';
import type { StepItemKey } from '../../db/attempt/attempt.ts';
import { listKeptItems } from '../../db/run/rerun.ts';
import { readStep } from '../../db/step/step.ts';
import { recordDecisions, type StepDecision } from '../../db/step/step-progress.ts';
import {
  evaluateInRun,
  type RunValues,
  readItems,
  readOwn,
  readWholeList,
  stepOf,
} from '../run-data/evaluation.ts';

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
    const values = { context, results };
    const verdict = await judgeItemsOf(values, step, await decide(values, step));
    verdicts.push(context.rerun_of === null ? verdict : await withKept({ db, values, step }, verdict));
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

/** Skips the items whose condition is false. They are judged together, so they share the work of one value. */
async function judgeItemsOf(
  values: RunValues,
  step: CompiledStep,
  verdict: StepVerdict,
): Promise<StepVerdict> {
  if (step.whenItem === null || verdict.type !== 'go') return verdict;
  const list = await readWholeList(values, step);
  if ('error' in list) return refuseStep('when', list.error);
  const items = list.value ?? [];
  const judged = await evaluateInRun(values, step.whenItem, (when, scope, meter) =>
    judgeWhenOfItems(verdict, (index) =>
      evaluateSafely(() => evaluateCondition(when, { ...scope, item: items[index] ?? null, index }, meter)),
    ),
  );
  return 'error' in judged ? refuseStep('when', judged.error) : judged.value;
}

interface DecidedStep extends Pick<Ctx, 'db'> {
  readonly values: RunValues;
  readonly step: CompiledStep;
}

/** Adds the items, or the rounds, of which a rerun has results. */
async function withKept({ db, values, step }: DecidedStep, verdict: StepVerdict): Promise<StepVerdict> {
  if (verdict.type !== 'go' || verdict.items === undefined) return verdict;
  const { run_id } = values.context;
  const rows = await listKeptItems(db, run_id, step.definition.id);
  if (rows.length === 0) return verdict;
  const items = step.until === null ? verdict.items : rows.length; // kept rounds are the first ones
  const states = unpackStates(verdict.kept ?? '');
  while (states.length < items) states.push('pending');
  for (const { item, state } of rows) if (item <= states.length) states[item - 1] = state;
  const kept = { ...verdict, items, kept: packStates(states) };
  if (step.counts === null) return kept;
  const answered = rows.filter(({ state }) => state !== 'skipped');
  const judged = await Promise.all(answered.map(({ item }) => judgeStored({ db, values, step }, item)));
  return { ...kept, counted: judged.filter(({ counts }) => counts).length };
}

export type AnswerRequest = StepItemKey;

/** Whether the answer of an item that has succeeded counts for `enough`. */
export async function judgeAnswer(
  { db, contexts, results }: Pick<Ctx, 'db' | 'contexts' | 'results'>,
  { run_id, step_id, item }: AnswerRequest,
): Promise<AnswerVerdict> {
  const context = await contexts.open(run_id);
  return judgeStored({ db, values: { context, results }, step: stepOf(context, step_id) }, item);
}

async function judgeStored({ db, values, step }: DecidedStep, item: number): Promise<AnswerVerdict> {
  if (step.counts === null) return { counts: true };
  const own = await readOwn(values, { step, item });
  if ('error' in own) return toAnswerVerdict(own);
  const key = { run_id: values.context.run_id, step_id: step.definition.id, item };
  const { output = null } = (await readStep(db, key)) ?? {};
  return toAnswerVerdict(
    await evaluateInRun(values, step.counts, evaluateCondition, { ...own.value, output }),
  );
}

function toDecision(step_id: string, verdict: StepVerdict): StepDecision[] {
  switch (verdict.type) {
    case 'skip':
      return [{ step_id, state: 'skipped' }];
    case 'fail':
      return [{ step_id, state: 'failed', error: verdict.error }];
    case 'go':
      return verdict.items === undefined
        ? []
        : [{ step_id, state: 'running', items: verdict.items, skipped: listSkipped(verdict) }];
  }
}
