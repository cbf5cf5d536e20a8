import { PipelineDefinition, StepDefinition } from '../contracts/pipeline.ts';

/** Keys with what they mean. */
export type KeyDocs = Readonly<Record<string, string>>;

export interface DefinitionKeys {
  readonly pipeline: KeyDocs;
  readonly step: KeyDocs;
}

function docsOf(shape: Readonly<Record<string, { readonly description?: string | undefined }>>): KeyDocs {
  return Object.fromEntries(Object.entries(shape).map(([key, { description = '' }]) => [key, description]));
}

/** The keys of a definition and of its steps as the contract describes them, for editors. */
export function describeKeys(): DefinitionKeys {
  return { pipeline: docsOf(PipelineDefinition.shape), step: docsOf(StepDefinition.shape) };
}
