/** Kind `http`: one request, or a request that starts a job and others that ask for its state. */

import { stat } from 'node:fs/promises';
import { parseExactJson, writeExactJson } from '@capstan/core/contracts/exact-json';
import { Json } from '@capstan/core/contracts/primitives';
import type { WrapScope } from '@capstan/core/expression/evaluation';
import { FormData } from 'undici';
import { z } from 'zod';
import { openAsBlob } from '../call-files.ts';
import { requireOrigin } from '../exchange/download.ts';
import { askJson, type Exchange, openExchange, readBytes, saveBody } from '../exchange/exchange.ts';
import { providerFailure } from '../exchange/provider-failure.ts';
import { createJobRunner, type JobState, pollFields } from '../poll-job.ts';
import type { RequestTarget } from '../templates.ts';
import {
  Address,
  AddressOrExpression,
  defineKind,
  Headers,
  type WrapHost,
  type WrappedCall,
} from '../wrap-kind.ts';

const Method = z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

const HttpPart = z
  .strictObject({
    method: Method.default('POST'),
    url: Address,
    headers: Headers.default({}),
    body: Json.optional(),
    form: z.record(z.string(), z.string()).optional(),
    poll: z
      .strictObject({
        url: AddressOrExpression,
        done: z.string(),
        failed: z.string().optional(),
        error: z.string().optional(),
        progress: z.string().optional(),
        result_url: AddressOrExpression.optional(),
        cancel: z.strictObject({ method: Method.default('POST'), url: AddressOrExpression }).optional(),
        ...pollFields,
      })
      .optional(),
  })
  .refine(({ body, form }) => body === undefined || form === undefined, {
    path: ['form'],
    error: 'a request has a body or a form',
  });
type HttpPart = z.infer<typeof HttpPart>;
type PollPart = NonNullable<HttpPart['poll']>;

/** Values that are paths of downloaded files become parts with the file. */
function compileForm(written: Readonly<Record<string, string>>, { compile }: WrapHost) {
  const rows = Object.entries(written).map(
    ([name, value]) => [name, compile.value(value, `/http/form/${name}`)] as const,
  );
  return async ({ scope, paths }: WrappedCall): Promise<FormData> => {
    const form = new FormData();
    for (const [name, evaluate] of rows) {
      const value = evaluate(scope);
      if (value === null) continue;
      const isFile = typeof value === 'string' && Object.values(paths).includes(value);
      if (isFile) form.append(name, await openAsBlob(value), value.split('/').at(-1));
      else form.append(name, typeof value === 'string' ? value : writeExactJson(value));
    }
    return form;
  };
}

/** JSON as its value, text as a text, anything else as a file that `from` accepts: `{{ answer.file }}`. */
async function readAnswer(exchange: Exchange, { context, keep, maxFileBytes }: WrappedCall): Promise<Json> {
  const answer = await openExchange(exchange);
  const type = answer.header('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type !== '' && !type.startsWith('text/') && !type.endsWith('json')) {
    const path = await context.media.temporaryPath('answer');
    await saveBody(answer.chunks(), path, { signal: exchange.signal, maxBytes: maxFileBytes });
    return { file: keep(path, type), content_type: type, size: (await stat(path)).size };
  }
  const bytes = await readBytes(answer);
  if (type.startsWith('text/')) return bytes.toString('utf8');
  if (bytes.length === 0) return null;
  try {
    return parseExactJson(bytes.toString('utf8')) as Json;
  } catch {
    throw providerFailure(
      'provider_unavailable',
      `the answer has the content type ${type || 'none'} and is no JSON`,
    );
  }
}

interface PollRequest {
  readonly scope: WrapScope;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The requests of a job; the answer of each is `answer` in the expressions that follow. */
function compilePoll(poll: PollPart, own: string, { compile, hide }: WrapHost) {
  const at = (field: string): string => `/http/poll/${field}`;
  const url = compile.address(poll.url, at('url'));
  const done = compile.condition(poll.done, at('done'));
  const failed = poll.failed === undefined ? null : compile.condition(poll.failed, at('failed'));
  const error = compile.value(poll.error ?? 'the job failed', at('error'));
  const progress = poll.progress === undefined ? null : compile.number(poll.progress, at('progress'));
  const resultUrl = poll.result_url === undefined ? null : compile.address(poll.result_url, at('result_url'));
  const cancelUrl = poll.cancel === undefined ? null : compile.address(poll.cancel.url, at('cancel/url'));
  const ask = (address: RequestTarget, { headers, signal }: PollRequest, method = 'GET'): Promise<Json> =>
    askJson({ method, target: requireOrigin(address, own), headers, signal, hide });
  return {
    read: async (request: PollRequest): Promise<JobState> => {
      const answer = await ask(url(request.scope), request);
      const scope = { ...request.scope, answer };
      if (failed?.(scope)) return { state: 'failed', error: String(error(scope)) };
      if (!done(scope)) return { state: 'running', progress: progress?.(scope) };
      return { state: 'done', answer: resultUrl === null ? answer : await ask(resultUrl(scope), request) };
    },
    cancel: async (request: PollRequest): Promise<unknown> =>
      cancelUrl === null ? undefined : ask(cancelUrl(request.scope), request, poll.cancel?.method),
  };
}

export const http = defineKind({
  shape: HttpPart,
  prepare: (part, host) => {
    const { compile, hide } = host;
    const url = compile.address(part.url, '/http/url');
    const headersOf = compile.headers(part.headers, '/http/headers');
    const body = part.body === undefined ? null : compile.value(part.body, '/http/body');
    const form = part.form === undefined ? null : compileForm(part.form, host);
    const own = part.url.replace(/\{\{.*$/s, '');
    const poll = part.poll === undefined ? null : compilePoll(part.poll, own, host);
    const jobs = part.poll === undefined ? null : createJobRunner(part.poll, host);
    const toExchange = async (call: WrappedCall, signal: AbortSignal): Promise<Exchange> => {
      const headers = headersOf(call.scope);
      const base = { method: part.method, target: url(call.scope), headers, signal, hide };
      return form === null ? { ...base, body: body?.(call.scope) } : { ...base, form: await form(call) };
    };
    return {
      defaults: {},
      fileForm: 'data_uri',
      writesFiles: false,
      originOf: (scope) => ({ url: own, headers: headersOf(scope) }),
      perform: async (call) => {
        if (jobs === null || poll === null)
          return readAnswer(await toExchange(call, call.context.signal), call);
        const headers = headersOf(call.scope);
        const requestOf = (submitted: Json, signal: AbortSignal): PollRequest => {
          return { scope: { ...call.scope, submitted, answer: submitted }, headers, signal };
        };
        return jobs.run(
          {
            submit: async (signal) => askJson(await toExchange(call, signal)),
            poll: (submitted, signal) => poll.read(requestOf(submitted, signal)),
            cancel: (submitted, signal) => poll.cancel(requestOf(submitted, signal)),
          },
          call,
        );
      },
    };
  },
});
