/** Runs: submitting and reading them; a run as pictures show it, and many runs in time. */
import { z } from 'zod';
import { mostItems } from '../../contracts/bounds.ts';
import { Instant, ListQuery, PipelineName } from '../../contracts/primitives.ts';
import {
  Awaiting,
  BulkAnswer,
  BulkRequest,
  LabelFilter,
  Run,
  RunList,
  RunRequest,
  RunState,
  RunStepList,
  StepDetail,
  StepState,
  terminalRunStates,
} from '../../contracts/run.ts';
import { RunGraph, RunsSummary, RunsSummaryQuery, RunTimeline } from '../../contracts/run-picture.ts';
import type { Services } from '../../services/services.ts';
import { toProblem } from '../answer.ts';
import { json } from '../input.ts';
import { type ApiConfig, findJobFault, httpLimits } from '../limits.ts';
import { KeyHeaders, markReplayed, RunPath, readIdempotency, StepPath } from '../parameters.ts';
import { type AnswerHeaders, type Route, route } from '../route.ts';

/** A run as pictures show it, and many runs in time. */
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
function runsSummaryRoute({ runs }: Pick<Services, 'runs'>): Route {
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

/** `Prefer: wait=30` (RFC 7240): seconds to hold the answer back for a result; null when it is not asked for. */
function readWait(prefer: string | undefined, maxSeconds: number): number | null {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer ?? '')?.[1];
  return seconds === undefined ? null : Math.min(Number(seconds), maxSeconds);
}

const SubmitHeaders = KeyHeaders.extend({
  prefer: z.string().max(1_000).optional().meta({
    description: '`wait=30` answers 200 with the ended run if it ends within 30 seconds (at most 60).',
  }),
});

const RunQuery = ListQuery.extend({
  pipeline: PipelineName.optional(),
  state: RunState.optional(),
  awaiting: Awaiting.optional().meta({
    description: 'What one of its steps, or of the runs below it, waits for.',
  }),
  q: z.string().min(1).max(128).optional().meta({
    description: "Part of the pipeline's name or of a label as `name=value`, or the begin of the run's id",
  }),
  label: LabelFilter.optional(),
  since: Instant.optional(),
  until: Instant.optional(),
  parent: z
    .literal('none')
    .optional()
    .meta({ description: 'none: only runs that no step of another one has started' }),
}).strict();

const StepQuery = ListQuery.extend({
  item: z.coerce.number().int().min(0).max(mostItems).default(0).meta({
    description: 'From 1 on; 0 is the step as a whole.',
  }),
}).strict();

const ItemQuery = ListQuery.extend({ state: StepState.optional() }).strict();

export function runRoutes(services: Pick<Services, 'runs'>, config: ApiConfig): Route[] {
  return [
    submitRun(services, config),
    submitRuns(services, config),
    listRuns(services),
    runsSummaryRoute(services),
    showRun(services),
    showStep(services),
    listItems(services),
  ];
}

function submitRun({ runs }: Pick<Services, 'runs'>, config: ApiConfig): Route {
  return route({
    operation: 'start_run',
    method: 'POST',
    path: '/v1/runs',
    tag: 'runs',
    summary: 'Start a run of a stored pipeline, or of a definition',
    auth: 'key',
    scope: 'run:write',
    rate: 'start',
    headers: SubmitHeaders,
    body: json(RunRequest, 'definition'),
    responses: { 200: Run, 202: Run },
    errors: [
      'definition_invalid',
      'job_invalid',
      'media_unknown',
      'concurrency_limit',
      'open_runs_limit',
      'idempotency_key_reuse',
      'idempotency_in_progress',
      'not_found',
    ],
    handle: async ({ caller, headers, body, bytes, signal }) => {
      const isLarge = bytes.length > config.BODY_LIMIT_BYTES;
      const fault = isLarge ? findJobFault(body.job, config.BODY_LIMIT_BYTES) : null;
      if (fault !== null) throw fault;
      const idempotency = readIdempotency(headers, bytes);
      const { run, replayed } = await runs.submit(caller.project_id, body, idempotency);
      const answered: AnswerHeaders = { Location: `/v1/runs/${run.run_id}`, ...markReplayed(replayed) };
      const seconds = readWait(headers.prefer, httpLimits.waitSeconds);
      if (seconds === null) return { status: 202, headers: answered, body: run };
      const waited = await runs.waitForEnd(
        { project_id: caller.project_id, run_id: run.run_id },
        seconds * 1_000,
        signal,
      );
      return {
        status: terminalRunStates.has(waited.state) ? 200 : 202,
        headers: { ...answered, 'Preference-Applied': `wait=${seconds}` },
        body: waited,
      };
    },
  });
}

