import { Plan, PlanDefinitionRequest, PlanRequest } from '../../contracts/plan.ts';
import type { Services } from '../../services/services.ts';
import { json, optionalJson } from '../body-kind.ts';
import { findJobFault } from '../job-size.ts';
import type { ApiConfig } from '../limits.ts';
import { type Route, route } from '../route.ts';
import { PipelinePath } from './parameters.ts';

const description =
  'Nothing is written and no instance is called. What reads only the job is worked out exactly, what reads the outputs of steps is not known before the run. That several calls want the same instance at once is not part of a plan, and neither are the corrections of an escalation.';

export function planRoutes(services: Pick<Services, 'plans'>, config: ApiConfig): Route[] {
  return [planPipeline(services), planDefinition(services, config)];
}

function planPipeline({ plans }: Pick<Services, 'plans'>): Route {
  return route({
    operation: 'plan_pipeline',
    method: 'POST',
    path: '/v1/pipelines/{name}/plan',
    tag: 'pipelines',
    summary: 'Show what a run of a pipeline would do and cost now',
    description,
    auth: 'key',
    scope: 'pipeline:read',
    params: PipelinePath,
    body: optionalJson(PlanRequest, 'data'),
    responses: { 200: Plan },
    errors: ['not_found', 'job_invalid', 'media_unknown'],
    handle: async ({ caller, params, body }) => ({
      status: 200,
      body: await plans.plan(caller.project_id, params.name, body),
    }),
  });
}

function planDefinition({ plans }: Pick<Services, 'plans'>, config: ApiConfig): Route {
  return route({
    operation: 'plan_definition',
    method: 'POST',
    path: '/v1/plan',
    tag: 'pipelines',
    summary: 'Show what a run of a definition would do and cost now',
    description,
    auth: 'key',
    scope: 'pipeline:read',
    body: json(PlanDefinitionRequest, 'definition'),
    responses: { 200: Plan },
    errors: ['definition_invalid', 'not_found', 'job_invalid', 'media_unknown'],
    handle: async ({ caller, body, bytes }) => {
      const isLarge = bytes.length > config.BODY_LIMIT_BYTES;
      const fault = isLarge ? findJobFault(body.job, config.BODY_LIMIT_BYTES) : null;
      if (fault !== null) throw fault;
      return { status: 200, body: await plans.planDefinition(caller.project_id, body) };
    },
  });
}
