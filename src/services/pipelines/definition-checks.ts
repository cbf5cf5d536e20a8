/**
 * The checks of definitions that have no text: inside requests, and again when a run starts. What a definition says never
 * changes and is checked once; what is around it is looked at every time, from memory where that knows it.
 */
import type { Finding, PipelineDefinition } from '../../contracts/pipeline.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { checkRunnable } from '../../core/definition/checks/check-availability.ts';
import { checkDefinition } from '../../core/definition/checks/check-definition.ts';
import type { DefinitionFacts, DefinitionFinding } from '../../core/definition/checks/finding.ts';
import type { Db } from '../../db/connect.ts';
import { type VetSchema, vetOwnSchemas } from '../../definitions/input-forms.ts';
import { refuseFindings } from '../../definitions/submission.ts';
import { createTextCache } from '../../definitions/text-cache.ts';
import { createSchemaCompiler, SchemaRefused } from '../../schemas/schema-compiler.ts';
import type { FleetPoller } from '../fleet/fleet-poller.ts';
import { createFactGatherer } from './definition-facts.ts';

export interface CheckTools {
  readonly fleet?: Pick<FleetPoller, 'of'>;
  readonly vet?: VetSchema;
}

export interface RunCheck {
  /** Warnings and notes. */
  readonly findings: readonly Finding[];
  /** Digests of the specs it was checked against, by capability: those that are there, or were last. */
  readonly specs: Readonly<Record<string, string>>;
}

export function createDefinitionChecks(db: Db, { fleet = nobody, vet = compileHere() }: CheckTools) {
  const { gather } = createFactGatherer({ db, fleet, vet });
  const known = createTextCache<readonly Finding[]>();

  return {
    readFacts: async (projectId: string, definition: PipelineDefinition): Promise<DefinitionFacts> =>
      (await gather(projectId, definition)).read(),

    /**
     * Without what may change: for definitions that come inside another document. Its schemas can be compiled afterwards.
     * @throws AppError `definition_invalid`
     */
    requireSound: async (definition: PipelineDefinition): Promise<void> => {
      const schemaFaultOf = await vetOwnSchemas(vet, definition);
      const checked = checkDefinition(definition, { knownCapabilities: null, strict: false, schemaFaultOf });
      const findings = checked.map(toFinding);
      if (findings.some(({ severity }) => severity === 'error')) throw refuseFindings(findings);
    },

    /** As things are now; capabilities that are not there are warnings. */
    check: async (projectId: string, definition: PipelineDefinition): Promise<readonly Finding[]> => {
      const facts = await (await gather(projectId, definition)).read();
      return checkDefinition(definition, facts).map(toFinding);
    },

    /** @throws AppError `definition_invalid` with all errors when it cannot run as things are now */
    checkForRun: async (
      projectId: string,
      { definition, digest }: { readonly definition: PipelineDefinition; readonly digest: string },
    ): Promise<RunCheck> => {
      const present = await gather(projectId, definition);
      const name = JSON.stringify([digest, present.key]);
      let findings = known.get(name);
      if (findings === undefined) {
        const checked = checkDefinition(definition, { ...(await present.read()), knownCapabilities: null });
        findings = [...checked, ...checkRunnable(definition, present.knownCapabilities)].map(toFinding);
        known.set(name, findings, findings);
      }
      if (findings.some(({ severity }) => severity === 'error')) throw refuseFindings(findings);
      return { findings, specs: present.specs };
    },
  };
}

const nobody: Pick<FleetPoller, 'of'> = { of: () => ({ instances: [], priorMs: 0 }) };

function compileHere(): VetSchema {
  const compiler = createSchemaCompiler();
  return async (schema: JsonObject) => {
    try {
      compiler.compile(schema);
      return null;
    } catch (error) {
      if (error instanceof SchemaRefused) return error.message;
      throw error;
    }
  };
}

function toFinding({ severity, code, pointer, message, suggestion }: DefinitionFinding): Finding {
  return {
    severity,
    code,
    pointer,
    message,
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}
