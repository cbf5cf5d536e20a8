/**
 * One declaration per route: it defines mounting, authentication and validation, and it is the route's entry in the
 * OpenAPI document. `handle` receives the context and the validated request and returns one of the declared responses;
 * `result` returns the body of the only one. The compiler checks both against the declaration.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { CancelSignal } from '@capstan/core/cancellation';
import type { Scope } from '@capstan/core/contracts/access';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { JsonText } from '@capstan/core/json/text';
import type { z } from 'zod';
import type { ServerCtx } from '../context.ts';
import type { Caller } from '../use-cases/access/caller.ts';
import { type BodyKind, type BodyOf, type NoBody, Nothing, type RawInput, validateInput } from './input.ts';
import type { OpenKind, RateKind } from './limits.ts';

/**
 * An answer that is not JSON, or not always. A stream that starts work when created is passed as a function, which HEAD
 * does not call. `content` is the media type, `*` + `/*` if the file decides.
 */
export interface ByteResponse {
  readonly content: string;
  readonly schema?: z.ZodType;
}

/** Status → schema of a JSON answer, bytes, or nothing. */
export type Responses = Readonly<Record<number, z.ZodType | ByteResponse | 'empty'>>;

/** A list sends the header several times. */
export type AnswerHeaders = Readonly<Record<string, string | string[]>>;

type BodyOfResponse<R> = R extends z.ZodType
  ? { readonly body: z.output<R> | JsonText<z.output<R>> }
  : R extends ByteResponse
    ? {
        readonly body:
          | Readable
          | (() => Readable)
          | Buffer
          | string
          | (R['schema'] extends z.ZodType ? z.output<R['schema']> : never);
      }
    : { readonly body?: undefined };

export type AnswerOf<R extends Responses> = {
  [S in keyof R & number]: { readonly status: S; readonly headers?: AnswerHeaders } & BodyOfResponse<R[S]>;
}[keyof R & number];

/** Only a route with one response has a result. */
type ResultOf<R extends Responses, Status = keyof R & number> = Status extends keyof R & number
  ? [keyof R & number] extends [Status]
    ? BodyOfResponse<R[Status]>['body']
    : never
  : never;

export interface Answer {
  readonly status: number;
  readonly headers?: AnswerHeaders;
  readonly body?: unknown;
}

/** An authenticated request with its body, before validation. */
export interface RawCall extends RawInput {
  /** Null on open routes. */
  readonly caller: Caller | null;
  /** The request names one of the key's projects. */
  readonly isProjectChosen: boolean;
  /** The path as it was sent, still percent-encoded. */
  readonly path: string;
  /** The id in the log and in problems. */
  readonly request_id: string;
  /** The raw body; empty when the route streams it or reads none. */
  readonly bytes: Buffer;
  readonly requestHeaders: IncomingHttpHeaders;
  readonly isClosing: boolean;
  /** Aborted when the client disconnects or, unless the route is long, the server is closing. */
  readonly signal: CancelSignal;
  /** For headers that an error answer carries too. */
  readonly setHeader: (name: string, value: string) => void;
  /** Counts a wrong key in a body against the sender's address. @throws AppError `rate_limited` */
  readonly sawWrongKey: () => void;
  /** Counts a new session against the key that opens it. @throws AppError `rate_limited` */
  readonly opensSession: (keyId: string) => void;
  /**
   * Counts a start of a run against the key, on a route of another rate.
   * @param holder the key, where the request carries none
   * @throws AppError `rate_limited`
   */
  readonly asksToStart: (holder?: string) => void;
}

type Call<P, Q, H, B, S> = Omit<RawCall, 'params' | 'query' | 'headers' | 'body' | 'caller'> & {
  readonly params: P;
  readonly query: Q;
  readonly headers: H;
  readonly body: B;
  readonly caller: S extends null ? null : Caller;
};

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface RouteFacts {
  /** The `operationId`: generators use it as the method name. Verb first, unique. */
  readonly operation: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /**
   * The answer may take hours without traffic on the connection. A closing server waits for it, so its `signal` aborts
   * only when the client disconnects.
   */
  readonly isLong?: boolean;
  /** Pages of other origins are refused, with or without a key. */
  readonly isForPrograms?: boolean;
  /** The rate that the route counts against; default `request`. */
  readonly rate?: RateKind;
  /** The handler checks the name, so that a scope for some names opens the route too. */
  readonly checksName?: boolean;
  /** The kind under which open requests are counted; default `request`. */
  readonly opens?: OpenKind;
  /** Time limit including authentication; a later answer becomes `unavailable`. */
  readonly withinMs?: number;
  /** Codes beyond those that follow from authentication, parameters and body. */
  readonly errors?: readonly ErrorCode[];
}

/** `any`: every valid key. */
export type KeyRouteScope = Scope | 'any';

type Declaration<
  S extends KeyRouteScope | null,
  P extends z.ZodObject,
  Q extends z.ZodObject,
  H extends z.ZodObject,
  B extends BodyKind,
  R extends Responses,
  O,
> = RouteFacts & {
  /** Null: open to everyone. */
  readonly scope: S;
  readonly params?: P;
  readonly query?: Q;
  readonly headers?: H;
  readonly body?: B;
  readonly responses: R;
} & Handler<Call<z.output<P>, z.output<Q>, z.output<H>, BodyOf<B>, S>, R, O>;

type Handler<Received, R extends Responses, O> =
  | { readonly handle: (ctx: ServerCtx, call: Received) => O | Promise<O> }
  /** The body of the only response. */
  | { readonly result: (ctx: ServerCtx, call: Received) => ResultOf<R> | Promise<ResultOf<R>> };

export interface Route extends RouteFacts {
  readonly method: Method;
  readonly path: string;
  readonly scope: KeyRouteScope | null;
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  readonly headers: z.ZodObject;
  readonly body: BodyKind;
  readonly responses: Responses;
  /** @throws AppError `request_invalid` with everything that is wrong with the request */
  readonly handle: (ctx: ServerCtx, call: RawCall) => Promise<Answer>;
}

/** @param at method and path, with `{name}` for a segment and `{+name}` for the rest of the path */
export function route<
  const S extends KeyRouteScope | null,
  const R extends Responses,
  const O extends AnswerOf<R>,
  P extends z.ZodObject = Nothing,
  Q extends z.ZodObject = Nothing,
  H extends z.ZodObject = Nothing,
  B extends BodyKind = NoBody,
>(at: `${Method} ${string}`, declaration: Declaration<S, P, Q, H, B, R, O>): Route {
  type Received = Call<z.output<P>, z.output<Q>, z.output<H>, BodyOf<B>, S>;
  const { params = Nothing, query = Nothing, headers = Nothing, ...facts } = declaration;
  const body: BodyKind = declaration.body ?? { kind: 'none' };
  const schemas = { params, query, headers, body };
  const [status] = Object.keys(declaration.responses);
  const [method, path] = at.split(' ') as [Method, string];
  return {
    ...facts,
    method,
    path,
    ...schemas,
    handle: async (ctx, call) => {
      const { params, query, headers, body } = validateInput(schemas, call);
      const received = { ...call, params, query, headers, body } as Received;
      if ('handle' in declaration) return declaration.handle(ctx, received);
      return { status: Number(status), body: await declaration.result(ctx, received) };
    },
  };
}
