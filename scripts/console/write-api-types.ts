/** Writes console/src/api/schema.d.ts out of our OpenAPI document: the types of every path that the page may ask. */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { createOpenApi } from '../../src/api/openapi.ts';
import { declaredRoutes } from '../docs/declared-routes.ts';

const target = new URL('../../console/src/api/schema.d.ts', import.meta.url);
/** What the document can only call "anything". */
const ours = ['Json', 'JsonObject'];

function toOurs(path: string | undefined): ts.TypeNode | undefined {
  const name = /#\/components\/schemas\/(\w+)$/.exec(path ?? '')?.[1]?.replace(/Output$/, '');
  return name !== undefined && ours.includes(name) ? ts.factory.createTypeReferenceNode(name) : undefined;
}

/** Pages for people are no part of the API. */
const routes = declaredRoutes().filter(({ tag }) => tag !== 'docs' && tag !== 'console');
const nodes = await openapiTS(JSON.parse(JSON.stringify(createOpenApi(routes))), {
  transform: (_schema, { path }) => toOurs(path),
  inject: `import type { ${ours.join(', ')} } from '../../../src/contracts/primitives.ts';`,
  defaultNonNullable: false,
});
await writeFile(fileURLToPath(target), astToString(nodes));
