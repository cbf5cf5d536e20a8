/**
 * The specs of capabilities: which ones count for a call now (those of the eligible instances), whether they accept a
 * value, and which input a step accepts now.
 */

import { createHash } from 'node:crypto';
import type { CallForms } from '@capstan/core/call/types';
import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { capabilityOf } from '@capstan/core/definition/step-settings';
import { createTextCache } from '@capstan/core/definitions/text-cache';
import { AppError } from '@capstan/core/errors/app-error';
import { isRoutable } from '@capstan/core/fleet/instance-states';
import { canonicalJson } from '@capstan/core/json/values';
import type { InputSpec } from '@capstan/core/ladder/correction';
import { isInRange, readRange } from '@capstan/core/routing/filter';
import { type InstanceSnapshot, speaks } from '@capstan/core/routing/types';
import { typeOfSchema } from '@capstan/core/schema-types/schema-type';
import { createForeignChecks, type ForeignCheck } from '@capstan/core/schemas/foreign-check';
import type { SchemaError } from '@capstan/core/schemas/schema-errors';
import { LRUCache } from 'lru-cache';
import type { Db } from '../../db/connect.ts';
import { findSpec, listSpecs } from '../../db/instance/capability-spec.ts';
import type { FleetPoller } from './fleet-poller.ts';
import type { ProjectFleet } from './fleet-view.ts';

export interface SpecTarget {
  readonly capability: string;
  readonly versionRange: string | null;
  readonly tags: readonly string[];
}

/** The specs that count for a step's call. */
export function specTargetOf(step: StepDefinition): SpecTarget {
  return {
    capability: capabilityOf(step),
    versionRange: step.capability_version ?? null,
    tags: step.tags ?? [],
  };
}

export interface KnownSpec {
  readonly version: string;
  readonly digest: string;
}

interface FoundSpecs {
  /** The specs, each once. */
  readonly specs: readonly KnownSpec[];
  /** False: no such instance is up, and these are all known specs, the oldest first. */
  readonly arePresent: boolean;
}

export async function listPresentSpecs(
  { db, fleet }: { readonly db: Db; readonly fleet: Pick<FleetPoller, 'seenBy'> },
  projectId: string,
  target: SpecTarget,
): Promise<FoundSpecs> {
  const present = pickPresentSpecs(fleet.seenBy(projectId), target);
  if (present.length > 0) return { specs: present, arePresent: true };
  const listed = await listSpecs(db, { projectId, name: target.capability });
  const known = listed.filter(({ version }) => isWanted(target, version));
  return { specs: known, arePresent: false };
}

/** Picks the specs of the instances that are up, each once. */
export function pickPresentSpecs(fleet: Pick<ProjectFleet, 'of'>, target: SpecTarget): readonly KnownSpec[] {
  const present = new Map<string, KnownSpec>();
  for (const { state, version, spec_digest, tags } of fleet.of(target.capability).instances) {
    const isEligible = isRoutable(state) && isWanted(target, version);
    if (!isEligible || spec_digest === null || !target.tags.every((tag) => tags.includes(tag))) continue;
    if (!present.has(spec_digest)) present.set(spec_digest, { version, digest: spec_digest });
  }
  return [...present.values()];
}

export function isWanted({ versionRange }: Pick<SpecTarget, 'versionRange'>, version: string): boolean {
  return versionRange === null || isInRange(readRange(versionRange), version);
}

/** A spec, and the checks by its schemas. */
export interface CompiledSpec {
  readonly spec: CapabilitySpec;
  readonly input: ForeignCheck;
  readonly output: ForeignCheck;
}

export interface SchemaValidator {
  /** @param digest of the spec; names are not needed here. @throws AppError `not_found` */
  of(digest: string): Promise<CompiledSpec>;
  /**
   * The check by a schema of a job or a review, which has been vetted and is compiled once.
   * @throws SchemaRefused
   */
  ofSchema(schema: JsonObject): ForeignCheck;
  close(): Promise<void>;
}

