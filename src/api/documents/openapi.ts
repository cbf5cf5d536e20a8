/** The OpenAPI 3.1 document, generated from the declarations of the routes. */

import { type ErrorCode, errorTable } from '@capstan/core/contracts/errors';
import { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { JsonObject, Json as JsonValue } from '@capstan/core/contracts/primitives';
import { Problem } from '@capstan/core/contracts/problem';
import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import type { BodyKind } from '../input.ts';
import { httpLimits } from '../limits.ts';
import { findErrorForm } from '../model-errors.ts';
import type { Route } from '../route.ts';

const bodyErrors: readonly ErrorCode[] = ['request_timeout', 'body_too_large', 'unsupported_media_type'];
const textErrors: readonly ErrorCode[] = ['malformed_json', 'json_too_deep', 'proto_key'];

function isEmptyShape(schema: z.ZodObject): boolean {
  return Object.keys(schema.shape).length === 0;
}

function hasInput({ params, query, headers, body }: Route): boolean {
  return body.kind === 'json' || [params, query, headers].some((schema) => !isEmptyShape(schema));
}

/** All errors of a route besides its responses. */
function errorsOf(route: Route): ErrorCode[] {
  const isText = ['json', 'definition', 'raw'].includes(route.body.kind);
  const codes: ErrorCode[] = [
    ...(isText ? [...bodyErrors, ...textErrors] : []),
    ...(hasInput(route) ? (['request_invalid'] as const) : []),
    ...(route.scope === null
      ? []
      : (['unauthenticated', 'forbidden', 'rate_limited', 'unavailable'] as const)),
    ...csrfOf(route),
    ...(isEmptyShape(route.params) ? [] : (['not_found'] as const)),
    ...(route.errors ?? []),
    'internal',
  ];
  return [...new Set(codes)];
}

function problemResponses(route: Route): ZodOpenApiResponsesObject {
  const codes = errorsOf(route);
  const entries = codes.map((code) => {
    const { status } = errorTable[code];
    const ofStatus = codes.filter((other) => errorTable[other].status === status);
    const description = ofStatus.map((other) => `\`${other}\`: ${errorTable[other].meaning}`).join('\n\n');
    return [status, { description, content: errorForm(route) }];
  });
  return { ...Object.fromEntries(entries), 431: tooLargeHead };
}

function errorForm({ path }: Route) {
  const form = findErrorForm(path);
  return form === null
    ? { 'application/problem+json': { schema: Problem } }
    : { 'application/json': { schema: form.schema } };
}

/** Node answers this itself, before there is a request for a problem. */
const tooLargeHead = {
  description: `Address and headers are larger than ${httpLimits.headerBytes} bytes together. The body is empty.`,
};

const binary = z.any().meta({ override: { type: 'string', format: 'binary' } });

function successResponses({ responses }: Route): ZodOpenApiResponsesObject {
  const entries = Object.entries(responses).map(([status, response]) => {
    const description = status.startsWith('2') ? 'Done.' : 'See the description.';
    if (response === 'empty') return [status, { description }];
    if (response instanceof z.ZodType)
      return [status, { description, content: { 'application/json': { schema: response } } }];
    const { content, schema } = response;
    const json = schema === undefined ? {} : { 'application/json': { schema } };
    const bytes = content.endsWith('+json') ? JsonObject : binary;
    return [status, { description, content: { ...json, [content]: { schema: bytes } } }];
  });
  return Object.fromEntries(entries);
}

function requestBody(body: BodyKind): ZodOpenApiOperationObject['requestBody'] {
  switch (body.kind) {
    case 'json':
      return { required: !body.optional, content: { 'application/json': { schema: body.schema } } };
    case 'definition':
      return {
        required: true,
        content: {
          'application/json': { schema: PipelineDefinition },
          'application/yaml': { schema: z.string() },
        },
      };
    case 'raw':
      return {
        required: true,
        content: {
          'application/json': { schema: JsonValue },
          'application/x-www-form-urlencoded': { schema: JsonObject },
        },
      };
    case 'stream':
      return { required: true, content: { '*/*': { schema: binary } } };
    case 'none':
      return undefined;
  }
}

const ProjectChoice = z.object({
  project_id: z.string().optional().meta({ description: 'The project, instead of `X-Project-ID`.' }),
});

/** Reads accept `project_id` too, for clients that cannot send a header. */
function queryParameters({ method, query, scope }: Route): { query?: z.ZodObject } {
  const takesProject = scope !== null && method === 'GET';
  if (isEmptyShape(query)) return takesProject ? { query: ProjectChoice } : {};
  return { query: takesProject ? query.safeExtend(ProjectChoice.shape) : query };
}

function csrfOf({ method, scope }: Route): readonly ErrorCode[] {
  return scope === null || method === 'GET' || method === 'HEAD' ? [] : ['csrf_refused'];
}

/** A status may have a form of its own next to that of errors. */
function joinResponses(
  own: ZodOpenApiResponsesObject,
  problems: ZodOpenApiResponsesObject,
): ZodOpenApiResponsesObject {
  const ofOwn = new Map(Object.entries(own));
  const joined = Object.entries(problems).map(([status, problem]) => {
    const content = { ...ofOwn.get(status)?.content, ...problem.content };
    return [status, Object.keys(content).length === 0 ? problem : { ...problem, content }];
  });
  return { ...own, ...Object.fromEntries(joined) };
}

function toOperation(route: Route): ZodOpenApiOperationObject {
  const { params, headers, scope } = route;
  const body = requestBody(route.body);
  const access = scope === null ? [] : [scope === 'any' ? 'Any key.' : `Scope: \`${scope}\`.`];
  return {
    operationId: route.operation,
    tags: [route.tag],
    summary: route.summary,
    description: [...(route.description === undefined ? [] : [route.description]), ...access].join('\n\n'),
    security: scope === null ? [] : [{ bearer: [] }, { api_key: [] }, { session: [] }],
    requestParams: {
      ...(isEmptyShape(params) ? {} : { path: params }),
      ...queryParameters(route),
      ...(isEmptyShape(headers) ? {} : { header: headers }),
    },
    ...(body === undefined ? {} : { requestBody: body }),
    responses: joinResponses(successResponses(route), problemResponses(route)),
  };
}

/** `{+file}` matches the rest of the path; OpenAPI can only express a plain parameter. */
export function toDocumentedPath(path: string): string {
  return path.replace('{+', '{');
}

function toPaths(routes: readonly Route[]): ZodOpenApiPathsObject {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of routes) {
    const path = toDocumentedPath(route.path);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(route) };
  }
  return paths;
}

/** Writes the length of a tuple as numbers: some generators do not accept a boolean schema. */
function countPlaces({ jsonSchema }: { readonly jsonSchema: { [key: string]: unknown } }): void {
  const { prefixItems, items } = jsonSchema;
  if (!Array.isArray(prefixItems) || (items !== undefined && items !== false)) return;
  delete jsonSchema.items;
  jsonSchema.minItems = prefixItems.length;
  jsonSchema.maxItems = prefixItems.length;
}

/** @param serverUrl address of the API for clients; default: relative to the document */
export function createOpenApi(routes: readonly Route[], serverUrl = '/'): ReturnType<typeof createDocument> {
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Capstan',
        version: '1',
        description:
          'Durable pipelines with a cost-aware capability router. Every error is `application/problem+json`. Send a key as `Authorization: Bearer` or `X-API-Key`; `X-Project-ID` selects one of its projects.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: serverUrl }],
      paths: toPaths(routes),
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          api_key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
          session: { type: 'apiKey', in: 'cookie', name: 'capstan_session' },
        },
      },
    },
    { override: countPlaces },
  );
}
