/** Direct calls, decisions of the router, and cached results. */
import {
  CacheList,
  CacheQuery,
  CacheRemoval,
  CacheRemoved,
  CacheSummary,
} from '@capstan/core/contracts/cache';
import { CallContent, CallDetail, CallList, CallQuery } from '@capstan/core/contracts/call';
import { CheckRequest } from '@capstan/core/contracts/capability';
import {
  Decision,
  DecisionDetail,
  DecisionList,
  DecisionQuery,
  ExecAnswer,
  ExecRequest,
  RouteRequestBody,
} from '@capstan/core/contracts/decision';
import { InputVerdict } from '@capstan/core/contracts/review';
import { AppError } from '@capstan/core/errors/app-error';
import { listCachedResults, readCacheSummary, removeCachedResults } from '../../use-cases/calls/cache.ts';
import { exportCalls, readCall, readCallContent, readCalls } from '../../use-cases/calls/calls.ts';
import { chosenOnBudget, makeDirectCall } from '../../use-cases/calls/direct-calls.ts';
import { checkInput } from '../../use-cases/reviews/input.ts';
import { previewDecision, readDecision, readDecisions } from '../../use-cases/routing/decisions.ts';
import { AcceptHeader, answerCsv, wantsCsv } from '../csv.ts';
import { json } from '../input.ts';
import {
  CallerHeaders,
  CapabilityPath,
  callingKeyOf,
  IdempotencyKey,
  IdPath,
  readIdempotency,
} from '../parameters.ts';
import { type Route, route } from '../route.ts';

const ExecHeaders = CallerHeaders.extend({
  'idempotency-key': IdempotencyKey.meta({
    description:
      'For 24 hours, a repeated request with this key gets the first answer. With a key, the call continues when the client disconnects.',
  }),
});

/** Whether a call that asked for the cache took an answer from it. */
export function cacheWordOf({ routing }: { routing: Pick<ExecAnswer['routing'], 'cached'> }): 'hit' | 'miss' {
  return routing.cached === undefined ? 'miss' : 'hit';
}

/** The errors of a routed call. */
export const callErrors = [
  ...(['ceiling_too_low', 'budget_exhausted', 'budget_reserved'] as const),
  ...(['idempotency_in_progress', 'idempotency_key_reuse', 'answer_not_kept', 'run_cancelled'] as const),
  ...(['input_invalid', 'input_rejected', 'output_too_large', 'media_unknown'] as const),
  ...(['capability_failed', 'response_invalid', 'output_invalid'] as const),
  ...(['connect_failed', 'contact_lost', 'no_instance', 'overloaded', 'attempt_timeout'] as const),
];

