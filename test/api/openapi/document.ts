/** The OpenAPI document as a list of operations, with every reference at hand. */
import { createOpenApi } from '../../../src/api/documents/openapi.ts';
import { createRoutes } from '../../../src/api/routes.ts';
import { ConfigSchema } from '../../../src/config.ts';

export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>;

export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: { readonly required: boolean; readonly content: Content } | null;
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Record<string, unknown>>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

export function readDocument(): OpenApiDocument {
  const config = ConfigSchema.parse({ DATABASE_URL: 'postgres://none' });
  const routes = createRoutes(config);
  const documented = routes.filter(({ tag }) => tag !== 'docs');
  return JSON.parse(JSON.stringify(createOpenApi(documented))) as OpenApiDocument;
}

/** What takes something away comes last. */
export function listOperations({ paths }: OpenApiDocument): Operation[] {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody = null, responses }]) => ({
      method: method.toUpperCase(),
      path,
      parameters: parameters as Operation['parameters'],
      body: requestBody as Operation['body'],
      responses: responses as Operation['responses'],
    })),
  );
  return operations.sort((one, other) => Number(one.method === 'DELETE') - Number(other.method === 'DELETE'));
}

/** The schema itself, where one refers to another. */
export function createResolve({ components }: OpenApiDocument): (schema: JsonSchema) => JsonSchema {
  const resolve = (schema: JsonSchema): JsonSchema => {
    if (typeof schema.$ref !== 'string') return schema;
    const found = components.schemas[schema.$ref.replace('#/components/schemas/', '')];
    if (found === undefined) throw new Error(`no schema ${schema.$ref}`);
    return resolve(found);
  };
  return resolve;
}
