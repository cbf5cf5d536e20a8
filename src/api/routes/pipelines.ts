/** Stored pipelines, their drawings, and plans of a run's steps and cost. */

import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import {
  Alias,
  AliasList,
  AliasRequest,
  PipelineList,
  PipelineSubmitted,
  PipelineVersion,
  PipelineVersionList,
  Validation,
  ValidationRequest,
} from '@capstan/core/contracts/pipeline-answers';
import { Plan, PlanDefinitionRequest, PlanRequest } from '@capstan/core/contracts/plan';
import { ListQuery } from '@capstan/core/contracts/primitives';
import { analyseDefinition, showGraph } from '@capstan/core/definition/compile';
import { describeStep, type StepKind, stepKindOf } from '@capstan/core/definition/step-settings';
import { drawGraph, type GraphNode } from '@capstan/core/graph/svg';
import { z } from 'zod';
import type { Caller } from '../../use-cases/access/caller.ts';
import {
  deletePipelineAlias,
  getPipeline,
  getPipelineVersion,
  listPipelineAliases,
  listPipelinesPage,
  listVersionsPage,
  setPipelineAlias,
  submitPipeline,
  validatePipeline,
} from '../../use-cases/pipelines/pipelines.ts';
import { planDefinition, planPipeline } from '../../use-cases/plans/plan.ts';
import { definitionText, json, optionalJson } from '../input.ts';
import { requireSmallJob } from '../limits.ts';
import { AliasPath, PipelinePath, VersionPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

function versionKey({ project_id }: Pick<Caller, 'project_id'>, path: z.output<typeof VersionPath>) {
  return { project_id, pipeline: path.name, version: path.version };
}

const kinds: Readonly<Record<StepKind, GraphNode['kind']>> = {
  call: 'capability',
  run: 'pipeline',
  wait: 'wait',
  review: 'review',
  event: 'event',
  set: 'set',
};

/** The drawing holds one inline style, for light and dark; it can load and run nothing else. */
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

const description =
  'Nothing is written and no instance is called. What reads only the job is worked out exactly, what reads the outputs of steps is not known before the run. That several calls want the same instance at once is not part of a plan, and neither are the corrections of an escalation.';

export const pipelineRoutes: readonly Route[] = [
  route('POST /v1/pipelines', {
    operation: 'store_pipeline',
    tag: 'pipelines',
    summary: 'Store a version of a pipeline',
    description:
      'The body is the definition. The answer is 201 for a new version and 200 for an existing one with the same content.',
    scope: 'pipeline:write',
    body: definitionText,
    responses: { 200: PipelineSubmitted, 201: PipelineSubmitted },
    errors: ['definition_invalid', 'version_conflict'],
    handle: async (ctx, { caller, body }) => {
      const { answer, created } = await submitPipeline(ctx, caller.project_id, body);
      return { status: created ? 201 : 200, body: answer };
    },
  }),
  route('POST /v1/pipelines/validate', {
    operation: 'validate_pipeline',
    tag: 'pipelines',
    summary: 'Check a definition without storing it',
    scope: 'pipeline:read',
    query: z.strictObject({
      strict: z.enum(['true', 'false']).default('false').meta({
        description: 'true: a capability without a registered instance is an error instead of a warning',
      }),
    }),
    body: definitionText,
    responses: { 200: Validation },
    result: (ctx, { caller, query, body }) =>
      validatePipeline(ctx, caller.project_id, { source: body, strict: query.strict === 'true' }),
  }),
  route('POST /v1/validate', {
    operation: 'validate_definition',
    tag: 'pipelines',
    summary: 'Check a definition together with pipelines that it runs, without storing any',
    description:
      'The check treats each pipeline of `pipelines` as stored, and checks its job and its output. A version that is stored with different content is an error. `name@latest` means the stored version, if one exists.',
    scope: 'pipeline:read',
    body: json(ValidationRequest, 'definition'),
    responses: { 200: Validation },
    errors: ['definition_invalid'],
    result: (ctx, { caller, body: { text, type = null, strict, pipelines } }) =>
      validatePipeline(ctx, caller.project_id, {
        source: { text, contentType: type },
        strict,
        beside: pipelines,
      }),
  }),
  route('GET /v1/pipelines', {
    operation: 'list_pipelines',
    tag: 'pipelines',
    summary: 'List pipelines with their latest version',
    scope: 'pipeline:read',
    query: ListQuery.strict(),
    responses: { 200: PipelineList },
    result: (ctx, { caller, query }) => listPipelinesPage(ctx, caller.project_id, query),
  }),
  route('GET /v1/pipelines/{name}', {
    operation: 'get_pipeline',
    tag: 'pipelines',
    summary: 'Show the latest version of a pipeline',
    scope: 'pipeline:read',
    params: PipelinePath,
    responses: { 200: PipelineVersion },
    result: (ctx, { caller, params }) => getPipeline(ctx, caller.project_id, params.name),
  }),
  route('GET /v1/pipelines/{name}/versions', {
    operation: 'list_pipeline_versions',
    tag: 'pipelines',
    summary: 'List the versions of a pipeline, newest first',
    scope: 'pipeline:read',
    params: PipelinePath,
    query: ListQuery.strict(),
    responses: { 200: PipelineVersionList },
    result: (ctx, { caller, params, query }) =>
      listVersionsPage(ctx, { project_id: caller.project_id, pipeline: params.name }, query),
  }),
  route('GET /v1/pipelines/{name}/versions/{version}', {
    operation: 'get_pipeline_version',
    tag: 'pipelines',
    summary: 'Show one version of a pipeline',
    scope: 'pipeline:read',
    params: VersionPath,
    responses: { 200: PipelineVersion },
    result: (ctx, { caller, params }) => getPipelineVersion(ctx, versionKey(caller, params)),
  }),
  route('GET /v1/pipelines/{name}/aliases', {
    operation: 'list_aliases',
    tag: 'pipelines',
    summary: 'List the aliases of a pipeline',
    scope: 'pipeline:read',
    params: PipelinePath,
    responses: { 200: AliasList },
    result: (ctx, { caller, params }) => listPipelineAliases(ctx, caller.project_id, params.name),
  }),
  route('PUT /v1/pipelines/{name}/aliases/{alias}', {
    operation: 'set_alias',
    tag: 'pipelines',
    summary: 'Set an alias of a pipeline to a version',
    description: 'The alias applies from the next run on. Existing runs keep their version.',
    scope: 'pipeline:write',
    params: AliasPath,
    body: json(AliasRequest),
    responses: { 200: Alias },
    handle: async (ctx, { caller, params, body }) => {
      const key = { project_id: caller.project_id, pipeline: params.name, version: body.version };
      return {
        status: 200,
        body: await setPipelineAlias(ctx, key, { alias: params.alias, actor: caller.key_id }),
      };
    },
  }),
  route('DELETE /v1/pipelines/{name}/aliases/{alias}', {
    operation: 'delete_alias',
    tag: 'pipelines',
    summary: 'Delete an alias of a pipeline',
    description: 'Runs that were started with it keep their version; the next start with it is refused.',
    scope: 'pipeline:write',
    params: AliasPath,
    responses: { 204: 'empty' },
    errors: ['not_found'],
    handle: async (ctx, { caller, params: { name, alias } }) => {
      const key = { project_id: caller.project_id, pipeline: name };
      await deletePipelineAlias(ctx, key, { alias, actor: caller.key_id });
      return { status: 204 };
    },
  }),
];

export const graphRoutes: readonly Route[] = [
  route('GET /v1/pipelines/{name}/graph.svg', {
    operation: 'draw_pipeline',
    tag: 'pipelines',
    summary: 'Draw the latest version of a pipeline',
    scope: 'pipeline:read',
    params: PipelinePath,
    responses: { 200: { content: 'image/svg+xml' } },
    handle: async (ctx, { caller, params }) => {
      const { definition } = await getPipeline(ctx, caller.project_id, params.name);
      return { status: 200, headers, body: draw(definition) };
    },
  }),
  route('GET /v1/pipelines/{name}/versions/{version}/graph.svg', {
    operation: 'draw_pipeline_version',
    tag: 'pipelines',
    summary: 'Draw one version of a pipeline',
    scope: 'pipeline:read',
    params: VersionPath,
    responses: { 200: { content: 'image/svg+xml' } },
    handle: async (ctx, { caller, params }) => {
      const { definition } = await getPipelineVersion(ctx, versionKey(caller, params));
      return { status: 200, headers, body: draw(definition) };
    },
  }),
];

export const planRoutes: readonly Route[] = [
  route('POST /v1/pipelines/{name}/plan', {
    operation: 'plan_pipeline',
    tag: 'pipelines',
    summary: 'Show what a run of a pipeline would do and cost now',
    description,
    scope: 'pipeline:read',
    params: PipelinePath,
    body: optionalJson(PlanRequest, 'data'),
    responses: { 200: Plan },
    errors: ['not_found', 'job_invalid', 'media_unknown'],
    result: (ctx, { caller, params, body }) => planPipeline(ctx, caller, { ...body, pipeline: params.name }),
  }),
  route('POST /v1/plan', {
    operation: 'plan_definition',
    tag: 'pipelines',
    summary: 'Show what a run of a definition would do and cost now',
    description,
    scope: 'pipeline:read',
    body: json(PlanDefinitionRequest, 'definition'),
    responses: { 200: Plan },
    errors: ['definition_invalid', 'not_found', 'job_invalid', 'media_unknown'],
    handle: async (ctx, { caller, body, bytes }) => {
      requireSmallJob(body.job, bytes, ctx.config);
      return { status: 200, body: await planDefinition(ctx, caller, body) };
    },
  }),
];
