/**
 * Real JSON Schemas of configuration formats: those that the package `schemastore` keeps of schemastore.org, of drafts
 * that Capstan reads, one of each family of versions. Half of them, by the hash of their name, are held out: they were
 * not looked at while the repairs were written.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { createSchemaCompiler, findRefusal, type SchemaCheck } from '@capstan/core/schemas/schema-compiler';
import { ensureRivals } from '../shared/ensure-rivals.ts';

export interface RealSchema {
  readonly name: string;
  readonly schema: JsonObject;
  readonly check: SchemaCheck;
  readonly isHeldOut: boolean;
}

export interface SchemaSet {
  readonly schemas: readonly RealSchema[];
  /** Names and reasons of those that the registry refuses. */
  readonly refused: readonly string[];
}

const drafts = /draft-0[67]|2019-09|2020-12/;
const largestSchema = 200_000;

/** A number below 2³² that is the same on every machine. */
export function hash(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE();
}

/** `expo-42.0.0.json` and `expo-41.0.0.json` are of one family. */
function familyOf(name: string): string {
  return basename(name)
    .replace(/(\.schema)?\.json$/, '')
    .replace(/[-.]?v?\d+(\.[\dx]+)*([-.][a-z]+\.?\d*)?$/i, '');
}

function readSchema(path: string): JsonObject | null {
  const text = readFileSync(path, 'utf8');
  if (text.length > largestSchema) return null;
  try {
    const schema: JsonObject = JSON.parse(text);
    return drafts.test(String(schema.$schema)) ? schema : null;
  } catch {
    return null; // a page of a server that had no schema
  }
}

function listFiles(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

export function readSchemas(): SchemaSet {
  const folder = join(ensureRivals(['schemastore']), 'schemastore/schemas/json');
  const families = new Map<string, { name: string; schema: JsonObject }>();
  for (const path of listFiles(folder)) {
    const schema = readSchema(path);
    // The last by name is the newest version.
    if (schema !== null) families.set(familyOf(path), { name: relative(folder, path), schema });
  }
  const compiler = createSchemaCompiler();
  const refused: string[] = [];
  const schemas = [...families].flatMap(([family, { name, schema }]): RealSchema[] => {
    const reason = findRefusal(compiler, schema);
    if (reason !== null) refused.push(`${name}: ${reason.slice(0, 120)}`);
    return reason === null
      ? [{ name, schema, check: compiler.compile(schema), isHeldOut: hash(family) % 2 === 1 }]
      : [];
  });
  return { schemas, refused };
}
