/**
 * The API over fetch. Every JSON answer is validated against its contract and returned together with its original text,
 * which `--json` prints. Every failure is a ProblemError (the API refused) or an UnreachableError (no Capstan server
 * answered).
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Problem } from '@capstan/core/contracts/problem';
import { parseJson, writeJson } from '@capstan/core/json/text';
import type { z } from 'zod';
import { type ProblemAnswer, ProblemError, UnreachableError } from '../errors.ts';
import type { Connection } from './connection.ts';

export interface ApiAnswer<Value> {
  readonly value: Value;
  /** The body as received. */
  readonly text: string;
  /** An earlier request with the same key did it. Absent: this one did, or it changes nothing. */
  readonly isReplayed?: boolean;
}

type SentText = Required<Pick<ApiAnswer<never>, 'text' | 'isReplayed'>>;
type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface RequestBody {
  readonly text: string;
  /** Content-Type. */
  readonly type: string;
  readonly idempotencyKey?: string;
  /** The version that the request applies to. */
  readonly ifMatch?: string;
  /** Time limit of the answer; default 60 s. */
  readonly timeoutMs?: number;
}

interface StreamOptions {
  readonly query?: Query;
  /** Default: GET without a body. */
  readonly method?: 'POST';
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** `manual`: a redirect is returned as it is. */
  readonly redirect?: 'manual';
}

export interface ApiClient {
  readonly connection: Connection;
  readonly get: <Value>(path: string, schema: z.ZodType<Value>, query?: Query) => Promise<ApiAnswer<Value>>;
  readonly post: <Value>(
    path: string,
    schema: z.ZodType<Value>,
    body: RequestBody,
  ) => Promise<ApiAnswer<Value>>;
  readonly put: <Value>(
    path: string,
    schema: z.ZodType<Value>,
    body: RequestBody,
  ) => Promise<ApiAnswer<Value>>;
  /** Returns the body's text, which may be empty. */
  readonly remove: (path: string, query?: Query) => Promise<ApiAnswer<string>>;
  /** The unread response, for event streams and files. */
  readonly open: (path: string, options?: StreamOptions) => Promise<Response>;
}

const requestTimeoutMs = 60_000;
/** Time limits that the specification sets. */
const timeoutByPath: Readonly<Record<string, number>> = { '/v1/costs': 4_000 };
/** By itself, fetch waits at most this long for the start of an answer. */
const fetchLimitMs = 300_000;

/** Options for fetch that remove its own time limit. */
async function waitLong(): Promise<RequestInit> {
  const { Agent } = await import('undici');
  return { dispatcher: new Agent({ headersTimeout: 0, bodyTimeout: 0 }) } as object;
}

/** Builds a path of the API and encodes its parts: path`/v1/keys/${id}/rotate`. */
export function path(fixed: TemplateStringsArray, ...parts: readonly string[]): string {
  return String.raw({ raw: fixed }, ...parts.map(encodeURIComponent));
}

export const emptyBody: RequestBody = { text: '', type: 'application/json' };

export function jsonBody(value: unknown, idempotencyKey?: string): RequestBody {
  return { text: writeJson(value), type: 'application/json', idempotencyKey };
}

export function authorisation({ key, project }: Connection): Record<string, string> {
  return {
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(project === undefined ? {} : { 'x-project-id': project }),
  };
}

function codeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
  return code ?? codeOf(thrown.cause);
}

