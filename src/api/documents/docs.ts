/**
 * Pages for people, and documents for machines: the OpenAPI document, and schemas for editors. Swagger UI is served
 * by file name, so that no path can lead elsewhere: from the copy that the build makes, in a checkout from its package.
 *
 * The JSON Schema of a pipeline definition accepts and refuses the same shapes as the contract.
 * `/v1/pipelines/validate` finds the errors beyond shapes (unknown steps, cycles, expressions).
 */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorTable } from '@capstan/core/contracts/errors';
import { FleetFile } from '@capstan/core/contracts/fleet-file';
import { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { ProjectFile } from '@capstan/core/contracts/project-file';
import { z } from 'zod';
import type { ApiConfig } from '../limits.ts';
import { type Route, route } from '../route.ts';
import { toGeneratorDocument } from './generator-document.ts';
import { createOpenApi } from './openapi.ts';

/** A page of the server itself: no inline script or style, nothing from another origin. */
function page(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
${head}
</head>
<body>
${body}
</body>
</html>
`;
}

const apiPage = page(
  'Capstan API',
  '<link rel="stylesheet" href="/docs/swagger-ui.css">',
  `<div id="api"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/init.js"></script>`,
);

const initScript = `SwaggerUIBundle({
  url: '/v1/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
});
`;

export const missingConsolePage = page(
  'Capstan',
  '<meta http-equiv="refresh" content="2">',
  `<h1>The console is being built</h1>
<p>This page tries again by itself. Meanwhile: <a href="/docs">the API</a>.</p>`,
);

function errorRow([code, { status, retryable, meaning }]: [string, (typeof errorTable)['internal']]): string {
  return `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${retryable ? 'yes' : 'no'}</td><td>${meaning}</td></tr>`;
}

const errorsPage = page(
  'Capstan errors',
  '',
  `<h1>Errors</h1>
<p>Every error is <code>application/problem+json</code>; its <code>code</code> is one of these.</p>
<table>
<thead><tr><th>Code</th><th>Status</th><th>May succeed later</th><th>Meaning</th></tr></thead>
<tbody>
${Object.entries(errorTable).map(errorRow).join('\n')}
</tbody>
</table>`,
);

const swaggerFiles = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
} as const;

function findSwaggerFolder(): string {
  const copied = fileURLToPath(new URL('swagger-ui/', import.meta.url));
  if (existsSync(copied)) return copied;
  return dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
}

function readSwaggerFile(name: keyof typeof swaggerFiles): Promise<Buffer> {
  return readFile(join(findSwaggerFolder(), name));
}

interface Page {
  readonly operation: string;
  readonly path: string;
  readonly summary: string;
  /** The media type, without the charset. */
  readonly content: string;
  readonly text: string;
}

function textRoute({ operation, path, summary, content, text }: Page): Route {
  return route(`GET ${path}`, {
    operation,
    tag: 'docs',
    summary,
    scope: null,
    responses: { 200: { content } },
    handle: () => ({ status: 200, headers: { 'Content-Type': `${content}; charset=utf-8` }, body: text }),
  });
}

function swaggerRoute(name: keyof typeof swaggerFiles): Route {
  return route(`GET /docs/${name}`, {
    operation: `get_${name.replaceAll(/[^a-z0-9]/g, '_')}`,
    tag: 'docs',
    summary: `Part of the API page: ${name}`,
    scope: null,
    responses: { 200: { content: swaggerFiles[name] } },
    handle: async () => ({
      status: 200,
      headers: { 'Content-Type': swaggerFiles[name], 'Cache-Control': 'public, max-age=3600' },
      body: await readSwaggerFile(name),
    }),
  });
}

export function docsRoutes(): Route[] {
  return [
    textRoute({
      operation: 'get_api_page',
      path: '/docs',
      summary: 'Show the API in a browser',
      content: 'text/html',
      text: apiPage,
    }),
    textRoute({
      operation: 'get_errors_page',
      path: '/docs/errors',
      summary: 'List the error codes and their meanings',
      content: 'text/html',
      text: errorsPage,
    }),
    textRoute({
      operation: 'get_api_page_script',
      path: '/docs/init.js',
      summary: 'Part of the API page: its start',
      content: 'text/javascript',
      text: initScript,
    }),
    ...(Object.keys(swaggerFiles) as (keyof typeof swaggerFiles)[]).map(swaggerRoute),
  ];
}

