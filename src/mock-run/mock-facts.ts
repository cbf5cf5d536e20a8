/** What the mocks say about the world around a definition, for its checks: who is there, and what they take and answer. */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type {
  CapabilityForm,
  DefinitionFacts,
  PipelineForm,
} from '../core/definition/checks/definition-facts.ts';
import { createInputForms, type InputForms } from '../definitions/input-forms.ts';
import { findPipeline } from './find-pipeline.ts';
import type { MockCapability, Mocks } from './mocks.ts';

/** Every capability must be mocked; of one that names no schema nothing is known. */
export function factsOfMocks(
  { capabilities = {} }: Pick<Mocks, 'capabilities'>,
  pipelines: readonly PipelineDefinition[],
): DefinitionFacts {
  const forms = createInputForms();
  const specs = new Map<string, CapabilityForm>();
  for (const [name, mock] of Object.entries(capabilities)) {
    if (mock.input !== undefined || mock.output !== undefined) specs.set(name, formOf(forms, name, mock));
  }
  return {
    knownCapabilities: new Set(Object.keys(capabilities)),
    strict: true,
    specsOf: ({ capability }) => [specs.get(capability ?? '') ?? []].flat(),
    pipelineOf: (reference) => {
      const found = findPipeline(pipelines, reference);
      return found === undefined ? undefined : pipelineFormOf(forms, reference, found);
    },
  };
}

function formOf(forms: InputForms, name: string, { input, output }: MockCapability): CapabilityForm {
  return forms.addSpec(name, {
    name,
    version: '',
    description: '',
    cost_model: { type: 'free', rate_usd: 0 },
    input: input ?? { type: 'object' },
    output: output ?? {},
    deterministic: true, // mocks do not say
  });
}

function pipelineFormOf(
  forms: InputForms,
  reference: string,
  { job_schema, output }: PipelineDefinition,
): PipelineForm {
  return forms.ofPipeline({
    digest: reference,
    job_schema: job_schema ?? null,
    has_output: output !== undefined,
    output: output ?? null,
  });
}
