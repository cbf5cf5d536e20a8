/** What machines read about this API: its OpenAPI document, and schemas for editors. */
import { JsonObject } from '../../contracts/primitives.ts';
import type { ApiConfig } from '../limits.ts';
import { createOpenApi } from '../openapi.ts';
import { createPipelineSchema } from '../pipeline-schema.ts';
import { type Route, route } from '../route.ts';

/** @param documented routes that the OpenAPI document lists besides these two */
export function documentRoutes(documented: readonly Route[], config: ApiConfig): Route[] {
  const pipelineSchema = createPipelineSchema(config.PUBLIC_URL);
  let openApi: JsonObject | undefined;
  const routes: Route[] = [
    route({
      operation: 'get_openapi',
      method: 'GET',
      path: '/v1/openapi.json',
      tag: 'service',
      summary: 'This document',
      auth: 'open',
      responses: { 200: JsonObject },
      handle: () => {
        openApi ??= JsonObject.parse(createOpenApi([...documented, ...routes], config.PUBLIC_URL));
        return { status: 200, body: openApi };
      },
    }),
    route({
      operation: 'get_pipeline_schema',
      method: 'GET',
      path: '/v1/schemas/pipeline.json',
      tag: 'service',
      summary: 'JSON Schema of a pipeline definition, for editors',
      auth: 'open',
      responses: { 200: { content: 'application/schema+json' } },
      handle: () => ({
        status: 200,
        headers: { 'Content-Type': 'application/schema+json', 'Access-Control-Allow-Origin': '*' },
        body: JSON.stringify(pipelineSchema, null, 2),
      }),
    }),
  ];
  return routes;
}