interface EditorSchema {
  readonly schema: z.ZodType;
  /** The id of the schema. */
  readonly rootName: string;
  readonly path: string;
}

/** @param publicUrl where clients reach the API; without it, the schema's id is relative */
function createEditorSchema(
  { schema, rootName, path }: EditorSchema,
  publicUrl: string | undefined,
): JsonObject {
  const { $schema, $defs = {} } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => simplify(zodSchema, jsonSchema),
  });
  const { [rootName]: root, ...parts } = $defs;
  const kept = Object.entries(parts).filter(([name]) => !name.startsWith(inner));
  return JsonObject.parse({
    $schema,
    $id: `${publicUrl ?? ''}${path}`,
    ...root,
    $defs: Object.fromEntries(kept),
  });
}

export function createPipelineSchema(publicUrl: string | undefined): JsonObject {
  const path = '/v1/schemas/pipeline.json';
  return createEditorSchema({ schema: PipelineDefinition, rootName: 'PipelineDefinition', path }, publicUrl);
}

export function createFleetSchema(publicUrl: string | undefined): JsonObject {
  const path = '/v1/schemas/fleet.json';
  return createEditorSchema({ schema: FleetFile, rootName: 'FleetFile', path }, publicUrl);
}

export function createProjectSchema(publicUrl: string | undefined): JsonObject {
  const path = '/v1/schemas/project.json';
  return createEditorSchema({ schema: ProjectFile, rootName: 'ProjectFile', path }, publicUrl);
}

/** Zod's name for a recursive schema; only the schema of any JSON value is one. */
const inner = '__schema';

/** Any JSON value accepts anything, so editors need not list its six types at every key. */
function simplify(schema: unknown, shown: z.core.JSONSchema.BaseSchema): void {
  if (schema !== Json && schema !== JsonObject) return;
  for (const key of Object.keys(shown)) if (key !== 'id') delete shown[key];
  if (schema === JsonObject) shown.type = 'object';
}

/** A route that anyone may read, with a schema that is created once. */
function forEditors(create: () => JsonObject) {
  let text: string | undefined;
  return {
    tag: 'service',
    scope: null,
    responses: { 200: { content: 'application/schema+json' } },
    handle: () => {
      text ??= JSON.stringify(create(), null, 2);
      const headers = { 'Content-Type': 'application/schema+json', 'Access-Control-Allow-Origin': '*' };
      return { status: 200 as const, headers, body: text };
    },
  } as const;
}

/** @param documented the routes of the OpenAPI document, besides these */
export function documentRoutes(documented: readonly Route[], config: ApiConfig): Route[] {
  let openApi: JsonObject | undefined;
  let forGenerators: JsonObject | undefined;
  const routes: Route[] = [
    route('GET /v1/openapi.json', {
      operation: 'get_openapi',
      tag: 'service',
      summary: 'This document',
      description:
        'With `for=generators` the document describes types alone: generators of clients do not understand rules about several fields, and no content but JSON and bytes.',
      scope: null,
      query: z.strictObject({ for: z.literal('generators').optional() }),
      responses: { 200: JsonObject },
      handle: (_, { query }) => {
        openApi ??= JsonObject.parse(createOpenApi([...documented, ...routes], config.PUBLIC_URL));
        if (query.for === undefined) return { status: 200, body: openApi };
        forGenerators ??= JsonObject.parse(toGeneratorDocument(openApi));
        return { status: 200, body: forGenerators };
      },
    }),
    route('GET /v1/schemas/pipeline.json', {
      operation: 'get_pipeline_schema',
      summary: 'JSON Schema of a pipeline definition, for editors',
      ...forEditors(() => createPipelineSchema(config.PUBLIC_URL)),
    }),
    route('GET /v1/schemas/fleet.json', {
      operation: 'get_fleet_schema',
      summary: 'JSON Schema of the file of `capstan up`, for editors',
      ...forEditors(() => createFleetSchema(config.PUBLIC_URL)),
    }),
    route('GET /v1/schemas/project.json', {
      operation: 'get_project_schema',
      summary: 'JSON Schema of `project.yaml`, which `capstan apply` reads, for editors',
      ...forEditors(() => createProjectSchema(config.PUBLIC_URL)),
    }),
  ];
  return routes;
}
