import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { createGraph, type Graph } from '../dag/graph.ts';
import {
  type DefinitionTemplates,
  listReadings,
  readTemplates,
  type StepTemplates,
} from './definition-templates.ts';

export interface AnalysedDefinition {
  readonly templates: DefinitionTemplates;
  readonly graph: Graph;
}

export function analyseDefinition(definition: PipelineDefinition): AnalysedDefinition {
  const templates = readTemplates(definition);
  return { templates, graph: createStepGraph(definition, templates) };
}

/** What each step waits for: its `depends_on` and the steps that its input, its condition and its items mention. */
function createStepGraph(definition: PipelineDefinition, templates: DefinitionTemplates): Graph {
  return createGraph(
    definition.steps.map(({ id, depends_on = [] }, index) => {
      // An edge to itself has its own finding and is no cycle of the graph.
      const dependencies = [...depends_on, ...listMentioned(templates.steps[index])];
      return { id, depends_on: dependencies.filter((other) => other !== id) };
    }),
  );
}

function listMentioned(step: StepTemplates | undefined): readonly string[] {
  const mentioned = new Set<string>();
  for (const { references } of step === undefined ? [] : listReadings(step)) {
    for (const { root, segments } of references) {
      const [id] = segments;
      if (root === 'steps' && typeof id === 'string') mentioned.add(id);
    }
  }
  return [...mentioned];
}
