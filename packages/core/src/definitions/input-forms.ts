/**
 * Accepted inputs and outputs of steps: schemas are read as types once, and compiled once, so that literals can be
 * validated. A definition's own schemas are first compiled in isolation.
 */
import type { CapabilitySpec } from '../contracts/capability.ts';
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { listOwnSchemas } from '../definition/checks/check-types.ts';
import type { CapabilityForm, FindInputFaults, PipelineForm } from '../definition/checks/finding.ts';
import { readTemplate } from '../expression/template.ts';
import { findSchemaFault, isLightSchema } from '../foreign-schema.ts';
import { intersectionOf } from '../schema-types/combine-types.ts';
import { typeOfSchema } from '../schema-types/schema-type.ts';
import { typeOfNode, typeTemplate } from '../schema-types/template-type.ts';
import { anyType, objectType, type ValueType } from '../schema-types/value-type.ts';
import { createSchemaCompiler } from '../schemas/schema-compiler.ts';
import { createTextCache } from './text-cache.ts';

type FoundPipeline = Extract<PipelineForm, { kind: 'found' }>;

/** The fields of a stored sub-pipeline that a check reads. */
interface ReferencedPipeline {
  readonly digest: string;
  readonly job_schema: JsonObject | null;
  readonly has_output: boolean;
  readonly output: Json;
}

export interface InputForms {
  ofSpec(digest: string): CapabilityForm | undefined;
  addSpec(digest: string, spec: CapabilitySpec): CapabilityForm;
  ofPipeline(row: ReferencedPipeline): FoundPipeline;
}

/** @param onCompiled is called for each schema that was compiled, which takes some milliseconds */
export function createInputForms(onCompiled: () => void = () => undefined): InputForms {
  const specs = createTextCache<CapabilityForm>();
  const pipelines = createTextCache<FoundPipeline>();

  return {
    ofSpec: (digest) => specs.get(digest),
    addSpec: (digest, { input, output, deterministic }) => {
      const form: CapabilityForm = {
        digest,
        input: typeOfSchema(input),
        output: typeOfSchema(output),
        findInputFaults: createFaultFinder(input, onCompiled),
        isDeterministic: deterministic === true,
      };
      specs.set(digest, form, [input, output]);
      return form;
    },
    ofPipeline: (row) => {
      const known = pipelines.get(row.digest);
      if (known !== undefined) return known;
      const form = readPipeline(row, onCompiled);
      pipelines.set(row.digest, form, row);
      return form;
    },
  };
}

function readPipeline(row: ReferencedPipeline, onCompiled: () => void): FoundPipeline {
  const { job_schema, has_output, output } = row;
  return {
    kind: 'found',
    job: job_schema === null ? objectType : intersectionOf([objectType, typeOfSchema(job_schema)]),
    output: has_output ? typeOfOutput(output) : anyType,
    findInputFaults: job_schema === null ? () => [] : createFaultFinder(job_schema, onCompiled),
  };
}

/** The type of an output's template: its keys and literals; the results of its expressions are unknown here. */
function typeOfOutput(output: Json): ValueType {
  const { root } = readTemplate(output).template;
  const types = typeTemplate(root, { startOf: () => null, report: () => undefined, effort: { left: 0 } });
  return typeOfNode(root, types);
}

/** Units of work; charged also for a compiled schema, so that findings do not depend on the cache. */
const compilation = 500_000;

const compiler = createSchemaCompiler();
const noHoles: ReadonlySet<string> = new Set();

/**
 * Compiles the schema here if it is light, because it was vetted when it was stored. Values are checked against others
 * when the step runs.
 */
function createFaultFinder(schema: JsonObject, onCompiled: () => void): FindInputFaults {
  if (!isLightSchema(schema)) return () => [];
  const check = compiler.compile(schema);
  check.findCertain(null, noHoles, { left: 1 }); // compiles what lists all errors
  onCompiled();
  const paid = new WeakSet<object>();
  return (value, holes, work) => {
    if (!paid.has(work)) work.left -= compilation;
    paid.add(work);
    if (work.left <= 0) return [];
    return check.findCertain(value, holes, work);
  };
}

/** Why a schema cannot be used, or null. */
export type VetSchema = (schema: JsonObject) => Promise<string | null>;

/** Limits for the different schemas of one definition and their text, because each is compiled in a thread. */
const most = { schemas: 50, characters: 100_000 } as const;
const tooMany = `the definition has more than ${most.schemas} different schemas, or ${most.characters} characters of them`;

/** Compiles the schemas of a definition in isolation. @returns a function that gives the fault of each; null = none */
export async function vetOwnSchemas(
  vet: VetSchema,
  definition: PipelineDefinition,
): Promise<(schema: JsonObject) => string | null> {
  const byText = new Map<string, string | null>();
  const bySchema = new Map<JsonObject, string | null>();
  let characters = 0;
  for (const { schema } of listOwnSchemas(definition)) {
    if (findSchemaFault(schema) !== null) continue; // already reported
    const text = JSON.stringify(schema);
    let fault = byText.get(text);
    if (fault === undefined) {
      characters += text.length;
      const isAllowed = byText.size < most.schemas && characters <= most.characters;
      fault = isAllowed ? await vet(schema) : tooMany;
      if (isAllowed) byText.set(text, fault);
    }
    bySchema.set(schema, fault);
  }
  return (schema) => bySchema.get(schema) ?? null;
}