function submitRuns({ runs }: Pick<Services, 'runs'>, config: ApiConfig): Route {
  return route({
    operation: 'start_runs',
    method: 'POST',
    path: '/v1/runs/bulk',
    tag: 'runs',
    summary: 'Start up to 1,000 runs',
    description:
      'Each is taken or refused by itself, with the status that it would have had alone; all that are taken are written at once. At most 20 different definitions may be given in full.',
    auth: 'key',
    scope: 'run:write',
    rate: 'start',
    headers: KeyHeaders,
    body: json(BulkRequest, 'definition'),
    responses: { 200: BulkAnswer },
    errors: ['idempotency_key_reuse', 'idempotency_in_progress'],
    handle: async ({ caller, headers, body, bytes, path, request_id }) => {
      const place = { instance: path, request_id };
      const { answer, replayed } = await runs.submitAll({
        projectId: caller.project_id,
        requests: body.runs.map((request) => findJobFault(request.job, config.BODY_LIMIT_BYTES) ?? request),
        idempotency: readIdempotency(headers, bytes),
        toProblem: (error) => toProblem(error, place),
      });
      return { status: 200, headers: markReplayed(replayed), body: answer };
    },
  });
}

function listRuns({ runs }: Pick<Services, 'runs'>): Route {
  return route({
    operation: 'list_runs',
    method: 'GET',
    path: '/v1/runs',
    tag: 'runs',
    summary: 'List runs, newest first',
    auth: 'key',
    scope: 'run:read',
    opens: 'history',
    query: RunQuery,
    responses: { 200: RunList },
    handle: async ({ caller, query }) => ({ status: 200, body: await runs.list(caller.project_id, query) }),
  });
}

function showRun({ runs }: Pick<Services, 'runs'>): Route {
  return route({
    operation: 'get_run',
    method: 'GET',
    path: '/v1/runs/{id}',
    tag: 'runs',
    summary: 'Show a run with its steps',
    auth: 'key',
    scope: 'run:read',
    params: RunPath,
    responses: { 200: Run },
    handle: async ({ caller, params }) => ({
      status: 200,
      body: await runs.get(caller.project_id, params.id),
    }),
  });
}

function showStep({ runs }: Pick<Services, 'runs'>): Route {
  return route({
    operation: 'get_step',
    method: 'GET',
    path: '/v1/runs/{id}/steps/{step}',
    tag: 'runs',
    summary: 'Show a step: its input, output, attempts and why each went where it went',
    description:
      'Of a step with `for_each`, `item` says which of its items; without it the step as a whole, whose `output` is the list of its items’ outputs in their order, null for an item that has none (yet). `limit` and `cursor` page that list: `next_cursor` answers where it goes on, null after the last item. A page ends early with the item that brings it to 1 MiB, so that large outputs come whole, one by one. Steps without `for_each` have no pages.',
    auth: 'key',
    scope: 'run:read',
    params: StepPath,
    query: StepQuery,
    responses: { 200: StepDetail },
    handle: async ({ caller, params, query }) => ({
      status: 200,
      body: await runs.getStep({ project_id: caller.project_id, run_id: params.id }, params.step, query),
    }),
  });
}

function listItems({ runs }: Pick<Services, 'runs'>): Route {
  return route({
    operation: 'list_items',
    method: 'GET',
    path: '/v1/runs/{id}/steps/{step}/items',
    tag: 'runs',
    summary: 'List the items of a step that have begun, in order',
    auth: 'key',
    scope: 'run:read',
    params: StepPath,
    query: ItemQuery,
    responses: { 200: RunStepList },
    handle: async ({ caller, params, query }) => ({
      status: 200,
      body: await runs.listItems({ project_id: caller.project_id, run_id: params.id }, params.step, query),
    }),
  });
}
