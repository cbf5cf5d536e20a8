import type { Json } from '../../contracts/primitives.ts';
import type { StepScope } from '../../core/expression/evaluation.ts';
import type { StepResults } from './step-results.ts';

/** Answers of steps that are being stored, by step id. */
export type AnswersAhead = ReadonlyMap<string, StepScope>;

export function toAnswer(output: Json, costUsd: number): StepScope {
  return { status: 'succeeded', cost_usd: costUsd, output };
}

/** Results as they are once some answers are stored. */
export function withAnswers(results: StepResults, answers: AnswersAhead): StepResults {
  return {
    ...results,
    scopeOf: async (runId, mentions) => {
      const stored = mentions.filter(({ step_id }) => !answers.has(step_id));
      const { steps, failure } =
        stored.length === 0 ? { steps: {}, failure: null } : await results.scopeOf(runId, stored);
      const ahead = mentions.flatMap(({ step_id }) => {
        const answer = answers.get(step_id);
        return answer === undefined ? [] : [[step_id, answer] as const];
      });
      return { steps: { ...steps, ...Object.fromEntries(ahead) }, failure };
    },
  };
}
