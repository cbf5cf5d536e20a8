/**
 * Whether a capability would take an input, and which inputs near it would be taken: by the same validator and the same
 * repair as those of a step that was refused.
 */
import type { CheckRequest } from '../../../contracts/capability.ts';
import type { Json } from '../../../contracts/primitives.ts';
import type { InputVerdict } from '../../../contracts/review.ts';
import { isPlainObject } from '../../../core/json-type.ts';
import { proposeCorrections } from '../../../core/ladder/correction.ts';
import { createSchemaCompiler } from '../../../schemas/schema-compiler.ts';
import type { SchemaError } from '../../../schemas/schema-errors.ts';
import { type KnownSpec, listPresentSpecs } from '../../registry/present-specs.ts';
import type { SchemaValidator } from '../../registry/schema-validator.ts';
import { type CapabilityLookup, requireCapability } from '../../routing/require-capability.ts';

export interface CheckDependencies extends CapabilityLookup {
  readonly validator: Pick<SchemaValidator, 'validateInput' | 'spec'>;
}

interface Nearest {
  readonly spec: KnownSpec;
  readonly errors: readonly SchemaError[];
}

/** The spec that takes it, or of those that do not the one with the fewest objections. Null: none is known. */
async function findNearest(
  { validator }: CheckDependencies,
  specs: readonly KnownSpec[],
  input: Json,
): Promise<Nearest | null> {
  let nearest: Nearest | null = null;
  for (const spec of specs) {
    const result = await validator.validateInput(spec.digest, input);
    if (result.ok) return { spec, errors: [] };
    if (nearest === null || result.errors.length < nearest.errors.length)
      nearest = { spec, errors: result.errors };
  }
  return nearest;
}

export function createInputChecks(dependencies: CheckDependencies) {
  const compiler = createSchemaCompiler();
  return {
    /** @throws AppError `not_found` for a name that nobody ever registered */
    checkInput: async (
      capability: string,
      {
        input,
        version = null,
        tags,
      }: Omit<CheckRequest, 'version'> & { version?: string | null | undefined },
    ): Promise<InputVerdict> => {
      await requireCapability(dependencies, capability, '/name');
      if (!isPlainObject(input))
        return { valid: false, errors: [{ pointer: '', message: 'must be object' }], proposals: [] };
      const { specs } = await listPresentSpecs(dependencies, { capability, versionRange: version, tags });
      const nearest = await findNearest(dependencies, specs, input);
      if (nearest === null || nearest.errors.length === 0) return { valid: true, errors: [], proposals: [] };
      const { input: schema } = await dependencies.validator.spec(nearest.spec.digest);
      const spec = { schema, find: compiler.compile(schema).find };
      const task = {
        capability,
        repair: 'propose',
        spec,
        original: input,
        current: input,
        failed: [],
      } as const;
      const errors = nearest.errors.map(({ pointer, message }) => ({ pointer, message }));
      return { valid: false, errors, proposals: proposeCorrections(task) };
    },
  };
}

export type InputChecks = ReturnType<typeof createInputChecks>;
