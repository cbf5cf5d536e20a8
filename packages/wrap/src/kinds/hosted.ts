/**
 * Models behind the protocols of Replicate, fal and Cog: kinds `replicate`, `fal` and `cog`. All three answer
 * `{output, metrics}` to the expressions of the file.
 */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Json, type JsonObject } from '@capstan/core/contracts/primitives';
import { parseDuration } from '@capstan/core/duration';
import { z } from 'zod';
import { type Origin, requireOrigin } from '../exchange/download.ts';
import { askJson, type Exchange } from '../exchange/exchange.ts';
import { providerFailure } from '../exchange/provider-failure.ts';
import { createJobRunner, type JobState, pollFields, type RemoteJob } from '../poll-job.ts';
import { asObject, describeTarget, type RequestTarget, showPath } from '../templates.ts';
import {
  BaseAddress,
  defineKind,
  type PreparedKind,
  Secret,
  type WrapHost,
  type WrappedCall,
} from '../wrap-kind.ts';

/** Requests to the provider, with its credentials. */
function createAsk({ url, headers }: Origin, { compile, hide }: WrapHost, kind: string) {
  const at = compile.base(url, `/${kind}/base_url`);
  return (method: string, address: string, request: Pick<Exchange, 'signal' | 'body'>): Promise<Json> => {
    const target = address.startsWith('/') ? at(address) : requireOrigin(readTarget(address), url);
    return askJson({ method, target, headers, hide, ...request });
  };
}

/** @throws CallFailure when the provider names an address that is none */
function readTarget(address: string): RequestTarget {
  if (URL.canParse(address)) return describeTarget(address, showPath(address));
  throw providerFailure('provider_unavailable', 'the answer of the provider names an invalid address');
}

function authorization(scheme: string, token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `${scheme} ${token}` };
}

/** @throws CallFailure when the provider's answer has no such text */
function readText(answer: Json, field: string): string {
  const value = asObject(answer)?.[field];
  if (typeof value === 'string' && value !== '') return value;
  throw providerFailure('provider_unavailable', `the answer of the provider has no ${field}`);
}

function describeError(error: Json | undefined, status: string): string {
  if (error === null || error === undefined) return `the provider reports ${status}`;
  return typeof error === 'string' ? error : JSON.stringify(error);
}

/** The last percentage in a log, as progress bars print it. */
function readPercentage(logs: Json | undefined): number | undefined {
  const found =
    typeof logs === 'string' ? [...logs.slice(-4_000).matchAll(/(\d{1,3})%/g)].at(-1)?.[1] : undefined;
  return found === undefined ? undefined : Math.min(100, Number(found)) / 100;
}

/** A prediction of Replicate or Cog. */
function readPrediction(answer: Json): JobState {
  const prediction = asObject(answer) ?? {};
  const status = readText(answer, 'status');
  if (status === 'succeeded') {
    const { output = null, metrics = {}, id = null } = prediction;
    return { state: 'done', answer: { output, metrics, id } };
  }
  if (status === 'starting' || status === 'processing') {
    return { state: 'running', progress: readPercentage(prediction.logs), message: status };
  }
  const isTheirs = status !== 'failed';
  return { state: 'failed', error: describeError(prediction.error, status), isTheirs };
}

function prepareProvider(provider: Origin, perform: (call: WrappedCall) => Promise<Json>): PreparedKind {
  return { defaults: {}, fileForm: 'data_uri', writesFiles: false, originOf: () => provider, perform };
}

const OwnerAndName = z.string().regex(/^[\w.-]+\/[\w.-]+$/, { error: 'a model is written owner/name' });

const ReplicatePart = z
  .strictObject({
    base_url: BaseAddress.default('https://api.replicate.com/v1'),
    token: Secret,
    model: OwnerAndName.optional(),
    deployment: OwnerAndName.optional(),
    version: z
      .string()
      .regex(/^[\w.:/-]+$/)
      .optional(),
    input: Json.default('{{ input }}'),
    ...pollFields,
  })
  .refine(({ model, version, deployment }) => [model, version, deployment].filter(Boolean).length === 1, {
    error: 'one of model, version and deployment is needed',
  });

function predictionPath({ model, deployment }: z.infer<typeof ReplicatePart>): string {
  if (model !== undefined) return `/models/${model}/predictions`;
  return deployment === undefined ? '/predictions' : `/deployments/${deployment}/predictions`;
}