/** Turns network errors of fetch into an UnreachableError; other errors pass unchanged. */
export function toUnreachable(url: string, thrown: unknown, timeoutMs = requestTimeoutMs): unknown {
  if (!(thrown instanceof Error) || thrown.name === 'AbortError') return thrown;
  if (thrown.name === 'TimeoutError') {
    return new UnreachableError(`${url} did not answer within ${timeoutMs / 1_000}s`);
  }
  const code = codeOf(thrown);
  if (code === 'ECONNREFUSED') {
    return new UnreachableError(`no Capstan at ${url}; start one with \`capstan dev\``);
  }
  // fetch hides network errors behind an error of its own.
  const reason = code ?? (thrown.cause instanceof Error ? thrown.cause.message : undefined);
  return reason === undefined ? thrown : new UnreachableError(`cannot talk to ${url}: ${reason}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Reads a refusal. Answers of proxies (HTML, or an empty body) become `http_<status>`. */
export function readProblem(status: number, text: string, retryAfter: string | null): ProblemAnswer {
  const seen = parseJson(text);
  const body = isObject(seen) ? seen : {};
  const items = Problem.shape.errors.safeParse(body.errors);
  return {
    status,
    code: typeof body.code === 'string' ? body.code : `http_${status}`,
    detail:
      typeof body.detail === 'string' ? body.detail : text.trim().slice(0, 200) || 'no explanation given',
    errors: items.success ? (items.data ?? []) : [],
    request_id: typeof body.request_id === 'string' ? body.request_id : undefined,
    retry_after_s: retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined,
  };
}

function parseAnswer<Value>(url: string, schema: z.ZodType<Value>, text: string): ApiAnswer<Value> {
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return { value: parsed.data, text };
  const [issue] = parsed.error.issues;
  throw new UnreachableError(
    `${url} answered something that this version of capstan does not understand: ` +
      `/${issue?.path.join('/') ?? ''} ${issue?.message ?? ''}`,
  );
}

/** Absent values are left out. */
export function withQuery(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}

export function createApiClient(connection: Connection): ApiClient {
  const send = async (path: string, init: RequestInit): Promise<Response> => {
    const headers = { accept: 'application/json', ...authorisation(connection), ...init.headers };
    const response = await fetch(`${connection.url}${path}`, { ...init, headers });
    if (response.ok || (init.redirect === 'manual' && response.status === 307)) return response;
    throw new ProblemError(
      readProblem(response.status, await response.text(), response.headers.get('retry-after')),
    );
  };
  const reach = async <Result>(work: () => Promise<Result>, timeoutMs?: number): Promise<Result> => {
    try {
      return await work();
    } catch (thrown) {
      throw toUnreachable(connection.url, thrown, timeoutMs);
    }
  };
  const sendInTime = (path: string, init: RequestInit, timeoutMs = requestTimeoutMs): Promise<SentText> =>
    reach(async () => {
      const response = await send(path, { ...init, signal: AbortSignal.timeout(timeoutMs) });
      return {
        text: await response.text(),
        isReplayed: response.headers.get('idempotent-replayed') === 'true',
      };
    }, timeoutMs);
  const sendForText = async (path: string, init: RequestInit, timeoutMs?: number): Promise<string> =>
    (await sendInTime(path, init, timeoutMs)).text;

  const submit =
    (method: 'POST' | 'PUT') =>
    async <Value>(path: string, schema: z.ZodType<Value>, body: RequestBody): Promise<ApiAnswer<Value>> => {
      const { idempotencyKey, ifMatch } = body;
      const headers = {
        'content-type': body.type,
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      };
      const { timeoutMs = requestTimeoutMs } = body;
      const patience = timeoutMs < fetchLimitMs ? {} : await waitLong();
      const init = { method, headers, body: body.text, ...patience };
      const { text, isReplayed } = await sendInTime(path, init, timeoutMs);
      return { ...parseAnswer(connection.url, schema, text), isReplayed };
    };

  return {
    connection,
    get: async (path, schema, query) =>
      parseAnswer(connection.url, schema, await sendForText(withQuery(path, query), {}, timeoutByPath[path])),
    post: submit('POST'),
    put: submit('PUT'),
    remove: async (path, query) => {
      const text = await sendForText(withQuery(path, query), { method: 'DELETE' });
      return { value: text, text };
    },
    open: (path, { query, ...options } = {}) =>
      reach(async () =>
        send(withQuery(path, query), { ...options, ...(options.body && (await waitLong())) }),
      ),
  };
}

interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

interface ListQuery<Item> {
  readonly list: string;
  readonly schema: z.ZodType<ListPage<Item>>;
  readonly query?: Query;
  /** Default: all. */
  readonly most?: number;
}

const pageSize = 200;

/** Reads pages of a list as one; one page stays as it came. A page of a search may have fewer items than there are. */
export async function getItems<Item>(
  client: ApiClient,
  { list, schema, query, most = Number.POSITIVE_INFINITY }: ListQuery<Item>,
): Promise<ApiAnswer<ListPage<Item>>> {
  const first = await client.get(list, schema, { ...query, limit: Math.min(pageSize, most) });
  const items = [...first.value.items];
  let { next_cursor } = first.value;
  if (next_cursor === null || items.length >= most) return first;
  while (next_cursor !== null && items.length < most) {
    const page: Query = { ...query, limit: Math.min(pageSize, most - items.length), cursor: next_cursor };
    const { value } = await client.get(list, schema, page);
    items.push(...value.items);
    next_cursor = value.next_cursor;
  }
  const found = { items, next_cursor };
  return { value: found, text: writeJson(found) };
}

/** Reads all pages of a list as one. */
export function getAll<Item>(
  client: ApiClient,
  list: string,
  schema: z.ZodType<ListPage<Item>>,
): Promise<ApiAnswer<ListPage<Item>>> {
  return getItems(client, { list, schema });
}

interface DownloadOptions extends StreamOptions {
  readonly to: NodeJS.WritableStream;
}

/** Streams a long list. */
export async function download(
  client: ApiClient,
  from: string,
  { to, ...options }: DownloadOptions,
): Promise<void> {
  const { body } = await client.open(from, options);
  try {
    await pipeline(Readable.from(body ?? []), to, { end: false });
  } catch (thrown) {
    throw toUnreachable(client.connection.url, thrown);
  }
}
