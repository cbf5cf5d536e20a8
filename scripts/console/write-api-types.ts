/** Writes src/client/api-types.d.ts out of our OpenAPI document, for the package's client and the console. */
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { createOpenApi } from '../../src/api/documents/openapi.ts';
import { declaredRoutes } from '../docs/declared-routes.ts';

const target = new URL('../../src/client/api-types.d.ts', import.meta.url);
/** What the document can only call "anything". */
const ours = ['Json', 'JsonObject'];

const declared = `export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}`;

function toOurs(path: string | undefined): ts.TypeNode | undefined {
  const name = /#\/components\/schemas\/(\w+)$/.exec(path ?? '')?.[1]?.replace(/Output$/, '');
  return name !== undefined && ours.includes(name) ? ts.factory.createTypeReferenceNode(name) : undefined;
}

/** Pages for people are no part of the API. */
const routes = declaredRoutes().filter(({ tag }) => tag !== 'docs' && tag !== 'console');
const nodes = await openapiTS(JSON.parse(JSON.stringify(createOpenApi(routes))), {
  transform: (_schema, { path }) => toOurs(path),
  inject: declared,
  defaultNonNullable: false,
});
await writeFile(fileURLToPath(target), astToString(nodes));

/** A folder of a build, which tsc leaves without it. */
const [build] = process.argv.slice(2);
if (build !== undefined) await cp(target, join(build, 'src/client/api-types.d.ts'));