export const replicate = defineKind({
  shape: ReplicatePart,
  prepare: (part, host) => {
    const provider = { url: part.base_url, headers: authorization('Bearer', part.token) };
    const ask = createAsk(provider, host, 'replicate');
    const inputOf = host.compile.value(part.input, '/replicate/input');
    const jobs = createJobRunner(part, host);
    const version: JsonObject = part.version === undefined ? {} : { version: part.version };
    const pathOf = (submitted: Json): string =>
      `/predictions/${encodeURIComponent(readText(submitted, 'id'))}`;
    return prepareProvider(provider, (call) => {
      const body = { ...version, input: inputOf(call.scope) };
      const job: RemoteJob = {
        submit: (signal) => ask('POST', predictionPath(part), { signal, body }),
        poll: async (submitted, signal) => readPrediction(await ask('GET', pathOf(submitted), { signal })),
        cancel: (submitted, signal) => ask('POST', `${pathOf(submitted)}/cancel`, { signal }),
      };
      return jobs.run(job, call);
    });
  },
});

const FalPart = z.strictObject({
  base_url: BaseAddress.default('https://queue.fal.run'),
  token: Secret,
  model: z
    .string()
    .regex(/^[\w.-]+(\/[\w.-]+)+$/, { error: 'a model is written owner/name, or owner/name/path' }),
  input: Json.default('{{ input }}'),
  ...pollFields,
});

function readFalStatus(answer: Json): JobState | null {
  const { queue_position: position, error, logs } = asObject(answer) ?? {};
  const status = readText(answer, 'status');
  if (status === 'COMPLETED') return error ? { state: 'failed', error: describeError(error, status) } : null;
  if (status !== 'IN_QUEUE' && status !== 'IN_PROGRESS') {
    return { state: 'failed', error: describeError(error, status), isTheirs: true };
  }
  const lines = Array.isArray(logs)
    ? logs.map((line: Json) => asObject(line)?.message ?? '').join('\n')
    : undefined;
  const place = typeof position === 'number' ? `, ${position} before it` : '';
  return { state: 'running', progress: readPercentage(lines), message: `${status}${place}` };
}

export const fal = defineKind({
  shape: FalPart,
  prepare: (part, host) => {
    const provider = { url: part.base_url, headers: authorization('Key', part.token) };
    const ask = createAsk(provider, host, 'fal');
    const inputOf = host.compile.value(part.input, '/fal/input');
    const jobs = createJobRunner(part, host);
    const poll: RemoteJob['poll'] = async (submitted, signal) => {
      const status = await ask('GET', `${readText(submitted, 'status_url')}?logs=1`, { signal });
      const open = readFalStatus(status);
      if (open !== null) return open;
      const output = await ask('GET', readText(submitted, 'response_url'), { signal });
      const metrics = asObject(status)?.metrics ?? {};
      return { state: 'done', answer: { output, metrics, id: readText(submitted, 'request_id') } };
    };
    return prepareProvider(provider, (call) => {
      const body = inputOf(call.scope);
      const job: RemoteJob = {
        submit: (signal) => ask('POST', `/${part.model}`, { signal, body }),
        poll,
        cancel: (submitted, signal) => ask('PUT', readText(submitted, 'cancel_url'), { signal }),
      };
      return jobs.run(job, call);
    });
  },
});

const CogPart = z.strictObject({
  base_url: BaseAddress,
  token: Secret.optional(),
  input: Json.default('{{ input }}'),
  every: pollFields.every,
  on_failed: pollFields.on_failed,
});

/** Cog has no address for the state of a prediction, but a PUT with the id of a running one does not start a second. */
export const cog = defineKind({
  shape: CogPart,
  prepare: (part, host) => {
    const provider = { url: part.base_url, headers: authorization('Bearer', part.token) };
    const ask = createAsk(provider, host, 'cog');
    const inputOf = host.compile.value(part.input, '/cog/input');
    return prepareProvider(provider, async ({ scope, context }) => {
      const { signal, idempotencyKey: key } = context;
      const id =
        key === undefined ? randomUUID() : createHash('sha256').update(key).digest('hex').slice(0, 32);
      const body: JsonObject = { input: inputOf(scope) };
      const stop = (): void => {
        const request = { signal: AbortSignal.timeout(10_000) };
        void ask('POST', `/predictions/${id}/cancel`, request).catch(() => undefined);
      };
      signal.addEventListener('abort', stop, { once: true });
      try {
        for (;;) {
          const state = readPrediction(await ask('PUT', `/predictions/${id}`, { signal, body }));
          if (state.state === 'done') return state.answer;
          if (state.state === 'failed') throw failedPrediction(state, part.on_failed, host);
          await sleep(parseDuration(part.every), undefined, { signal });
        }
      } finally {
        signal.removeEventListener('abort', stop);
      }
    });
  },
});

function failedPrediction(
  { error, isTheirs }: Extract<JobState, { state: 'failed' }>,
  rule: 'refused' | 'failed',
  { hide }: WrapHost,
): Error {
  return providerFailure(
    rule === 'refused' && !isTheirs ? 'provider_refused' : 'provider_unavailable',
    hide(error),
  );
}
