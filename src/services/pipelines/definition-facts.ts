/** Gathers what a definition is checked against: what is registered, what it takes and answers, the pipelines it runs. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { DefinitionFacts } from '../../core/definition/checks/definition-facts.ts';
import type { Db } from '../../db/connect.ts';
import { listCapabilityNames } from '../../db/spec/capability-names.ts';
import { createInputForms, type InputForms } from '../../definitions/input-forms.ts';
import { type VetSchema, vetOwnSchemas } from '../../definitions/own-schemas.ts';
import type { FleetPoller } from '../routing/fleet/fleet-poller.ts';
import { findPipelineForms } from './pipeline-forms.ts';
import { type Calls, findSpecDigests, listCalls, readSpecForms, type SpecDigests } from './spec-forms.ts';

export interface FactSources {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'of'>;
  readonly vet: VetSchema;
}

/** What may have changed since a definition was checked, and what the rest is read by. */
export interface PresentFacts {
  /** The same text: the same findings. */
  readonly key: string;
  readonly specs: SpecDigests['byCapability'];
  readonly knownCapabilities: ReadonlySet<string>;
  readonly read: () => Promise<DefinitionFacts>;
}

export interface FactGatherer {
  gather(projectId: string, definition: PipelineDefinition): Promise<PresentFacts>;
}

/** What a definition makes one look up. */
interface Asked {
  readonly names: readonly string[];
  readonly calls: Calls;
}

export function createFactGatherer({ db, fleet, vet }: FactSources): FactGatherer {
  const forms: InputForms = createInputForms();
  const known = new WeakMap<PipelineDefinition, Asked>();

  const readAsked = (definition: PipelineDefinition): Asked => {
    const before = known.get(definition);
    if (before !== undefined) return before;
    const names = [...new Set(definition.steps.flatMap(({ capability }) => capability ?? []))];
    const asked = { names, calls: listCalls(definition) };
    known.set(definition, asked);
    return asked;
  };

  return {
    gather: async (projectId, definition) => {
      const { names, calls } = readAsked(definition);
      const digests = await findSpecDigests({ db, fleet }, calls);
      const pipelines = await findPipelineForms({ db, forms }, projectId, definition);
      const knownCapabilities = await findRegistered({ db, fleet }, names);
      const unknown = names.filter((name) => !knownCapabilities.has(name));
      return {
        key: JSON.stringify([[...digests.byCall.values()], pipelines.digests, unknown]),
        specs: digests.byCapability,
        knownCapabilities,
        read: async () => ({
          knownCapabilities,
          strict: false,
          specsOf: await readSpecForms({ db, forms }, digests),
          pipelineOf: (reference) => pipelines.forms.get(reference),
          schemaFaultOf: await vetOwnSchemas(vet, definition),
        }),
      };
    },
  };
}

/** Memory tells of those that are there; whether one that it does not know has come just now, the database does. */
async function findRegistered(
  { db, fleet }: Pick<FactSources, 'db' | 'fleet'>,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const isRegistered = (name: string): boolean =>
    fleet.of(name).instances.some(({ state }) => state !== 'deregistered');
  return names.every(isRegistered) ? new Set(names) : listCapabilityNames(db);
}
