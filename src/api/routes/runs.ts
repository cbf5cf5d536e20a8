import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Instant, type JsonObject, ListQuery, PipelineName } from '../../contracts/primitives.ts';
import {
  CancelRequest,
  Run,
  RunList,
  RunRequest,
  RunState,
  StepDetail,
  terminalRunStates,
} from '../../contracts/run.ts';
import { AppError } from '../../errors.ts';
import type { Services } from '../../services/services.ts';
import { json, optionalJson } from '../body-kind.ts';
import { type ApiConfig, httpLimits } from '../limits.ts';
import { readWait } from '../preference.ts';
import { type AnswerHeaders, type Route, route } from '../route.ts';
import { IdempotencyKey, RunPath, StepPath } from './parameters.ts';

const SubmitHeaders = z.object({
  'idempotency-key': IdempotencyKey.meta({
    description: 'A repeated request with this key answers the same run instead of starting another.',
  }),
  prefer: z.string().max(1_000).optional().meta({
    description: '`wait=30` answers 200 with the ended run if it ends within 30 seconds (at most 60).',
  }),
});

const RunQuery = ListQuery.extend({
  pipeline: PipelineName.optional(),
  state: RunState.optional(),
  label: z
    .string()
    .max(321)
    .regex(/^[^=]{1,64}=/, { error: 'a label filter has the form key=value' })
    .optional(),
  since: Instant.optional(),
  until: Instant.optional(),
}).strict();

const sha256 = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();

/** A body may be as large as a definition; the job in it has the limit of an ordinary body. */
const requireJobSize = (job: JsonObject | undefined, limitBytes: number): void => {
  const bytes = job === undefined ? 0 : Buffer.byteLength(JSON.stringify(job));
  if (bytes > limitBytes)
    throw new AppError('job_invalid', `the job has ${bytes} bytes; allowed are ${limitBytes}`);
};

export const runRoutes = ({ runs }: Pick<Services, 'runs'>, config: ApiConfig): Route[] => [
  route({
    method: 'POST',
    path: '/v1/runs',
    tag: 'runs',
    summary: 'Start a run of a stored pipeline, or of a definition',
    auth: 'key',
    scope: 'run:write',
    headers: SubmitHeaders,
    body: json(RunRequest, 'definition'),
    responses: { 200: Run, 202: Run },
    errors: [
      'definition_invalid',
      'job_invalid',
      'idempotency_key_reuse',
      'idempotency_in_progress',
      'not_found',
    ],
    handle: async ({ caller, headers, body, bytes, signal }) => {
      if (bytes.length > config.BODY_LIMIT_BYTES) requireJobSize(body.job, config.BODY_LIMIT_BYTES);
      const key = headers['idempotency-key'];
      const idempotency = key === undefined ? null : { key, bodySha256: sha256(bytes) };
      const { run, replayed } = await runs.submit(caller.project_id, body, idempotency);
      const answered: AnswerHeaders = {
        Location: `/v1/runs/${run.run_id}`,
        ...(replayed ? { 'Idempotent-Replayed': 'true' } : {}),
      };
      const seconds = readWait(headers.prefer, httpLimits.waitSeconds);
      if (seconds === null) return { status: 202, headers: answered, body: run };
      const waited = await runs.waitForEnd(caller.project_id, run.run_id, seconds * 1_000, signal);
      return {
        status: terminalRunStates.has(waited.state) ? 200 : 202,
        headers: { ...answered, 'Preference-Applied': `wait=${seconds}` },
        body: waited,
      };
    },
  }),
  route({
    method: 'GET',
    path: '/v1/runs',
    tag: 'runs',
    summary: 'List runs, newest first',
    auth: 'key',
    scope: 'run:read',
    query: RunQuery,
    responses: { 200: RunList },
    handle: async ({ caller, query }) => ({ status: 200, body: await runs.list(caller.project_id, query) }),
  }),
  route({
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
  }),
  route({
    method: 'GET',
    path: '/v1/runs/{id}/steps/{step}',
    tag: 'runs',
    summary: 'Show a step: its input, output, attempts and why each went where it went',
    auth: 'key',
    scope: 'run:read',
    params: StepPath,
    responses: { 200: StepDetail },
    handle: async ({ caller, params }) => ({
      status: 200,
      body: await runs.getStep(caller.project_id, params.id, params.step),
    }),
  }),
  route({
    method: 'POST',
    path: '/v1/runs/{id}/cancel',
    tag: 'runs',
    summary: 'Ask a run to stop',
    auth: 'key',
    scope: 'run:write',
    params: RunPath,
    body: optionalJson(CancelRequest),
    responses: { 202: Run },
    errors: ['state_conflict'],
    handle: async ({ caller, params, body }) => ({
      status: 202,
      body: await runs.cancel(caller.project_id, params.id, body.reason),
    }),
  }),
];