/** The schemas of known specs, read from the database once per process, by digest. */
export function createSchemaValidator({
  db,
  maxSpecs = 1_000,
}: {
  readonly db: Db;
  readonly maxSpecs?: number;
}): SchemaValidator {
  const foreign = createForeignChecks();
  const compiled = new LRUCache<string, Promise<CompiledSpec>>({ max: maxSpecs });
  const checks = createTextCache<ForeignCheck>();

  const load = async (digest: string): Promise<CompiledSpec> => {
    const spec = await findSpec(db, digest);
    if (spec === null) throw new AppError('not_found', `no spec with digest ${digest} is stored`);
    return { spec, input: foreign.of(spec.input), output: foreign.of(spec.output, 'noted') };
  };

  return {
    of: (digest) => {
      const known = compiled.get(digest);
      if (known !== undefined) return known;
      const loading = load(digest);
      compiled.set(digest, loading);
      loading.catch(() => compiled.delete(digest));
      return loading;
    },
    ofSchema: (schema) => {
      const text = canonicalJson(schema);
      const digest = createHash('sha256').update(text).digest('base64');
      const known = checks.get(digest);
      if (known !== undefined) return known;
      const check = foreign.of(schema);
      checks.set(digest, check, schema);
      return check;
    },
    close: foreign.close,
  };
}

interface CallInput {
  readonly input: JsonObject;
  /** Fields that the schema must declare. */
  readonly declaredFields?: readonly string[] | undefined;
}

interface FormedInput extends CallInput {
  readonly isNative: boolean;
  /** Fields that the instance does not get. */
  readonly left: readonly string[];
}

const nothingLeft: readonly string[] = [];

/** The input of a call as an instance gets it: in the client's own protocol if it speaks that. */
export function pickInput(
  { input, declaredFields, forms }: CallInput & { readonly forms?: CallForms | undefined },
  instance: Pick<InstanceSnapshot, 'protocols'>,
  { spec }: Pick<CompiledSpec, 'spec'>,
): FormedInput {
  if (forms === undefined) return { input, declaredFields, isNative: false, left: nothingLeft };
  if (speaks(instance, forms.protocol)) return { input: forms.native(), isNative: true, left: nothingLeft };
  if (forms.optional.length === 0) return { input, declaredFields, isNative: false, left: nothingLeft };
  const known = typeOfSchema(spec.input).object.names();
  const left = forms.optional.filter((name) => !known.has(name));
  const kept = Object.entries(input).filter(([name]) => !left.includes(name));
  return { input: Object.fromEntries(kept), declaredFields, isNative: false, left };
}

/** Checks the input of a call by the schema of an instance. */
export async function findInputErrors(
  { spec, input: check }: CompiledSpec,
  { input, declaredFields = [] }: CallInput,
): Promise<readonly SchemaError[]> {
  const errors = await check(input);
  if (errors.length > 0 || declaredFields.length === 0) return errors;
  const known = typeOfSchema(spec.input).object.names();
  const message = 'the capability does not declare this field';
  return declaredFields.filter((name) => !known.has(name)).map((name) => ({ pointer: `/${name}`, message }));
}

export interface CurrentSpec extends InputSpec {
  readonly version: string;
}

export interface CurrentSpecs {
  /** As a project sees the capability. Null while no instance has reported a spec. */
  read(projectId: string, target: SpecTarget): Promise<CurrentSpec | null>;
}

export interface SpecDependencies {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'seenBy'>;
  readonly validator: SchemaValidator;
}

/** Finds the input schema of a step's capability: of the first instance, or the last known one while there is none. */
export function createCurrentSpecs({ db, fleet, validator }: SpecDependencies): CurrentSpecs {
  return {
    read: async (projectId, target) => {
      const { specs, arePresent } = await listPresentSpecs({ db, fleet }, projectId, target);
      const chosen = arePresent ? specs[0] : specs.at(-1);
      if (chosen === undefined) return null;
      const { version, digest } = chosen;
      const { spec, input } = await validator.of(digest);
      return { version, schema: spec.input, find: input.find, repair: input.repair };
    },
  };
}
