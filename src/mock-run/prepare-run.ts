/** What a local run needs, out of texts: the pipeline, its sub-pipelines and its mocks, or what is wrong with them. */
import type { Finding, PipelineDefinition } from '../contracts/pipeline.ts';
import { readDefinition } from '../definitions/read-definition.ts';
import { factsOfMocks } from './mock-facts.ts';
import type { Mocks } from './mocks.ts';

export interface SourceText {
  readonly text: string;
  readonly type: string;
}

export interface PreparedPipeline {
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

/** Reads a file that may hold anything: a definition that may be run, else null. */
export function readSubPipeline({ text, type }: SourceText): PipelineDefinition | null {
  return readDefinition({ text, contentType: type }, { knownCapabilities: null, strict: false }).definition;
}
