/** Control of a run: cancel, pause, change its budget, repeat. */
import { Run } from '../../contracts/run.ts';
import { CancelRequest, RerunPreview, RerunRequest, RunBudgetRequest } from '../../contracts/run-control.ts';
import { cancelRun, pauseRun, resumeRun, setRunBudget } from '../../services/runs/control.ts';
import { previewRerun, rerunRun } from '../../services/runs/rerun.ts';
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
      holds[act](ctx, { project_id: caller.project_id, run_id: params.id }),
  });
}

export const runControlRoutes: readonly Route[] = [
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
    summary: 'Pause a run: it starts no new steps',
    description: 'Running steps finish. A repeated request changes nothing.',
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
