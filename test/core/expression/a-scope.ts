import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import { evaluateTemplate } from '../../../src/core/expression/evaluate.ts';
import type { ExpressionScope } from '../../../src/core/expression/evaluation.ts';
import { compileTemplate } from '../../../src/core/expression/template.ts';

export const aScope = (scope: Partial<ExpressionScope> = {}): ExpressionScope => ({
  job: {},
  steps: {},
  run: { id: 'run_1', job_id: 'job_1', attempt: 1, pipeline: 'p', version: '1' },
  ...scope,
});

export const aJob = (job: JsonObject): ExpressionScope => aScope({ job });

export const evaluateIn = (template: Json, scope: ExpressionScope): Json =>
  evaluateTemplate(compileTemplate(template), scope);
