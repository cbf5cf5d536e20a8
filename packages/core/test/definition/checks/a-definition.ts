import type { PipelineDefinition, StepDefinition } from '../../../src/contracts/pipeline.ts';

export function aStep(step: Partial<StepDefinition> = {}): StepDefinition {
  return {
    id: 'a',
    capability: 'concat',
    ...step,
  };
}

export function aDefinition(definition: Partial<PipelineDefinition> = {}): PipelineDefinition {
  return {
    pipeline: 'trailer',
    version: '1',
    steps: [aStep()],
    ...definition,
  };
}
