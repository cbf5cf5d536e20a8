/** Control of a run: cancel, pause, change its budget, repeat. */
import { Run } from '@capstan/core/contracts/run';
import {
  BulkRerunRequest,
  CancelRequest,
  RerunPreview,
  RerunRequest,
  RunActs,
  RunBudgetRequest,
  RunSelection,
} from '@capstan/core/contracts/run-control';
import {
  cancelRun,
  cancelRuns,
  pauseRun,
  raiseRuns,
  rerunRuns,
  resumeRun,
  setRunBudget,
} from '../../use-cases/runs/control.ts';
import { previewRerun, rerunRun } from '../../use-cases/runs/rerun/rerun.ts';
import { toProblem } from '../answer.ts';
import { json, optionalJson } from '../input.ts';
import { IdPath, KeyHeaders, markReplayed, readIdempotency, startErrors } from '../parameters.ts';
import { type Route, route } from '../route.ts';

const holds = { pause: pauseRun, resume: resumeRun };

function holdRun(
  act: 'pause' | 'resume',
  about: { readonly summary: string; readonly description?: string },
): Route {
  return route(`POST /v1/runs/{id}/${act}`, {
    operation: `${act}_run`,
    tag: 'runs',
    ...about,
    scope: 'run:write',
    params: IdPath,
    responses: { 202: Run },
    errors: ['state_conflict'],
    result: (ctx, { caller, params }) =>
      holds[act](ctx, { project_id: caller.project_id, run_id: params.id }, caller.key_id),
  });
}

/** Before the routes of one run, which would match `bulk` as an id. */
const bulkRoutes: readonly Route[] = [
  route('POST /v1/runs/bulk/cancel', {
    operation: 'cancel_runs',
    tag: 'runs',
    summary: 'Cancel a page of the runs that match the filters of the list',
    description:
      'Each run is cancelled or refused separately, as by its own request. Repeat the request with `next_cursor` until it is null. At least one filter is needed; child runs end with their run.',
    scope: 'run:write',
    opens: 'history',
    query: RunSelection,
    body: optionalJson(CancelRequest),
    responses: { 200: RunActs },
    handle: async (ctx, { caller, query, body, path, request_id }) => ({
      status: 200,
      body: await cancelRuns(ctx, {
        projectId: caller.project_id,
        selection: query,
        request: body,
        toProblem: (error) => toProblem(error, { instance: path, request_id }),
        by: caller.key_id,
      }),
    }),
  }),
  route('POST /v1/runs/bulk/rerun', {
    operation: 'rerun_runs',
    tag: 'runs',
    summary: 'Run a page of the runs that match the filters of the list again',
    description:
      'Each run is repeated or refused separately, as by its own request, with the same body for all. Repeat the request with `next_cursor` until it is null. With an `Idempotency-Key`, each run is repeated once, however often the request is sent. Runs that another run repeats already are left out, unless `superseded` is `any` or `only`. At least one filter is needed; child runs are not repeated alone.',
    scope: 'run:write',
    rate: 'start',
    opens: 'history',
    query: RunSelection,
    headers: KeyHeaders,
    body: optionalJson(BulkRerunRequest, 'data'),
    responses: { 200: RunActs },
    handle: async (ctx, { caller, query, headers, body, bytes, path, request_id }) => ({
      status: 200,
      body: await rerunRuns(ctx, {
        projectId: caller.project_id,
        selection: query,
        request: body,
        idempotency: readIdempotency(headers, bytes),
        toProblem: (error) => toProblem(error, { instance: path, request_id }),
        by: caller.key_id,
      }),
    }),
  }),
  route('POST /v1/runs/bulk/raise', {
    operation: 'raise_runs',
    tag: 'runs',
    summary: 'Raise the budget ceiling of a page of the runs that match the filters of the list',
    description:
      'Steps of open runs that wait for budget continue. A run that failed for its budget continues as a new run, which keeps the results of the steps that succeeded; with an `Idempotency-Key`, once, however often the request is sent. A run without a ceiling, or with one at least as high, is refused. Repeat the request with `next_cursor` until it is null. At least one filter is needed.',
    scope: 'run:write',
    rate: 'start',
    opens: 'history',
    query: RunSelection,
    headers: KeyHeaders,
    body: json(RunBudgetRequest),
    responses: { 200: RunActs },
    handle: async (ctx, { caller, query, headers, body, bytes, path, request_id }) => ({
      status: 200,
      body: await raiseRuns(ctx, {
        projectId: caller.project_id,
        selection: query,
        request: body,
        idempotency: readIdempotency(headers, bytes),
        toProblem: (error) => toProblem(error, { instance: path, request_id }),
        by: caller.key_id,
      }),
    }),
  }),
];

export const runControlRoutes: readonly Route[] = [
  ...bulkRoutes,
  route('POST /v1/runs/{id}/cancel', {
    operation: 'cancel_run',
    tag: 'runs',
    summary: 'Cancel a run, or terminate it at once',
    description:
      'To terminate a run that is cancelling, send the request again with `terminate`. Child runs end with their run.',
    scope: 'run:write',
    params: IdPath,
    body: optionalJson(CancelRequest),
    responses: { 202: Run },
    errors: ['state_conflict'],
    result: (ctx, { caller, params, body }) =>
      cancelRun(ctx, { project_id: caller.project_id, run_id: params.id }, { ...body, by: caller.key_id }),
  }),
  holdRun('pause', {
    summary: 'Pause a run: it starts no step and no retry',
    description: 'Open calls finish, no timeout of run or step passes. A repeated request changes nothing.',
  }),
  holdRun('resume', { summary: 'Resume a paused run' }),
  route('POST /v1/runs/{id}/rerun', {
    operation: 'rerun_run',
    tag: 'runs',
    summary: 'Run again, and reuse results that are selected and still valid',
    description:
      'Starts a new run of the same job. With `preview`, the server writes nothing, and the answer shows which steps would run again and why.',
    scope: 'run:write',
    rate: 'start',
    params: IdPath,
    headers: KeyHeaders,
    body: optionalJson(RerunRequest, 'data'),
    responses: { 200: RerunPreview, 202: Run },
    errors: ['state_conflict', ...startErrors],
    handle: async (ctx, { caller, params, headers, body, bytes }) => {
      const idempotency = readIdempotency(headers, bytes);
      const { project_id, key_id: by } = caller;
      const order = { project_id, run_id: params.id, request: body, idempotency, by };
      if (body.preview === true) return { status: 200, body: await previewRerun(ctx, order) };
      const { run, replayed } = await rerunRun(ctx, order);
      return {
        status: 202,
        headers: { Location: `/v1/runs/${run.run_id}`, ...markReplayed(replayed) },
        body: run,
      };
    },
  }),
  route('POST /v1/runs/{id}/budget', {
    operation: 'set_run_budget',
    tag: 'runs',
    summary: 'Change the budget ceiling of a run',
    description:
      'The ceiling applies from the next call on. Steps that wait for budget continue. Existing reservations stay, even above a lower ceiling.',
    scope: 'run:write',
    params: IdPath,
    body: json(RunBudgetRequest),
    responses: { 200: Run },
    errors: ['state_conflict'],
    handle: async (ctx, { caller, params, body }) => {
      const key = { project_id: caller.project_id, run_id: params.id };
      const change = { ceilingUsd: body.budget_ceiling_usd, by: caller.key_id };
      return { status: 200, body: await setRunBudget(ctx, key, change) };
    },
  }),
];
