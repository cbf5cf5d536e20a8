/** packages/client/src/api-types.d.ts: the types of our OpenAPI document, for the package's client and the console. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type ts from 'typescript';
import { createOpenApi } from '../../src/api/documents/openapi.ts';
import { declaredRoutes } from '../docs/declared-routes.ts';

export const apiTypesFile = fileURLToPath(
  new URL('../../packages/client/src/api-types.d.ts', import.meta.url),
);
const packages = new URL('../../package-lock.json', import.meta.url);

/** What the document can only call "anything". */
const ours = ['Json', 'JsonObject'];

const declared = `export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}`;

function oursOf(path: string | undefined): string | undefined {
  const name = /#\/components\/schemas\/(\w+)$/.exec(path ?? '')?.[1]?.replace(/Output$/, '');
  return name !== undefined && ours.includes(name) ? name : undefined;
}

/** The libraries are loaded here, because they cost more than to compare digests. */
async function generateTypes(document: string): Promise<string> {
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  const { factory } = (await import('typescript')).default;
  const toOurs = (path: string | undefined): ts.TypeNode | undefined => {
    const name = oursOf(path);
    return name === undefined ? undefined : factory.createTypeReferenceNode(name);
  };
  const nodes = await openapiTS(JSON.parse(document), {
    transform: (_schema, { path }) => toOurs(path),
    inject: declared,
    defaultNonNullable: false,
  });
  return astToString(nodes);
}

/** Writes the file, unless it is already of this document, of this generator and of these packages. */
export async function writeApiTypes(): Promise<void> {
  /** Pages for people are no part of the API. */
  const routes = declaredRoutes().filter(({ tag }) => tag !== 'docs' && tag !== 'console');
  const document = JSON.stringify(createOpenApi(routes));
  const digest = createHash('sha256').update(document);
  for (const file of [fileURLToPath(import.meta.url), packages]) digest.update(await readFile(file));
  const first = `// sha256 of what this is generated from: ${digest.digest('hex')}\n`;
  const present = await readFile(apiTypesFile, 'utf8').catch(() => '');
  if (!present.startsWith(first)) await writeFile(apiTypesFile, first + (await generateTypes(document)));
}
