/**
 * All requests to the server. The session's cookie authenticates; the page stores no key. Every request carries the
 * selected project and the header that the server requires beside a cookie for changes. A number that JavaScript would
 * change is shown as text.
 */

import type { paths } from '@capstan/client';
import { quoteLostNumbers } from '@capstan/core/json/numbers';
import createClient from 'openapi-fetch';
import { fetchHeard } from './answers.ts';
import { AnswerError, toProblem } from './problem-error.ts';
import { readProject } from './project.ts';

export const client = createClient<paths>({
  baseUrl: '/',
  credentials: 'same-origin',
  fetch: (request) => fetchHeard(request),
});

client.use({
  onRequest: ({ request }) => {
    for (const [name, value] of Object.entries(headersOfPage())) request.headers.set(name, value);
    return request;
  },
  onResponse: async ({ response }) =>
    isJson(response) ? new Response(quoteLostNumbers(await response.text()), response) : undefined,
});

function isJson({ headers }: Response): boolean {
  return /\/(?:[\w.-]+\+)?json\b/.test(headers.get('content-type') ?? '');
}

interface Fetched<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: Response;
}

export const unreachable = {
  title: 'No contact',
  detail: 'The server does not answer. It may be starting again; what is shown may be old.',
};

/** @throws AnswerError */
export async function answerOf<Data>(asked: Promise<Fetched<Data>>): Promise<Data> {
  const { data, error, response } = await asked.catch((): never => {
    throw new AnswerError(0, unreachable);
  });
  if (!response.ok) throw toProblem(response.status, error);
  return data as Data;
}

export interface PlainRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** A string is sent unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Headers that identify the page and the project. */
export function headersOfPage(): Record<string, string> {
  const project = readProject();
  return { 'X-Capstan-Console': '1', ...(project === null ? {} : { 'X-Project-ID': project }) };
}

function toInit({ method = 'GET', body, headers, signal }: PlainRequest): RequestInit {
  const isText = typeof body === 'string';
  return {
    method,
    headers: {
      ...headersOfPage(),
      ...(body === undefined || isText ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  };
}

/** For addresses that depend on the path or are not in the API document. @throws AnswerError */
export async function askPlainly<Data>(path: string, request: PlainRequest = {}): Promise<Data> {
  const response = await fetchHeard(path, toInit(request)).catch((): never => {
    throw new AnswerError(0, unreachable);
  });
  const text = await response.text();
  const answer: unknown = isJson(response) && text !== '' ? JSON.parse(quoteLostNumbers(text)) : text;
  if (!response.ok) throw toProblem(response.status, answer);
  return answer as Data;
}

/** 32 random hexadecimal digits. A page over plain HTTP has no `crypto.randomUUID`. */
export function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A new key per intent: a repeated click sends the same key. */
export function newIdempotencyKey(): string {
  return `console-${randomName()}`;
}
