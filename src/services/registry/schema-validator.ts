/** The schemas of known specs, read from the database and compiled once per process, by digest. */
import { LRUCache } from 'lru-cache';
import type { CapabilitySpec } from '../../contracts/capability.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { Db } from '../../db/connect.ts';
import { findSpec } from '../../db/spec/capability-spec.ts';
import { AppError } from '../../errors/app-error.ts';
import { createSchemaCompiler, type SchemaCheck } from '../../schemas/schema-compiler.ts';
import type { SchemaError } from '../../schemas/schema-errors.ts';

type SchemaResult = { readonly ok: true } | { readonly ok: false; readonly errors: readonly SchemaError[] };

export interface SchemaValidator {
  /** @param digest of the spec; nothing here is known by a name. @throws AppError `not_found` */
  validateInput(digest: string, value: Json): Promise<SchemaResult>;
  /** @throws AppError `not_found` */
  validateOutput(digest: string, value: Json): Promise<SchemaResult>;
  /** @throws AppError `not_found` */
  spec(digest: string): Promise<CapabilitySpec>;
}

interface CompiledSpec {
  readonly spec: CapabilitySpec;
  readonly input: SchemaCheck;
  readonly output: SchemaCheck;
}

export function createSchemaValidator({
  db,
  maxSpecs = 1_000,
}: {
  readonly db: Db;
  readonly maxSpecs?: number;
}): SchemaValidator {
  const compiler = createSchemaCompiler();
  const compiled = new LRUCache<string, Promise<CompiledSpec>>({ max: maxSpecs });

  const load = async (digest: string): Promise<CompiledSpec> => {
    const spec = await findSpec(db, digest);
    if (spec === null) throw new AppError('not_found', `no spec with digest ${digest} is stored`);
    return { spec, input: compiler.compile(spec.input), output: compiler.compile(spec.output, 'noted') };
  };

  const find = (digest: string): Promise<CompiledSpec> => {
    const known = compiled.get(digest);
    if (known !== undefined) return known;
    const loading = load(digest);
    compiled.set(digest, loading);
    loading.catch(() => compiled.delete(digest));
    return loading;
  };

  const validate = async (side: 'input' | 'output', digest: string, value: Json): Promise<SchemaResult> => {
    const errors = (await find(digest))[side](value);
    return errors.length === 0 ? { ok: true } : { ok: false, errors };
  };

  return {
    validateInput: (digest, value) => validate('input', digest, value),
    validateOutput: (digest, value) => validate('output', digest, value),
    spec: async (digest) => (await find(digest)).spec,
  };
}
