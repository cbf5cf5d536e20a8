/** What the capability of a step takes as its input now: of the first instance; while there is none, the last one known. */
import type { InputSpec } from '../../../core/ladder/correction.ts';
import type { Db } from '../../../db/connect.ts';
import { createTextCache } from '../../../definitions/text-cache.ts';
import { createSchemaCompiler } from '../../../schemas/schema-compiler.ts';
import { listPresentSpecs, type SpecTarget } from '../../registry/present-specs.ts';
import type { SchemaValidator } from '../../registry/schema-validator.ts';
import type { FleetPoller } from '../../routing/fleet/fleet-poller.ts';

export interface PresentSpec extends InputSpec {
  readonly version: string;
}

export interface PresentSpecs {
  /** Null while no instance has said what it takes. */
  read(target: SpecTarget): Promise<PresentSpec | null>;
}

export interface SpecDependencies {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'of'>;
  readonly validator: Pick<SchemaValidator, 'spec'>;
}

export function createPresentSpecs({ db, fleet, validator }: SpecDependencies): PresentSpecs {
  const compiler = createSchemaCompiler();
  const compiled = createTextCache<PresentSpec>();

  return {
    read: async (target) => {
      const { specs, arePresent } = await listPresentSpecs({ db, fleet }, target);
      const chosen = arePresent ? specs[0] : specs.at(-1);
      if (chosen === undefined) return null;
      const { version, digest } = chosen;
      const known = compiled.get(digest);
      if (known !== undefined) return known;
      const { input: schema } = await validator.spec(digest);
      const spec: PresentSpec = { version, schema, find: compiler.compile(schema).find };
      compiled.set(digest, spec, schema);
      return spec;
    },
  };
}
