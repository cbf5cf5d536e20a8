import type { PipelineDefinition, StepDefinition } from '../../../src/contracts/pipeline.ts';

export const aStep = (step: Partial<StepDefinition> = {}): StepDefinition => ({
  id: 'a',
  capability: 'concat',
  ...step,
});

export const aDefinition = (definition: Partial<PipelineDefinition> = {}): PipelineDefinition => ({
  pipeline: 'trailer',
  version: '1',
  steps: [aStep()],
  ...definition,
});
