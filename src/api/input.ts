/**
 * The input of a route: the kind and size of its body, and the validation of path, query, headers and body together, so
 * that one answer names every error.
 */

import type { Readable } from 'node:stream';
import type { Json } from '@capstan/core/contracts/primitives';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import { messageOfIssue } from '@capstan/core/definitions/findings';
import { AppError } from '@capstan/core/errors/app-error';
import { wording } from '@capstan/core/json/issue-words';
import { extendPointer } from '@capstan/core/json/values';
import { z } from 'zod';

const shownItems = 100;

/** A request before validation. */
export interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

/** The schema of a part that is ignored. */
export const Nothing = z.object({});
export type Nothing = typeof Nothing;

interface InputSchemas {
  readonly params: z.ZodType;
  readonly query: z.ZodType;
  readonly headers: z.ZodType;
  readonly body: BodyKind;
}

function toItems(issue: z.core.$ZodIssue, prefix: string): ProblemItem[] {
  const pointer = extendPointer(prefix, ...issue.path.map(String));
  if (issue.code !== 'unrecognized_keys')
    return [{ pointer, code: issue.code, message: messageOfIssue(issue) }];
  return issue.keys.slice(0, shownItems).map((key) => ({
    pointer: extendPointer(pointer, key),
    code: issue.code,
    message: 'no such field here',
  }));
}

/**
 * Validates and converts the parts. Pointers into the body are plain (`/steps/0/id`); those of other parts start with
 * `/path`, `/query` or `/headers`.
 *
 * @throws AppError `request_invalid` with up to 100 items
 */
export function validateInput(schemas: InputSchemas, input: RawInput): RawInput {
  const items: ProblemItem[] = [];
  const check = (schema: z.ZodType, value: unknown, prefix: string): unknown => {
    if (schema === Nothing) return {};
    const parsed = schema.safeParse(value, wording);
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues)
      if (items.length < shownItems) items.push(...toItems(issue, prefix));
    return undefined;
  };
  const checked = {
    params: check(schemas.params, input.params, '/path'),
    query: check(schemas.query, input.query, '/query'),
    headers: check(schemas.headers, input.headers, '/headers'),
    body: schemas.body.kind === 'json' ? check(schemas.body.schema, input.body, '') : input.body,
  };
  const [first] = items;
  if (first === undefined) return checked;
  const more = items.length > 1 ? `, and ${items.length - 1} more` : '';
  const message = `${first.pointer || 'the body'}: ${first.message}${more}`;
  throw new AppError('request_invalid', message, { errors: items.slice(0, shownItems) });
}

/**
 * The limits of a body. `small`: a few short fields. `request`: an ordinary request. `data`: it carries a job or
 * another input, which has the same limit in every route. `definition`: a pipeline definition.
 */
export type BodySize = 'small' | 'request' | 'data' | 'chat' | 'definition';

export interface JsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'json';
  readonly schema: S;
  readonly size: BodySize;
  /** An absent body counts as `{}`. */
  readonly optional: boolean;
}

/** The text of a pipeline definition, JSON or YAML. */
interface DefinitionBody {
  readonly kind: 'definition';
}

interface StreamBody {
  readonly kind: 'stream';
}

/** A body in one of several forms, which its handler reads once it knows the sender. */
interface RawBody {
  readonly kind: 'raw';
}

export interface NoBody {
  readonly kind: 'none';
}

export type BodyKind = JsonBody | DefinitionBody | StreamBody | RawBody | NoBody;

export interface ReceivedText {
  readonly text: string;
  readonly contentType: string | null;
}

export interface ReceivedStream {
  readonly stream: Readable;
  readonly contentType: string;
}

export interface ReceivedRaw {
  /** In lower case, without parameters; '' = none. */
  readonly mediaType: string;
  /** Reads a text as JSON, within the limits of a job. @throws AppError as for a JSON body */
  readonly readJson: (bytes: Buffer) => Json;
  /** Its text. @throws AppError `malformed_json` for what is not UTF-8 */
  readonly readText: (bytes: Buffer) => string;
}

export type BodyOf<B extends BodyKind> =
  B extends JsonBody<infer S>
    ? z.output<S>
    : B extends DefinitionBody
      ? ReceivedText
      : B extends StreamBody
        ? ReceivedStream
        : B extends RawBody
          ? ReceivedRaw
          : undefined;

export function json<S extends z.ZodType>(schema: S, size: BodySize = 'request'): JsonBody<S> {
  return { kind: 'json', schema, size, optional: false };
}

export function optionalJson<S extends z.ZodType>(schema: S, size: BodySize = 'request'): JsonBody<S> {
  return { ...json(schema, size), optional: true };
}

export const definitionText: DefinitionBody = { kind: 'definition' };

export const byteStream: StreamBody = { kind: 'stream' };

export const rawBody: RawBody = { kind: 'raw' };
