/** A run as pictures show it, and many runs in time. */
import { z } from 'zod';
import { ListQuery } from '../../contracts/primitives.ts';
import { RunGraph, RunsSummary, RunsSummaryQuery, RunTimeline } from '../../contracts/run-picture.ts';
import type { Services } from '../../services/services.ts';
import { type Route, route } from '../route.ts';
import { RunPath } from './parameters.ts';

export function runPictureRoutes({ runs }: Pick<Services, 'runs'>): Route[] {
  return [
    route({
      operation: 'get_run_graph',
      method: 'GET',
      path: '/v1/runs/{id}/graph',
      tag: 'runs',
      summary: 'The definition of a run and its whole graph, before anything has happened',
      auth: 'key',
      scope: 'run:read',
      params: RunPath,
      responses: { 200: RunGraph },
      handle: async ({ caller, params }) => ({
        status: 200,
        body: await runs.graph({ project_id: caller.project_id, run_id: params.id }),
      }),
    }),
    route({
      operation: 'get_run_timeline',
      method: 'GET',
      path: '/v1/runs/{id}/timeline',
      tag: 'runs',
      summary: 'Every call of a run in time, with what was expected of it and what became of it',
      description:
        'At most 10,000 rows a page, in the order of their starts. Calls of models that were asked for a step carry their level.',
      auth: 'key',
      scope: 'run:read',
      params: RunPath,
      query: z.strictObject({ cursor: ListQuery.shape.cursor }),
      responses: { 200: RunTimeline },
      handle: async ({ caller, params, query }) => ({
        status: 200,
        body: await runs.timeline({ project_id: caller.project_id, run_id: params.id }, query.cursor),
      }),
    }),
  ];
}

/** Before the route of one run, whose id it would be. */
export function runsSummaryRoute({ runs }: Pick<Services, 'runs'>): Route {
  return route({
    operation: 'get_runs_summary',
    method: 'GET',
    path: '/v1/runs/summary',
    tag: 'runs',
    summary: 'Count runs by state and sum their costs, in buckets of time',
    description: 'By the time at which they were made: the last day in 48 buckets by default.',
    auth: 'key',
    scope: 'run:read',
    opens: 'history',
    query: RunsSummaryQuery,
    responses: { 200: RunsSummary },
    handle: async ({ caller, query }) => ({
      status: 200,
      body: await runs.summary(caller.project_id, query),
    }),
  });
}
