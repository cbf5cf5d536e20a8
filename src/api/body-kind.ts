/** What a route reads as its body, and how much of it. */
import type { Readable } from 'node:stream';
import type { z } from 'zod';

/**
 * Whose limits apply: those of one that holds a few short fields; those of an ordinary request; those of one that carries a job or another input, which may hold as
 * much wherever it is sent; or those of a pipeline definition.
 */
export type BodySize = 'small' | 'request' | 'data' | 'definition';

export interface JsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'json';
  readonly schema: S;
  readonly size: BodySize;
  /** An absent body is read as `{}`. */
  readonly optional: boolean;
}

/** The text of a pipeline definition, JSON or YAML. */
export interface DefinitionBody {
  readonly kind: 'definition';
}

export interface StreamBody {
  readonly kind: 'stream';
}

export interface NoBody {
  readonly kind: 'none';
}

export type BodyKind = JsonBody | DefinitionBody | StreamBody | NoBody;

export interface ReceivedText {
  readonly text: string;
  readonly contentType: string | null;
}

export interface ReceivedStream {
  readonly stream: Readable;
  readonly contentType: string;
}

export type BodyOf<B extends BodyKind> =
  B extends JsonBody<infer S>
    ? z.output<S>
    : B extends DefinitionBody
      ? ReceivedText
      : B extends StreamBody
        ? ReceivedStream
        : undefined;

export function json<S extends z.ZodType>(schema: S, size: BodySize = 'request'): JsonBody<S> {
  return {
    kind: 'json',
    schema,
    size,
    optional: false,
  };
}

export function optionalJson<S extends z.ZodType>(schema: S, size: BodySize = 'request'): JsonBody<S> {
  return {
    ...json(schema, size),
    optional: true,
  };
}

export const definitionText: DefinitionBody = { kind: 'definition' };

export const byteStream: StreamBody = { kind: 'stream' };
