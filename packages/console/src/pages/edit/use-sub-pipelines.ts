import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { useQuery } from '@tanstack/react-query';
import { readSubPipelines, referencesOf } from '../../api/sub-pipelines.ts';

const none: readonly PipelineDefinition[] = [];
const holdsMs = 60_000;

/** The stored pipelines that a text starts, and those below them; none until they are loaded. */
export function useSubPipelines(definition: PipelineDefinition | null): readonly PipelineDefinition[] {
  const references = definition === null ? [] : referencesOf(definition);
  const { data = none } = useQuery({
    queryKey: ['sub-pipelines', references],
    queryFn: () => readSubPipelines(references),
    enabled: references.length > 0,
    staleTime: holdsMs,
  });
  return data;
}
