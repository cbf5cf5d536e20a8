import type { PipelineDefinition } from '../contracts/pipeline.ts';

/** @param reference `name@version`, or `name@latest` for the last of that name */
export function findPipeline(
  pipelines: readonly PipelineDefinition[],
  reference: string,
): PipelineDefinition | undefined {
  const at = reference.indexOf('@');
  const [name, version] = [reference.slice(0, at), reference.slice(at + 1)];
  const named = pipelines.filter(({ pipeline }) => pipeline === name);
  return named.find((one) => one.version === version) ?? (version === 'latest' ? named.at(-1) : undefined);
}
