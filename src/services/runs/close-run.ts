/** The end of a run: its output from the stored results, the steps that never began, one closing event. */
import type { Failure, Json } from '../../contracts/primitives.ts';
import { ExpressionError } from '../../core/expression/errors.ts';
import { evaluateTemplate } from '../../core/expression/evaluate.ts';
import { referencedSteps } from '../../core/expression/references.ts';
import type { RunOutcome } from '../../core/run/machine.ts';
import type { Db } from '../../db/connect.ts';
import { finishRun } from '../../db/run.ts';
import type { RunContext, RunContexts } from '../steps/run-context.ts';
import type { StepResults } from '../steps/step-results.ts';

export interface RunClosing {
  readonly run_id: string;
  readonly outcome: RunOutcome;
  readonly error: Failure | null;
}

export type CloseRun = (closing: RunClosing) => Promise<RunClosing>;

/** @returns how the run ended: an output that cannot be evaluated makes a success a failure */
export const createCloseRun =
  ({
    db,
    contexts,
    results,
  }: {
    readonly db: Db;
    readonly contexts: RunContexts;
    readonly results: StepResults;
  }): CloseRun =>
  async (closing) => {
    const context = await contexts.open(closing.run_id);
    const output = closing.outcome === 'succeeded' ? await evaluateOutput(context, results) : null;
    const end: RunClosing =
      output?.error === undefined ? closing : { ...closing, outcome: 'failed', error: output.error };
    await finishRun(db, {
      run_id: closing.run_id,
      state: end.outcome,
      output: output?.value,
      error: end.error,
      step_ids: context.definition.steps.map(({ id }) => id),
    });
    return end;
  };

/** The definition's `output`, else the outputs of the steps that no other step waits for, by id. */
const evaluateOutput = async (
  context: RunContext,
  results: StepResults,
): Promise<{ readonly value?: Json; readonly error?: Failure }> => {
  const { output, steps } = context.compiled;
  if (output === null) {
    const awaited = new Set(steps.flatMap(({ dependencies }) => dependencies));
    const last = steps.flatMap(({ definition }, index) => (awaited.has(index) ? [] : [definition.id]));
    const scope = await results.scopeOf(context.run_id, last);
    return { value: Object.fromEntries(last.map((id) => [id, scope[id]?.output ?? null])) };
  }
  const scope = await results.scopeOf(context.run_id, referencedSteps(output));
  try {
    return { value: evaluateTemplate(output, { ...context.scope, steps: scope }) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { error: { code: 'expression_unresolved', message: `output: ${error.message}` } };
  }
};
