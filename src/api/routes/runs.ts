/** Runs: submitting and reading them; the graph and timeline of a run, and a summary of many. */
import { Readable } from 'node:stream';
import { toAbortSignal } from '@capstan/core/cancellation';
import { HealthQuery, RunsHealth } from '@capstan/core/contracts/health';
import { ListQuery } from '@capstan/core/contracts/primitives';
import { Run, RunList, RunQuery, RunRequest, terminalRunStates } from '@capstan/core/contracts/run';
import { BulkAnswer, BulkRequest, RunCount, RunCountQuery } from '@capstan/core/contracts/run-control';
import { RunGraph, RunsSummary, RunsSummaryQuery, RunTimeline } from '@capstan/core/contracts/run-picture';
import { ItemQuery, RunStepList, StepDetail, StepQuery } from '@capstan/core/contracts/run-step';
import { z } from 'zod';
import { type Caller, findStartFault, starterOf } from '../../use-cases/access/caller.ts';
import {
  readRunGraph,
  readRunsHealth,
  readRunsSummary,
  readTimeline,
} from '../../use-cases/runs/run-graph.ts';
import {
  countRunsOf,
  exportRuns,
  getRun,
  listRunsPage,
  waitForEnd,
} from '../../use-cases/runs/run-reading.ts';
import { getStep, listItems } from '../../use-cases/runs/step-pages.ts';
import { submitRun, submitRuns } from '../../use-cases/runs/submission.ts';
import { ndjson, toProblem } from '../answer.ts';
import { json } from '../input.ts';
import { findJobFault, httpLimits, requireSmallJob } from '../limits.ts';
import { IdPath, KeyHeaders, markReplayed, readIdempotency, StepPath, startErrors } from '../parameters.ts';
import { type AnswerHeaders, type Route, route } from '../route.ts';

/** `Prefer: wait=30` (RFC 7240): seconds to wait for a result before answering; null: not requested. */
function readWait(prefer: string | undefined, maxSeconds: number): number | null {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer ?? '')?.[1];
  return seconds === undefined ? null : Math.min(Number(seconds), maxSeconds);
}

const SubmitHeaders = KeyHeaders.extend({
  prefer: z.string().max(1_000).optional().meta({
    description: '`wait=30` answers 200 with the ended run if it ends within 30 seconds (at most 60).',
  }),
});

function stepAddress({ project_id }: Pick<Caller, 'project_id'>, { id, step }: z.output<typeof StepPath>) {
  return { project_id, run_id: id, step_id: step };
}

/** The graph and timeline of a run, and the summary of many runs. */
export const runPictureRoutes: readonly Route[] = [
  route('GET /v1/runs/{id}/graph', {
    operation: 'get_run_graph',
    tag: 'runs',
    summary: 'Show the definition of a run and its whole graph, without states',
    scope: 'run:read',
    params: IdPath,
    responses: { 200: RunGraph },
    result: (ctx, { caller, params }) =>
      readRunGraph(ctx, { project_id: caller.project_id, run_id: params.id }),
  }),
  route('GET /v1/runs/{id}/timeline', {
    operation: 'get_run_timeline',
    tag: 'runs',
    summary: 'List the calls of a run by time, with the expected and the actual result of each',
    description:
      'A page has at most 10,000 rows, ordered by start. Model calls of an escalation carry their level.',
    scope: 'run:read',
    params: IdPath,
    query: z.strictObject({ cursor: ListQuery.shape.cursor }),
    responses: { 200: RunTimeline },
    result: (ctx, { caller, params, query }) =>
      readTimeline(ctx, { project_id: caller.project_id, run_id: params.id }, query.cursor),
  }),
];

