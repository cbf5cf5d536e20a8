/**
 * Reads the texts of a local run: the pipeline, its sub-pipelines and its mocks, or their faults. The mocks also supply
 * the facts for the checks of a definition: the available capabilities, and their inputs and outputs.
 */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Finding } from '../contracts/pipeline-answers.ts';
import { findPipeline } from '../definition/checks/check-availability.ts';
import type { CapabilityForm, DefinitionFacts, PipelineForm } from '../definition/checks/finding.ts';
import { createInputForms, type InputForms } from '../definitions/input-forms.ts';
import { readDefinition } from '../definitions/read-definition.ts';
import type { MockCapability, Mocks } from './mocks.ts';

interface SourceText {
  readonly text: string;
  readonly type: string;
}

interface PreparedPipeline {
  /** null when a finding is an error. */
  readonly definition: PipelineDefinition | null;
  readonly findings: readonly Finding[];
}

/** @param pipelines that it may run */
export function preparePipeline(
  source: SourceText,
  mocks: Mocks,
  pipelines: readonly PipelineDefinition[],
): PreparedPipeline {
  const facts = factsOfMocks(mocks, pipelines);
  const { definition, findings } = readDefinition({ text: source.text, contentType: source.type }, facts);
  const names = Object.keys(mocks.capabilities ?? {}).join(', ') || 'nothing';
  return {
    definition,
    findings: findings.map((finding) =>
      finding.code === 'capability_unknown'
        ? {
            ...finding,
            code: 'capability_not_mocked',
            message: `the mocks mock ${names}, not this capability`,
          }
        : finding,
    ),
  };
}

/** Reads a file of unknown content: a definition that may be run, else null. */
export function readSubPipeline({ text, type }: SourceText): PipelineDefinition | null {
  return readDefinition({ text, contentType: type }, { knownCapabilities: null, strict: false }).definition;
}

/** Every capability must be mocked; without a schema, nothing is known about it. */
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
    deterministic: true, // mocks do not specify it
  });
}

export function pipelineFormOf(
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