export const callRoutes: readonly Route[] = [
  route('POST /v1/capabilities/{name}/exec', {
    operation: 'exec_capability',
    tag: 'calls',
    summary: 'Call a capability on the best instance, without a pipeline',
    description:
      'Answers when the call has ended, after up to three instances. With `cache`, an equal call of the project within `ttl_seconds` gets the same answer at no cost, and `X-Capstan-Cache` is `hit`. Every problem carries the `decision`. A client that disconnects cancels its call, unless it sent an Idempotency-Key.',
    isLong: true,
    scope: 'capability:call',
    checksName: true,
    params: CapabilityPath,
    headers: ExecHeaders,
    body: json(ExecRequest, 'data'),
    responses: { 200: ExecAnswer },
    errors: callErrors,
    handle: async (ctx, { caller, params, headers, body, bytes, signal, setHeader }) => {
      const { answer, isReplayed } = await makeDirectCall(ctx, {
        caller: callingKeyOf(caller, headers),
        capability: params.name,
        request: body,
        idempotency: readIdempotency(headers, bytes),
        signal,
        onNotKept: (reason) => setHeader('X-Capstan-Not-Kept', reason),
      });
      if (isReplayed) setHeader('Idempotent-Replayed', 'true');
      if (answer instanceof AppError) throw answer;
      if (body.cache !== undefined) setHeader('X-Capstan-Cache', cacheWordOf(answer));
      return { status: 200, body: answer };
    },
  }),
  route('POST /v1/capabilities/{name}/check', {
    operation: 'check_input',
    tag: 'calls',
    summary: 'Check an input without a call: list its errors, and similar inputs that are valid',
    description:
      'By the schemas of the instances that it might be given to, else of those that there were; valid where none is known.',
    scope: 'capability:read',
    params: CapabilityPath,
    body: json(CheckRequest, 'data'),
    responses: { 200: InputVerdict },
    result: (ctx, { caller, params, body }) =>
      checkInput(ctx, { projectId: caller.project_id, name: params.name }, body),
  }),
  route('POST /v1/route', {
    operation: 'preview_route',
    tag: 'calls',
    summary: 'Show which instance the router would choose for a call now, and why',
    description:
      'The request reserves and writes nothing. With `input`, the answer excludes instances whose schema refuses it.',
    scope: 'capability:read',
    body: json(RouteRequestBody, 'data'),
    responses: { 200: Decision },
    errors: ['not_found'],
    result: async (ctx, { caller, body }) => {
      const on_budget = body.on_budget ?? (await chosenOnBudget(ctx, caller)) ?? undefined;
      return previewDecision(ctx, caller.project_id, { ...body, on_budget });
    },
  }),
  route('GET /v1/calls', {
    operation: 'list_calls',
    tag: 'calls',
    summary: 'List calls, newest first: who paid, the model and its tokens, the cost and the end',
    description:
      'Every attempt of the project, direct or of a run. The answer is JSON pages by default; with `format=csv` or `Accept: text/csv` it is one stream of all matching calls.',
    scope: 'capability:read',
    opens: 'history',
    query: CallQuery,
    headers: AcceptHeader,
    responses: { 200: { content: 'text/csv', schema: CallList } },
    handle: async (ctx, { caller, query, headers, signal }) =>
      wantsCsv(query.format, headers.accept)
        ? answerCsv('calls', exportCalls(ctx, caller.project_id, query), signal)
        : { status: 200, body: await readCalls(ctx, caller.project_id, query) },
  }),
  route('GET /v1/calls/{id}', {
    operation: 'get_call',
    tag: 'calls',
    summary: 'Show a call by the id of its decision',
    scope: 'capability:read',
    params: IdPath,
    responses: { 200: CallDetail },
    result: (ctx, { caller, params }) => readCall(ctx, caller.project_id, params.id),
  }),
  route('GET /v1/calls/{id}/content', {
    operation: 'get_call_content',
    tag: 'calls',
    summary: 'Show what was sent in a call and answered, where the project keeps it',
    description:
      '`content_days` of the settings of the project switches that on. Long texts are shortened, and secrets are the references that stand for them.',
    scope: 'content:read',
    params: IdPath,
    responses: { 200: CallContent },
    result: (ctx, { caller, params }) => readCallContent(ctx, caller.project_id, params.id),
  }),
  route('GET /v1/decisions', {
    operation: 'list_decisions',
    tag: 'calls',
    summary: 'List decisions, newest first, with the facts that each is based on',
    description:
      'The default period is the week before `until`; `since` changes it. With `run_id`, there is no default period.',
    scope: 'capability:read',
    opens: 'history',
    query: DecisionQuery,
    responses: { 200: DecisionList },
    result: (ctx, { caller, query }) => readDecisions(ctx, caller.project_id, query),
  }),
  route('GET /v1/decisions/{id}', {
    operation: 'get_decision',
    tag: 'calls',
    summary: 'Show why the router chose an instance for a call, and repeat the choice from the same facts',
    scope: 'capability:read',
    params: IdPath,
    responses: { 200: DecisionDetail },
    result: (ctx, { caller, params }) => readDecision(ctx, caller.project_id, params.id),
  }),
];

export const cacheRoutes: readonly Route[] = [
  route('GET /v1/cache', {
    operation: 'list_cached',
    tag: 'runs',
    summary: 'List the results in the cache of steps, newest first',
    description: 'Cached answers of direct calls are not listed.',
    scope: 'run:read',
    query: CacheQuery,
    responses: { 200: CacheList },
    result: (ctx, { caller, query }) => listCachedResults(ctx, caller, query),
  }),
  route('GET /v1/cache/summary', {
    operation: 'get_cache_summary',
    tag: 'runs',
    summary: 'Count results of steps and answers of direct calls in the cache, by capability',
    description: 'With the calls of the last 30 days that took one, and what they have saved.',
    scope: 'run:read',
    opens: 'history',
    responses: { 200: CacheSummary },
    result: (ctx, { caller }) => readCacheSummary(ctx, caller),
  }),
  route('DELETE /v1/cache', {
    operation: 'forget_cached',
    tag: 'runs',
    summary:
      'Delete results from the cache: one, those of a capability, pipeline or run, or all of the project',
    description:
      'Answers of direct calls are deleted too, unless the request names a pipeline or a run. Steps that used a result keep it. Files stay.',
    scope: 'run:write',
    query: CacheRemoval,
    responses: { 200: CacheRemoved },
    result: (ctx, { caller, query }) => removeCachedResults(ctx, caller, query),
  }),
];