export const runRoutes: readonly Route[] = [
  route('POST /v1/runs', {
    operation: 'start_run',
    tag: 'runs',
    summary: 'Start a run of a stored pipeline, or of a definition',
    scope: 'run:write',
    checksName: true,
    rate: 'start',
    headers: SubmitHeaders,
    body: json(RunRequest, 'definition'),
    responses: { 200: Run, 202: Run },
    errors: [...startErrors, 'not_found'],
    handle: async (ctx, { caller, headers, body, bytes, signal }) => {
      const fault = findStartFault(caller, body);
      if (fault !== null) throw fault;
      requireSmallJob(body.job, bytes, ctx.config);
      const { project_id } = caller;
      const idempotency = readIdempotency(headers, bytes);
      const order = { projectId: project_id, request: body, idempotency, ...starterOf(caller) };
      const { run, replayed } = await submitRun(ctx, order);
      const answered: AnswerHeaders = { Location: `/v1/runs/${run.run_id}`, ...markReplayed(replayed) };
      const seconds = readWait(headers.prefer, httpLimits.waitSeconds);
      if (seconds === null) return { status: 202, headers: answered, body: run };
      const wait = { timeoutMs: seconds * 1_000, signal };
      const waited = await waitForEnd(ctx, { project_id, run_id: run.run_id }, wait);
      const status = terminalRunStates.has(waited.state) ? 200 : 202;
      return { status, headers: { ...answered, 'Preference-Applied': `wait=${seconds}` }, body: waited };
    },
  }),
  route('POST /v1/runs/bulk', {
    operation: 'start_runs',
    tag: 'runs',
    summary: 'Start up to 1,000 runs',
    description:
      'The server accepts or refuses each run separately, with the status of a single request. It writes all accepted runs in one transaction. A request may contain at most 20 different definitions. `budget_all_usd` limits what all of them may cost together: they get a label `batch` of their own, and it gets a budget by total in the same transaction.',
    scope: 'run:write',
    checksName: true,
    rate: 'start',
    headers: KeyHeaders,
    body: json(BulkRequest, 'definition'),
    responses: { 200: BulkAnswer },
    errors: ['idempotency_key_reuse', 'idempotency_in_progress'],
    handle: async (ctx, { caller, headers, body, bytes, path, request_id }) => {
      const place = { instance: path, request_id };
      const { answer, replayed } = await submitRuns(ctx, {
        projectId: caller.project_id,
        requests: body.runs.map(
          (request) =>
            findStartFault(caller, request) ??
            findJobFault(request.job, ctx.config.BODY_LIMIT_BYTES) ??
            request,
        ),
        ...(body.budget_all_usd === undefined ? {} : { budgetAllUsd: body.budget_all_usd }),
        idempotency: readIdempotency(headers, bytes),
        toProblem: (error) => toProblem(error, place),
        ...starterOf(caller),
      });
      return { status: 200, headers: markReplayed(replayed), body: answer };
    },
  }),
  route('GET /v1/runs', {
    operation: 'list_runs',
    tag: 'runs',
    summary: 'List runs, newest first',
    scope: 'run:read',
    opens: 'history',
    query: RunQuery,
    responses: { 200: RunList },
    result: (ctx, { caller, query }) => listRunsPage(ctx, caller.project_id, query),
  }),
  // Before the route of one run, which would match `export` as an id.
  route('GET /v1/runs/export', {
    operation: 'export_runs',
    tag: 'runs',
    summary: 'Stream all runs that match the filters of the list, with their jobs, steps and outputs',
    description:
      'The answer holds one run of JSON per line, in the order of the list: the run as `GET /v1/runs/{id}` has it, and its `job`. `limit` only sets how many runs are read at once. If the stream fails, the connection breaks.',
    scope: 'run:read',
    opens: 'history',
    query: RunQuery,
    responses: { 200: { content: ndjson } },
    handle: async (ctx, { caller, query, signal }) => {
      const runs = await exportRuns(ctx, caller.project_id, query);
      return {
        status: 200,
        headers: { 'Content-Type': ndjson, 'Content-Disposition': 'attachment; filename="runs.ndjson"' },
        body: () => Readable.from(runs, { objectMode: false, signal: toAbortSignal(signal) }),
      };
    },
  }),
  // Before the route of one run, which would match `count` as an id.
  route('GET /v1/runs/count', {
    operation: 'count_runs',
    tag: 'runs',
    summary: 'Count runs by state, with the filters of the list',
    scope: 'run:read',
    opens: 'history',
    query: RunCountQuery,
    responses: { 200: RunCount },
    result: (ctx, { caller, query }) => countRunsOf(ctx, caller.project_id, query),
  }),
  // Before the route of one run, which would match `summary` as an id.
  route('GET /v1/runs/summary', {
    operation: 'get_runs_summary',
    tag: 'runs',
    summary: 'Count runs by state and sum their costs, in buckets of time',
    description: 'Runs are counted by the time of their creation. The default is the last day in 48 buckets.',
    scope: 'run:read',
    opens: 'history',
    query: RunsSummaryQuery,
    responses: { 200: RunsSummary },
    result: (ctx, { caller, query }) => readRunsSummary(ctx, caller.project_id, query),
  }),
  // Before the route of one run, which would match `health` as an id.
  route('GET /v1/runs/health', {
    operation: 'get_runs_health',
    tag: 'runs',
    summary: 'Show how the last runs of each stored pipeline have ended',
    description: 'Runs without child runs, with their medians of time and cost.',
    scope: 'run:read',
    opens: 'history',
    query: HealthQuery,
    responses: { 200: RunsHealth },
    result: (ctx, { caller, query }) => readRunsHealth(ctx, caller.project_id, query),
  }),
  route('GET /v1/runs/{id}', {
    operation: 'get_run',
    tag: 'runs',
    summary: 'Show a run with its steps',
    scope: 'run:read',
    params: IdPath,
    responses: { 200: Run },
    result: (ctx, { caller, params }) => getRun(ctx, { project_id: caller.project_id, run_id: params.id }),
  }),
  route('GET /v1/runs/{id}/steps/{step}', {
    operation: 'get_step',
    tag: 'runs',
    summary: 'Show a step: its input, output, attempts and the decision of each',
    description:
      'For a step with `for_each`, `item` selects one item. Without `item`, `output` lists the outputs of all items in order; null marks an item without an output. `limit` and `cursor` page that list; `next_cursor` is null after the last item. A page ends early with the item that brings it to 1 MiB, so that no output is split. Steps without `for_each` have no pages. For a step with `repeat`, `item` selects one round, from 1 on, and `output` is that of the last round.',
    scope: 'run:read',
    params: StepPath,
    query: StepQuery,
    responses: { 200: StepDetail },
    result: (ctx, { caller, params, query }) => getStep(ctx, stepAddress(caller, params), query),
  }),
  route('GET /v1/runs/{id}/steps/{step}/items', {
    operation: 'list_items',
    tag: 'runs',
    summary: 'List the items of a step that have begun, in order',
    scope: 'run:read',
    params: StepPath,
    query: ItemQuery,
    responses: { 200: RunStepList },
    result: (ctx, { caller, params, query }) => listItems(ctx, stepAddress(caller, params), query),
  }),
];
