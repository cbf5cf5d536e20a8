import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { analyseDefinition } from '../../core/definition/step-graph.ts';
import { describeStep, type StepKind, stepKindOf } from '../../core/definition/step-kind.ts';
import { drawGraph, type GraphNode } from '../../core/graph-drawing/draw-graph.ts';
import { showGraph } from '../../definitions/definition-graph.ts';
import type { Services } from '../../services/services.ts';
import { type Route, route } from '../route.ts';
import { PipelinePath, VersionPath } from './parameters.ts';

const kinds: Readonly<Record<StepKind, GraphNode['kind']>> = {
  call: 'capability',
  run: 'pipeline',
  wait: 'wait',
  review: 'review',
};

/** The drawing holds one style of its own, for light and dark, and nothing else that could be loaded or run. */
const headers = {
  'Content-Type': 'image/svg+xml; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
};

function draw(definition: PipelineDefinition): string {
  return drawGraph(
    definition.steps.map((step) => ({
      id: step.id,
      label: describeStep(step),
      kind: kinds[stepKindOf(step)],
    })),
    showGraph(definition, analyseDefinition(definition)).edges,
  );
}

export function graphRoutes({ pipelines }: Pick<Services, 'pipelines'>): Route[] {
  return [
    route({
      operation: 'draw_pipeline',
      method: 'GET',
      path: '/v1/pipelines/{name}/graph.svg',
      tag: 'pipelines',
      summary: 'Draw the latest version of a pipeline',
      auth: 'key',
      scope: 'pipeline:read',
      params: PipelinePath,
      responses: { 200: { content: 'image/svg+xml' } },
      handle: async ({ caller, params }) => {
        const { definition } = await pipelines.get(caller.project_id, params.name);
        return { status: 200, headers, body: draw(definition) };
      },
    }),
    route({
      operation: 'draw_pipeline_version',
      method: 'GET',
      path: '/v1/pipelines/{name}/versions/{version}/graph.svg',
      tag: 'pipelines',
      summary: 'Draw one version of a pipeline',
      auth: 'key',
      scope: 'pipeline:read',
      params: VersionPath,
      responses: { 200: { content: 'image/svg+xml' } },
      handle: async ({ caller, params }) => {
        const { definition } = await pipelines.getVersion(caller.project_id, params.name, params.version);
        return { status: 200, headers, body: draw(definition) };
      },
    }),
  ];
}
