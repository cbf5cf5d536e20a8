/** What the capability of a step takes as its input now: by the instances that the step may be given to. */
import { LRUCache } from 'lru-cache';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { SchemaFinding } from '../../core/repair/schema-finding.ts';
import { isInRange, readRange } from '../../core/routing/version-range.ts';
import { listSpecs } from '../../db/capability-spec.ts';
import type { Db } from '../../db/connect.ts';
import type { InstanceFeed } from '../registry/instance-feed.ts';
import { createSchemaCompiler } from '../registry/schema-compiler.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';

export interface SpecTarget {
  readonly capability: string;
  readonly versionRange: string | null;
  readonly tags: readonly string[];
}

export interface PresentSpec {
  readonly version: string;
  readonly schema: JsonObject;
  /** What an input does wrong; empty when it is valid. */
  readonly find: (input: Json) => readonly SchemaFinding[];
}

export interface PresentSpecs {
  /** Null while no instance has said what it takes. */
  read(target: SpecTarget): Promise<PresentSpec | null>;
}

export interface SpecDependencies {
  readonly db: Db;
  readonly feed: Pick<InstanceFeed, 'fleet'>;
  readonly validator: Pick<SchemaValidator, 'spec'>;
}

interface KnownSpec {
  readonly version: string;
  readonly digest: string;
}

export const createPresentSpecs = ({ db, feed, validator }: SpecDependencies): PresentSpecs => {
  const compiler = createSchemaCompiler();
  const compiled = new LRUCache<string, PresentSpec>({ max: 200 });

  /** Of an instance that is there; while there is none, the last that was. */
  const choose = async ({ capability, versionRange, tags }: SpecTarget): Promise<KnownSpec | null> => {
    const isWanted = (version: string): boolean =>
      versionRange === null || isInRange(readRange(versionRange), version);
    for (const instance of feed.fleet(capability).instances) {
      const { state, version, spec_digest: digest } = instance;
      if (digest === null || (state !== 'up' && state !== 'suspect') || !isWanted(version)) continue;
      if (tags.every((tag) => instance.tags.includes(tag))) return { version, digest };
    }
    const last = (await listSpecs(db, capability)).findLast(({ version }) => isWanted(version));
    return last ?? null;
  };

  return {
    read: async (target) => {
      const chosen = await choose(target);
      if (chosen === null) return null;
      const { version, digest } = chosen;
      const known = compiled.get(digest);
      if (known !== undefined) return known;
      const { input: schema } = await validator.spec(digest);
      const spec: PresentSpec = { version, schema, find: compiler.compile(schema).find };
      compiled.set(digest, spec);
      return spec;
    },
  };
};
