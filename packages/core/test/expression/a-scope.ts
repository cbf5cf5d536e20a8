import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import type { ExpressionScope } from '../../src/expression/evaluation.ts';
import { compileTemplate } from '../../src/expression/template.ts';

export function aScope(scope: Partial<ExpressionScope> = {}): ExpressionScope {
  return {
    job: {},
    steps: {},
    run: { id: 'run_1', job_id: 'job_1', attempt: 1, pipeline: 'p', version: '1' },
    ...scope,
  };
}

export function aJob(job: JsonObject): ExpressionScope {
  return aScope({ job });
}

export function evaluateIn(template: Json, scope: ExpressionScope): Json {
  return evaluateTemplate(compileTemplate(template), scope);
}
