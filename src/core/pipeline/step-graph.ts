import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { createGraph, type Graph } from '../dag/graph.ts';
import { referencedSteps } from '../expression/references.ts';
import type { DefinitionTemplates } from './definition-templates.ts';

/** What each step waits for: its `depends_on` and the steps that its expressions mention. */
export const createStepGraph = (definition: PipelineDefinition, templates: DefinitionTemplates): Graph =>
  createGraph(
    definition.steps.map(({ id, depends_on = [] }, index) => {
      const mentioned = templates.inputs[index] ? referencedSteps(templates.inputs[index].template) : [];
      // An edge to itself has its own finding and is no cycle of the graph.
      return { id, depends_on: [...depends_on, ...mentioned].filter((other) => other !== id) };
    }),
  );
